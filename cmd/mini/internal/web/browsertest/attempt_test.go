//go:build full

package browsertest_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/minibench/mini/cmd/mini/internal/web/browsertest"
	"github.com/minibench/mini/cmd/mini/internal/web/webtest"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
)

// top returns the name of the first step below the header.
const top = `[...document.querySelectorAll(".step")].find(s => s.getBoundingClientRect().bottom > 60)?.dataset.step`

func currentStep(tab *browsertest.Tab) string {
	return browsertest.Eval[string](tab, `document.querySelector(".step.current")?.dataset.step ?? ""`)
}

func waitCurrent(tab *browsertest.Tab, step string) {
	tab.Wait(`document.querySelector(".step.current")?.dataset.step === "` + step + `"`)
}

// instanceOf returns the path of an instance of webtest.BigRun, and attemptOf that of its first
// attempt.
func instanceOf(run string, i int) string { return "/r/" + run + "/i/" + webtest.BigID(i) }

func attemptOf(run string, i int) string { return instanceOf(run, i) + "/a/1" }

// TestLongAttempt opens an attempt of 5,000 steps.
func TestLongAttempt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.LongAttempt(t, dir)
	address := view(t, dir)
	attempt := address + "/r/run/i/" + webtest.LongID + "/a/1"

	t.Run("permalink", func(t *testing.T) {
		tab := chromium.Tab(t)
		tab.Load(attempt + "?step=4711#s4711")
		tab.Wait(`document.querySelector("#s4711")?.getBoundingClientRect().top < innerHeight`)
		tab.WaitReady()
		// Loading the rest does not move it away.
		waitChunksOrLimit(tab)
		check(t, "step", currentStep(tab), "4711")
		if at := browsertest.Eval[float64](tab, `document.querySelector("#s4711").getBoundingClientRect().top`); at < 0 || at > 120 {
			t.Errorf("step 4711 is %.0f pixels below the top", at)
		}
	})
	t.Run("search", func(t *testing.T) {
		tab := chromium.Tab(t)
		tab.Open(attempt)
		tab.Press("/")
		tab.Wait(`document.activeElement.id === "search"`)
		tab.Press(webtest.RareWord + "\r")
		waitCurrent(tab, fmt.Sprint(webtest.RareStep))
		check(t, "hits", tab.Text("#hits"), "1 step")
		tab.Wait(`[...document.querySelectorAll("mark")].some(m => m.textContent === "` + webtest.RareWord + `" && m.checkVisibility() && m.getBoundingClientRect().top < innerHeight && m.getBoundingClientRect().bottom > 0)`)
		tab.Press("0")
		waitCurrent(tab, "0")
		tab.Press("n")
		waitCurrent(tab, fmt.Sprint(webtest.RareStep))
		if !strings.Contains(browsertest.Eval[string](tab, "location.search"), "q="+webtest.RareWord) {
			t.Error("the address does not have the search")
		}
	})
	t.Run("limit of what is loaded", func(t *testing.T) {
		tab := chromium.Tab(t)
		tab.Open(attempt)
		tab.Wait(`document.querySelector("#unloaded").checkVisibility()`)
		if n := browsertest.Eval[int](tab, `document.querySelectorAll(".chunk[data-missing]").length`); n == 0 {
			t.Error("all is loaded")
		}
	})
	t.Run("history", func(t *testing.T) {
		tab := chromium.Tab(t)
		tab.Open(attempt)
		tab.Press("ll")
		waitCurrent(tab, "2")
		for _, position := range []int{2000, 40_000, 400_000} {
			browsertest.Eval[int](tab, fmt.Sprintf(`scrollTo({top: %d, behavior: "instant"}), 1`, position))
			tab.Wait(`[...document.querySelectorAll(".step")].some(s => s.getBoundingClientRect().top < innerHeight && s.getBoundingClientRect().bottom > 0)`)
			tab.Wait(`history.state?.step === ` + top) // the page has stored its position
			step := browsertest.Eval[string](tab, top)
			tab.Click("a.brand")
			tab.Wait(`location.pathname === "/"`)
			tab.WaitReady()
			tab.Back()
			tab.Wait(top + ` === "` + step + `"`)
			tab.Forward()
			tab.Back()
			tab.Wait(top + ` === "` + step + `"`)
		}
	})
}

