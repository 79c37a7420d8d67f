// The script of the viewer: it loads steps, follows growing runs, and handles keys. Pages can be
// read without it. It computes no numbers. In a file that holds all pages, it shows one of them and
// unpacks steps.
"use strict";
(() => {
  const root = document.documentElement;
  const policy = window.trustedTypes
    ? trustedTypes.createPolicy("mini", { createHTML: (html) => html })
    : { createHTML: (html) => html };
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // parse returns the nodes of a fragment of our own server.
  function parse(html) {
    const template = document.createElement("template");
    template.innerHTML = policy.createHTML(html);
    return template.content;
  }

  async function load(url, tag) {
    const response = await fetch(url, { headers: tag ? { "If-None-Match": tag } : {} });
    if (response.status === 304) return null;
    if (!response.ok) throw new Error(`${url}: ${response.status}`);
    return { text: await response.text(), tag: response.headers.get("ETag") };
  }

  const isFile = "file" in root.dataset;

  // --- Steps of an attempt ---

  let steps = one("#steps"); // of the attempt that is shown; null if there is none
  const base = steps && steps.dataset.base;
  const query = () => (steps.dataset.query ? "&q=" + encodeURIComponent(steps.dataset.query) : "");

  // A chunk that is not loaded has about the height that it will have.
  const lineHeight = 22;
  function reserve() {
    for (const chunk of all(".chunk")) {
      const height = chunk.dataset.lines * lineHeight + "px";
      chunk.style.containIntrinsicSize = "auto " + height;
      if ("missing" in chunk.dataset) chunk.style.minHeight = height;
    }
  }

  const enough = 5 << 20; // bytes that are loaded although the reader may not come near them
  const loading = new Map();
  let loadedBytes = 0;

  function loadChunk(chunk) {
    if (!("missing" in chunk.dataset)) return Promise.resolve();
    if (!loading.has(chunk)) loading.set(chunk, fill(chunk).finally(() => loading.delete(chunk)));
    return loading.get(chunk);
  }

  async function fill(chunk) {
    const asked = query();
    const got = await load(`${base}/steps?from=${chunk.dataset.from}${asked}`);
    if (asked !== query()) return fill(chunk); // a search has begun, and its hits are marked
    loadedBytes += got.text.length;
    // What the reader sees stays where it is: browsers differ in anchoring the scroll position.
    const seen = topStep();
    const before = seen && seen.getBoundingClientRect().top;
    const name = chunk.contains(current) && current.dataset.step;
    chunk.replaceChildren(parse(got.text));
    if (name) setCurrent(document.getElementById("s" + name)); // the steps are new elements
    delete chunk.dataset.missing;
    chunk.dataset.bytes = got.text.length;
    release(chunk);
    chunk.style.minHeight = "";
    if (seen && seen.isConnected && chunk.compareDocumentPosition(seen) & Node.DOCUMENT_POSITION_FOLLOWING) {
      window.scrollBy({ top: seen.getBoundingClientRect().top - before, behavior: "instant" });
    }
    applyFolding(chunk);
  }

  // release removes the steps that are farthest from a chunk if the page holds too many, because
  // each needs about 30 times its size of memory. A chunk without its steps keeps its height.
  function release(near) {
    const chunks = all(".chunk", steps);
    const at = chunks.indexOf(near);
    const far = chunks.map((c, i) => [Math.abs(i - at), c]).filter(([d, c]) => d > 2 && "bytes" in c.dataset);
    far.sort(([a], [b]) => b - a);
    for (const [, chunk] of far) {
      if (loadedBytes <= 1.25 * enough) return;
      if (chunk.contains(current)) continue;
      loadedBytes -= chunk.dataset.bytes;
      chunk.style.minHeight = chunk.getBoundingClientRect().height + "px";
      chunk.replaceChildren();
      delete chunk.dataset.bytes;
      chunk.dataset.missing = "";
    }
  }

  // topStep returns the first step on the screen or, if it is not loaded, its chunk. It looks at
  // chunks first, because to measure a step the browser lays out the whole chunk.
  function topStep() {
    const isBelow = (e) => e.getBoundingClientRect().bottom > 60;
    const chunk = all(".chunk", steps).find(isBelow);
    return chunk && (all(".step", chunk).find(isBelow) || chunk);
  }

  const indexOf = (name) => (name === "end" ? Infinity : Number(name));

  function chunkOf(name) {
    return all(".chunk", steps).find((c) => {
      const last = indexOf(c.dataset.last);
      return indexOf(c.dataset.first) <= indexOf(name) && indexOf(name) <= last;
    });
  }

  // settle calls f, which scrolls, in some frames: steps get their real height when they are drawn.
  async function settle(f) {
    for (let i = 0; i < 4; i++) {
      await new Promise(requestAnimationFrame);
      f();
    }
  }

  let current = null;

  // show scrolls to a step and makes it the current one.
  async function show(name, { push = true, smooth = false } = {}) {
    const chunk = chunkOf(name);
    if (!chunk) return;
    if (!document.getElementById("s" + name)) {
      chunk.scrollIntoView({ behavior: "instant" });
      await loadChunk(chunk);
    }
    const step = document.getElementById("s" + name);
    if (!step) return;
    setCurrent(step);
    step.scrollIntoView({ behavior: smooth ? "auto" : "instant" });
    // The chunks around it get their real height when they are drawn.
    if (push) history.replaceState(history.state, "", address(name));
    await settle(() => step.scrollIntoView({ behavior: "instant" }));
  }

  function address(name) {
    if (isFile) return `#${page.id}/s${name}`;
    const url = new URL(location.href);
    url.searchParams.set("step", name);
    url.hash = "s" + name;
    return url;
  }

  function setCurrent(step) {
    if (current) current.classList.remove("current");
    current = step;
    step.classList.add("current");
    for (const link of all(".outline a[aria-current]")) link.removeAttribute("aria-current");
    const link = one(`.outline a[data-step="${CSS.escape(step.dataset.step)}"]`);
    if (!link) return;
    link.setAttribute("aria-current", "step");
    const box = link.closest(".outline");
    if (link.offsetTop < box.scrollTop || link.offsetTop > box.scrollTop + box.clientHeight - 40) {
      box.scrollTop = link.offsetTop - box.clientHeight / 2;
    }
  }

  const names = () => all(".outline a[data-step]").map((a) => a.dataset.step);

  // move shows the step that is some steps away from the current one.
  function move(by) {
    const list = names();
    const at = list.indexOf((current || topStep() || { dataset: {} }).dataset.step);
    const next = list[Math.min(Math.max(at + by, 0), list.length - 1)];
    if (next !== undefined) show(next);
  }

  function moveToFailure(by) {
    const links = all(".outline a[data-step]");
    const at = links.findIndex((a) => current && a.dataset.step === current.dataset.step);
    for (let i = at + by; i >= 0 && i < links.length; i += by) {
      if (links[i].closest("li").classList.contains("failed")) return show(links[i].dataset.step);
    }
  }

  // --- Position in the history ---

  // The browser restores a position in pixels, which chunks that are not loaded make wrong. So the
  // page remembers the step at its top.
  let saving = 0;

  function savePosition() {
    clearTimeout(saving);
    saving = setTimeout(() => {
      const step = topStep();
      if (!step || !step.dataset.step) return;
      history.replaceState({ step: step.dataset.step, top: step.getBoundingClientRect().top }, "");
    }, 150);
  }

  async function restorePosition({ step, top }) {
    const chunk = chunkOf(step);
    if (!chunk) return;
    chunk.scrollIntoView({ behavior: "instant" });
    await loadChunk(chunk);
    const element = document.getElementById("s" + step);
    if (!element) return;
    // The step is drawn first, because one above the screen has not its real height.
    await settle(() => element.scrollIntoView({ behavior: "instant" }));
    const place = () => window.scrollBy({ top: element.getBoundingClientRect().top - top, behavior: "instant" });
    await settle(place);
  }

  // --- Search ---

  let hits = [];

  async function search(text) {
    steps.dataset.query = text;
    const status = one("#hits");
    hits = [];
    if (!text) {
      status.textContent = "";
      return;
    }
    hits = isFile ? searchHere(text) : await searchServer(text);
    status.textContent = hits.length === 1 ? "1 step" : hits.length + " steps";
    if (isFile) return nextHit(1);
    loadedBytes = 0;
    // Chunks are rendered again, with marks.
    for (const chunk of all(".chunk", steps)) {
      if (!("missing" in chunk.dataset)) chunk.dataset.missing = "";
    }
    const url = new URL(location.href);
    url.searchParams.set("q", text);
    history.replaceState(history.state, "", url);
    if (hits.length) await nextHit(1);
    loadRest();
  }

  async function searchServer(text) {
    const got = await load(`${base}/search?q=${encodeURIComponent(text)}`);
    return got.text ? got.text.split("\n") : [];
  }

  function searchHere(text) {
    const part = text.toLowerCase();
    return all(".step", steps).filter((s) => s.textContent.toLowerCase().includes(part)).map((s) => s.dataset.step);
  }

  async function nextHit(by) {
    if (!hits.length) return;
    const at = current ? indexOf(current.dataset.step) : -1;
    const later = by > 0 ? hits.find((h) => indexOf(h) > at) : hits.findLast((h) => indexOf(h) < at);
    const name = later === undefined ? hits.at(by > 0 ? 0 : -1) : later;
    const chunk = chunkOf(name);
    if (chunk) await loadChunk(chunk);
    await show(name);
    const step = document.getElementById("s" + name);
    for (const mark of all("mark", step)) {
      for (let d = mark.closest("details"); d; d = d.parentElement.closest("details")) d.open = true;
    }
    const mark = one("mark", step);
    if (mark) mark.scrollIntoView({ block: "center", behavior: "instant" });
  }

  // --- Folding and what is shown ---

  let folded = null; // true: all folded, false: all open, null: as the server sent it

  function applyFolding(from = document) {
    if (folded === null) return;
    for (const details of all("details", from)) details.open = !folded;
  }

  const toggles = { reasoning: "hide-reasoning", outputs: "hide-outputs", errors: "only-errors" };

  function applyToggle(box) {
    root.classList.toggle(toggles[box.dataset.toggle], box.checked);
    if (isFile) return;
    const url = new URL(location.href);
    if (box.checked) url.searchParams.set(box.dataset.toggle, "1");
    else url.searchParams.delete(box.dataset.toggle);
    history.replaceState(history.state, "", url);
  }

  // --- Growing runs ---

  const slowest = 10000;

  // lost says that the page does not follow the run any more.
  function lost() {
    const note = document.createElement("span");
    note.className = "lost";
    note.role = "status";
    note.textContent = " mini view has ended, or the run cannot be read";
    return note;
  }

  // poll calls f every two seconds while the page is visible. It waits longer while f finds
  // nothing new.
  function poll(f) {
    let wait = 2000;
    const tick = async () => {
      if (!document.hidden) {
        try {
          wait = (await f()) ? 2000 : Math.min(wait * 1.5, slowest);
          one(".lost")?.remove();
        } catch {
          wait = slowest;
          if (!one(".lost")) one(".position, .top").append(lost());
        }
      }
      setTimeout(tick, wait);
    };
    setTimeout(tick, wait);
  }

  function pollPage() {
    let tag = "";
    poll(async () => {
      if (document.activeElement.matches("input")) return false;
      const got = await load(location.href, tag);
      if (!got) return false;
      tag = got.tag;
      const fresh = parse(got.text).querySelector("#live");
      if (!fresh) return false;
      // What the reader has opened stays open.
      const open = all("#live details").map((details) => details.open);
      const chosen = new Set(all("#live [name=run]:checked").map((box) => box.value));
      one("#live").replaceWith(fresh);
      for (const box of all("#live [name=run]")) box.checked = chosen.has(box.value);
      all("#live details").forEach((details, i) => (details.open = open[i] ?? details.open));
      return true;
    });
  }

  function pollSteps() {
    let tag = "";
    const isAtEnd = () => window.innerHeight + window.scrollY > document.body.scrollHeight - 200;
    poll(async () => {
      const last = all(".step", steps).at(-1);
      const lastChunk = all(".chunk", steps).at(-1);
      if (!last || "missing" in lastChunk.dataset) return false;
      const got = await load(`${base}/steps?after=${last.dataset.step}${query()}`, tag);
      if (!got) return false;
      tag = got.tag;
      const fresh = all(".step", parse(got.text));
      if (!fresh.length) return false;
      const follow = isAtEnd();
      const known = new Set(names());
      const list = all(".outline ol").at(-1);
      last.replaceWith(...fresh);
      if (current === last) setCurrent(fresh[0]);
      for (const step of fresh) {
        if (!known.has(step.dataset.step)) list.append(outlineItem(step));
      }
      lastChunk.dataset.last = fresh.at(-1).dataset.step;
      const toEnd = () => window.scrollTo({ top: document.body.scrollHeight, behavior: "instant" });
      if (follow) await settle(toEnd);
      else if (fresh.length > 1) announce(fresh.length - 1);
      return true;
    });
  }

  // outlineItem returns the line of the outline about a new step.
  function outlineItem(step) {
    const item = document.createElement("li");
    item.classList.toggle("failed", step.classList.contains("failed"));
    const link = document.createElement("a");
    link.dataset.step = step.dataset.step;
    link.href = "#s" + step.dataset.step;
    const [number, line] = [document.createElement("span"), document.createElement("span")];
    number.className = "n";
    number.textContent = step.dataset.step;
    line.className = "line";
    const text = one(".reply .text", step) || one(".command .text", step) || one(".text", step);
    line.textContent = text ? text.textContent.replace(/^\s*(THOUGHT:)?\s*/, "").split("\n", 1)[0].slice(0, 80) : "";
    link.append(number, " ", line);
    item.append(link);
    return item;
  }

  let waiting = 0;

  // announce shows a button with the number of new steps.
  function announce(count) {
    waiting += count;
    let button = one(".new");
    if (!button) {
      button = document.createElement("button");
      button.className = "new";
      button.onclick = () => {
        waiting = 0;
        button.remove();
        show(names().at(-1));
      };
      document.body.append(button);
    }
    button.textContent = waiting === 1 ? "1 new step" : waiting + " new steps";
  }

  // --- Keys ---

  const follow = (selector) => {
    const link = one(selector, page || document);
    if (!link) return;
    remember(link);
    location.assign(link.href);
  };

  const keys = {
    l: () => move(1), h: () => move(-1),
    0: () => show(names()[0]), g: () => show(names()[0]),
    $: () => show(names().at(-1)), G: () => show(names().at(-1)),
    L: () => follow("[data-go=next]"), H: () => follow("[data-go=previous]"),
    x: () => moveToFailure(1), X: () => moveToFailure(-1),
    n: () => nextHit(1), N: () => nextHit(-1),
    r: () => one("[data-toggle=reasoning]")?.click(),
    d: () => one("#patch")?.scrollIntoView({ behavior: "instant" }),
    "/": () => one("input[type=search]", page || document)?.focus(),
    "[": () => { folded = true; applyFolding(); },
    "]": () => { folded = false; applyFolding(); },
    "?": () => one("#help").showModal(),
    Escape: () => follow("[data-go=up]"),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target.closest("input, textarea, select, dialog")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const handler = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
    if (!handler || (!steps && "lh0g$GxXnNrd".includes(event.key))) return;
    event.preventDefault();
    handler();
  });

  // --- Clicks and forms ---

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) {
      const items = all(".item", button.closest(".step")).map((item) => item.innerText);
      await navigator.clipboard?.writeText(items.join("\n"));
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
      return;
    }
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    if (steps && "step" in link.dataset) {
      event.preventDefault();
      show(link.dataset.step);
    } else {
      remember(link);
    }
  });

  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-filter]")) event.preventDefault();
    if (!steps || !event.target.matches(".tools")) return;
    event.preventDefault();
    const input = one("#search");
    input.blur();
    search(input.value);
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-toggle]")) applyToggle(event.target);
  });

  // --- One file: its pages are sections, and the fragment of the address names the one shown ---

  let page = null; // the section that is shown
  let packed = null; // what the section shows in place of its steps until they are unpacked
  const positions = new Map(); // where the reader was on a page
  let isForward = false; // the reader has followed a link, and not gone back

  // remember keeps the position on the page that a link leads away from.
  function remember(link) {
    if (!page || !link.hash) return;
    positions.set(page, window.scrollY);
    isForward = link.hash !== location.hash;
  }

  async function unpack(section) {
    const blob = one("script", section);
    if (!blob) return;
    if (!window.DecompressionStream) {
      one(".packed", section).prepend("This browser cannot unpack them: it has no DecompressionStream. ");
      return;
    }
    const bytes = Uint8Array.from(atob(blob.textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const html = await new Response(stream).text();
    if (page !== section) return; // the reader has gone on
    const main = one(".main", section);
    packed = [...main.childNodes];
    main.replaceChildren(parse(html));
    steps = one("#steps", main);
    for (const box of all("[data-toggle]", main)) box.checked = root.classList.contains(toggles[box.dataset.toggle]);
    reserve();
    applyFolding(main);
  }

  function leave() {
    if (packed) one(".main", page).replaceChildren(...packed);
    packed = steps = current = null;
    hits = [];
    page.classList.remove("shown");
  }

  async function route() {
    let [id, step] = [location.hash.slice(1), ""];
    if (!document.getElementById(id)) [, id, step] = /^(.*?)(?:\/s(end|\d+))?$/.exec(id);
    const named = document.getElementById(id);
    const section = named?.matches(".page") ? named : one(".page");
    const top = isForward ? 0 : positions.get(section) || 0;
    isForward = false;
    if (section !== page) {
      if (page) leave();
      page = section;
      page.classList.add("shown");
      document.title = "mini: " + (one("h1", page)?.textContent || "");
      await unpack(section);
      if (page !== section) return;
    }
    if (step && steps) show(step, { push: false });
    else window.scrollTo({ top, behavior: "instant" });
  }

  function filterRows(input) {
    const words = input.value.toLowerCase().split(/\s+/);
    const rows = all("tbody tr", input.closest("section"));
    for (const row of rows) row.hidden = !words.every((w) => row.textContent.toLowerCase().includes(w));
    one(".shown", input.form).textContent = `${rows.filter((r) => !r.hidden).length} of ${rows.length}`;
  }

  async function startFile() {
    root.classList.add("paged");
    document.addEventListener("input", (event) => {
      if (event.target.closest("[data-filter]")) filterRows(event.target);
    });
    window.addEventListener("hashchange", route);
    await route();
  }

  // --- Start ---

  function start() {
    const params = new URLSearchParams(location.search);
    for (const box of all("[data-toggle]")) {
      if (params.has(box.dataset.toggle)) {
        box.checked = true;
        applyToggle(box);
      }
    }
    if (one("[data-poll]")) pollPage();
    if (!steps) return;
    reserve();
    const near = new IntersectionObserver(
      (entries) => entries.forEach((e) => e.isIntersecting && loadChunk(e.target).catch(() => {})),
      { rootMargin: "1500px" },
    );
    for (const chunk of all(".chunk", steps)) near.observe(chunk);
    if ("live" in steps.dataset) pollSteps();
    const wanted = location.hash.startsWith("#s") ? location.hash.slice(2) : params.get("step");
    history.scrollRestoration = "manual";
    if (history.state?.step) restorePosition(history.state);
    else if (wanted) show(wanted, { push: false });
    window.addEventListener("scroll", savePosition, { passive: true });
    if (params.get("q")) searchServer(params.get("q")).then((found) => (hits = found));
    loadRest();
  }

  // loadRest loads the other chunks while the browser is idle, so that its own search finds
  // everything; it stops when the page is large.
  async function loadRest() {
    for (const chunk of all(".chunk[data-missing]", steps)) {
      if (loadedBytes > enough) {
        one("#unloaded").hidden = false;
        return;
      }
      if (!("missing" in chunk.dataset)) continue;
      await new Promise((done) => (window.requestIdleCallback || setTimeout)(done));
      await loadChunk(chunk).catch(() => {});
    }
  }

  window.addEventListener("hashchange", () => {
    if (!isFile && steps && location.hash.startsWith("#s")) show(location.hash.slice(2), { push: false });
  });

  if (isFile) startFile().then(() => (root.dataset.ready = ""));
  else {
    start();
    root.dataset.ready = "";
  }
})();