// TestBrowserSearch searches as Ctrl-F does, once all steps are loaded.
func TestBrowserSearch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 1, 1, 400)
	tab := chromium.Tab(t)
	tab.Open(view(t, dir) + attemptOf("run", 0))
	waitChunks(tab)
	for _, text := range []string{"step 395 of attempt 1", "sed -n '390,450p'"} {
		check(t, text, browsertest.Eval[bool](tab, fmt.Sprintf(`window.find(%q)`, text)), true)
		browsertest.Eval[bool](tab, `getSelection().removeAllRanges() ?? true`)
	}
	check(t, "text that is not there", browsertest.Eval[bool](tab, `window.find("step 401 of attempt 1")`), false)
}

// waitChunksOrLimit waits until no chunk is loaded any more: all are there, or enough.
func waitChunksOrLimit(tab *browsertest.Tab) {
	tab.Wait(`(() => {
		const left = document.querySelectorAll(".chunk[data-missing]").length
		const same = window.browsertestLeft === left
		window.browsertestSame = same ? (window.browsertestSame ?? 0) + 1 : 0
		window.browsertestLeft = left
		return left === 0 || window.browsertestSame > 50
	})()`)
}

// TestKeys presses the keys of an attempt of a small run.
func TestKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.HarmlessRun(t, dir)
	address := view(t, dir)
	list := ids(t, dir)
	next := list[slices.Index(list, webtest.ID(3))+1]
	attempt := address + "/r/run/i/" + webtest.ID(3) + "/a/1"
	tab := chromium.Tab(t)
	tab.Open(attempt)
	for _, tt := range []struct{ key, step string }{
		{"l", "1"}, {"l", "2"}, {"h", "1"}, {"$", "end"}, {"0", "0"}, {"G", "end"}, {"g", "0"}, {"x", "1"}, {"x", "1"}, {"G", "end"}, {"X", "1"},
	} {
		tab.Press(tt.key)
		waitCurrent(tab, tt.step)
	}
	if !strings.Contains(browsertest.Eval[string](tab, "location.href"), "?step=1#s1") {
		t.Error("the address does not follow the step")
	}
	check(t, "outline", browsertest.Eval[int](tab, `document.querySelectorAll(".outline [aria-current]").length`), 1)

	tab.Press("r")
	tab.Wait(`document.documentElement.classList.contains("hide-reasoning") && location.search.includes("reasoning=1")`)
	tab.Reload()
	tab.Wait(`document.querySelector("[data-toggle=reasoning]").checked && document.documentElement.classList.contains("hide-reasoning")`)
	tab.Press("r")
	tab.Wait(`!location.search.includes("reasoning")`)
	for name, class := range map[string]string{"outputs": "hide-outputs", "errors": "only-errors"} {
		tab.Click("[data-toggle=" + name + "]")
		tab.Wait(`document.documentElement.classList.contains("` + class + `") && location.search.includes("` + name + `=1")`)
		tab.Click("[data-toggle=" + name + "]")
		tab.Wait(`!location.search.includes("` + name + `")`)
	}
	browsertest.Eval[bool](tab, `document.activeElement.blur() ?? true`)

	tab.Press("]")
	tab.Wait(`[...document.querySelectorAll(".step details")].every(d => d.open)`)
	tab.Press("[")
	tab.Wait(`![...document.querySelectorAll(".step details")].some(d => d.open)`)
	tab.Press("d")
	check(t, "patch in view", tab.InView("#patch h2"), true)

	tab.Press("?")
	tab.Wait(`document.querySelector("#help").open`)
	tab.Press(kb.Escape)
	tab.Wait(`!document.querySelector("#help").open`)
	check(t, "page", browsertest.Eval[string](tab, "location.pathname"), strings.TrimPrefix(attempt, address))

	// Keys with Ctrl are the browser's, and those in a field belong to it.
	tab.Press("0")
	waitCurrent(tab, "0")
	tab.Press("l", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	tab.Press("/")
	tab.Press("lG")
	check(t, "field", browsertest.Eval[string](tab, `document.querySelector("#search").value`), "lG")
	check(t, "step", currentStep(tab), "0")
	tab.Press(kb.Escape)
	tab.Wait(`document.activeElement === document.body`)

	for _, tt := range []struct{ key, path string }{
		{"L", "/r/run/i/" + next}, {"H", "/r/run/i/" + webtest.ID(3)}, {kb.Escape, "/r/run/"}, {kb.Escape, "/"},
	} {
		before := browsertest.Eval[string](tab, "location.pathname")
		tab.Press(tt.key)
		tab.Wait(`location.pathname !== "` + before + `"`)
		tab.WaitReady()
		if path := browsertest.Eval[string](tab, "location.pathname"); !strings.HasPrefix(path, tt.path) {
			t.Errorf("%s leads to %s, want %s", tt.key, path, tt.path)
		}
	}
}

// varying matches the parts of an address that pages of one kind do not share: numbers, and
// values of parameters.
var varying = regexp.MustCompile(`\d+|=[^&]*`)

// TestWithoutScripts follows links and uses forms with scripts turned off.
func TestWithoutScripts(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	webtest.BigRun(t, first, 4, 2, 150)
	webtest.BigRun(t, second, 4, 2, 150)
	address := view(t, first, second)
	tab := chromium.Tab(t)
	tab.DisableScripts()
	// The links of each kind of page lead to pages.
	queue, seen := []string{address + "/"}, map[string]bool{}
	kinds := map[string]int{}
	for len(queue) > 0 {
		page := queue[0]
		queue = queue[1:]
		path, _, _ := strings.Cut(strings.TrimPrefix(page, address), "#")
		kind := varying.ReplaceAllString(path, "")
		if seen[path] || kinds[kind] >= 2 {
			continue
		}
		seen[path] = true
		kinds[kind]++
		tab.Open(page)
		if text := tab.Text("body"); len(text) < 3 {
			t.Errorf("%s: text %q", path, text)
		}
		queue = append(queue, browsertest.Eval[[]string](tab, `[...document.links].map(a => a.href)`)...)
		ignoreProblems(tab, "browser error: Blocked script execution") // of the test itself, in a raw text
	}

	tab.Open(address + attemptOf("first", 0))
	check(t, "step 140", tab.Text("#s140"), "(no such element)")
	tab.Wait(`document.querySelector("#s1").textContent.includes("step 1 of attempt 1")`)
	// The placeholder leads to the steps.
	tab.Open(browsertest.Eval[string](tab, `[...document.querySelectorAll(".chunk[data-missing] a")].at(-1).href`))
	tab.Wait(`document.querySelector("#s140").textContent.includes("step 140 of attempt 1")`)
	tab.Open(address + attemptOf("first", 0) + "?step=140#s140")
	tab.Wait(`document.querySelector("#s140")?.getBoundingClientRect().top < innerHeight`)
	tab.Type("#search", "step 120 of")
	tab.Wait(`document.querySelector(".hits a")?.dataset.step === "120"`)
	tab.Click(".hits a")
	tab.Wait(`document.querySelector("#s120")?.getBoundingClientRect().top < innerHeight`)

	tab.Open(address + "/r/first/")
	check(t, "count", tab.Text(".shown"), "4 of 4")
	tab.Type("#filter", "status:limit")
	tab.Wait(`document.querySelector(".shown")?.innerText === "2 of 4"`)
	tab.Open(address + "/r/first/")
	tab.Click(`th a[href*="sort=-id"]`)
	tab.Wait(`location.search.includes("sort=-id")`)
	tab.WaitReady()
	check(t, "sorted", browsertest.Eval[string](tab, `document.querySelector("[aria-sort]").ariaSort`), "descending")
}

// TestPrint prints pages.
func TestPrint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 3, 1, 30)
	address := view(t, dir)
	tab := chromium.Tab(t)
	for path, pages := range map[string]int{"/r/run/": 1, instanceOf("run", 0): 1, attemptOf("run", 0): 8} {
		tab.Open(address + path)
		if n := browsertest.Pages(tab.PDF()); n < pages {
			t.Errorf("%s: %d pages, want at least %d", path, n, pages)
		}
		tab.SetView(browsertest.View{Width: 800, Media: "print"})
		for _, hidden := range []string{".top", "form.tools", ".outline", ".copy", "#help"} {
			check(t, hidden+" is printed", browsertest.Eval[bool](tab, `!!document.querySelector("`+hidden+`")?.checkVisibility()`), false)
		}
		check(t, "overflow", tab.Overflow(), 0)
		tab.SetView(browsertest.View{Width: 1280})
	}
}

// TestAccessibleNames checks that what a reader can operate has a name.
func TestAccessibleNames(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	webtest.BigRun(t, first, 4, 2, 5)
	webtest.BigRun(t, second, 4, 2, 5)
	address := view(t, first, second)
	tab := chromium.Tab(t)
	for _, path := range []string{"/", "/r/first/", instanceOf("first", 1), attemptOf("first", 1), "/compare", "/compare/i/" + webtest.BigID(1), "/r/none/"} {
		open(tab, address+path)
		for _, role := range []string{"button", "link", "textbox", "searchbox", "checkbox", "combobox", "image", "navigation", "DisclosureTriangle", "dialog"} {
			for i, node := range tab.Accessible(role) {
				if strings.TrimSpace(node.Name) == "" {
					t.Errorf("%s: the %s %d has no name", path, role, i)
				}
			}
		}
		if n := len(tab.Accessible("heading")); n == 0 {
			t.Errorf("%s has no heading", path)
		}
	}
}

// TestGrowingRun appends to a journal while a page shows it.
func TestGrowingRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 1, 1, 90)
	journal := filepath.Join(dir, webtest.BigID(0), "attempts", "1", "journal.jsonl")
	data, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines = lines[:len(lines)-1]
	// Until the end of the test this process works on the run.
	folder, err := runner.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if _, err := folder.StartSession(runs.Manifest{}, nil); err != nil {
		t.Fatal(err)
	}
	// Each step has 4 records, after a header and 2 prompts.
	until := func(step int) []byte { return bytes.Join(lines[:3+4*step], nil) }
	write := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(journal, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(until(40))
	address := view(t, dir)
	tab := chromium.Tab(t)
	tab.Open(address + attemptOf("run", 0))
	tab.Wait(`document.querySelector("#steps[data-live]") && document.querySelector("#s40")`)
	tab.Press("g")
	for range 5 {
		tab.Press("l")
	}
	waitCurrent(tab, "5")
	at := `document.querySelector("#s5").getBoundingClientRect().top`
	before := browsertest.Eval[float64](tab, `(async () => {
		let last = null
		for (let same = 0; same < 20;) { // frames without a movement
			const now = `+at+`
			same = now === last ? same + 1 : 0
			last = now
			await new Promise(requestAnimationFrame)
		}
		return last
	})()`)
	// Half a record is not shown, whole ones are.
	write(append(until(42), lines[3+4*42][:20]...))
	tab.Wait(`document.querySelector(".new")?.textContent === "2 new steps"`)
	check(t, "step 43", tab.Text("#s43"), "(no such element)")
	if after := browsertest.Eval[float64](tab, at); after != before {
		t.Errorf("the page moved from %.0f to %.0f", before, after)
	}
	check(t, "current step", currentStep(tab), "5")
	check(t, "outline", browsertest.Eval[bool](tab, `document.querySelector('.outline a[data-step="42"]').textContent.includes("step 42 of attempt 1")`), true)
	tab.Click(".new")
	waitCurrent(tab, "42")
	tab.Wait(`!document.querySelector(".new")`)

	// At the end the page follows.
	browsertest.Eval[bool](tab, `(async () => {
		for (let still = 0; still < 5;) {
			still = scrollY + innerHeight >= document.documentElement.scrollHeight - 2 ? still + 1 : 0
			scrollTo({top: document.documentElement.scrollHeight, behavior: "instant"})
			await new Promise(requestAnimationFrame)
		}
		return true
	})()`)
	write(until(44))
	tab.Wait(`document.querySelector("#s44")`)
	tab.Wait(`scrollY + innerHeight > document.body.scrollHeight - 250`)
	check(t, "button", tab.Text(".new"), "(no such element)")
	write(data)
	tab.Wait(`document.querySelector("#send")`)
	check(t, "all steps", browsertest.Eval[string](tab, `[...document.querySelectorAll(".step")].map(s => s.dataset.step).join()`), allSteps(90))
}

// allSteps returns the names of the steps of an attempt.
func allSteps(n int) string {
	var names []string
	for i := range n + 1 {
		names = append(names, fmt.Sprint(i))
	}
	return strings.Join(append(names, "end"), ",")
}
