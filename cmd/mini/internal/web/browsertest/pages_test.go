//go:build full

package browsertest_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/minibench/mini/cmd/mini/internal/web/browsertest"
	"github.com/minibench/mini/cmd/mini/internal/web/webtest"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/labels"
	"github.com/minibench/mini/runner/runs"
)

// tabTo presses the tab key until an element has the focus.
func tabTo(tab *browsertest.Tab, selector string) {
	for !browsertest.Eval[bool](tab, `document.activeElement.matches('`+selector+`')`) {
		tab.Press(kb.Tab)
	}
}

// TestChooseRuns chooses runs of the list with the mouse and with the keyboard, and compares them.
func TestChooseRuns(t *testing.T) {
	dir := t.TempDir()
	var dirs []string
	for _, name := range []string{"first", "second", "exp/a=1", "exp/a=2"} {
		dirs = append(dirs, filepath.Join(dir, name))
		webtest.BigRun(t, dirs[len(dirs)-1], 3, 1, 2)
	}
	address := view(t, dirs...)
	tab := chromium.Tab(t)
	tab.Open(address + "/")
	check(t, "sweep", tab.Text(".sweep"), "\texp 2 runs; compare them")
	tab.Click(`[value="first"]`)
	tab.Click(`[value="exp/a=1"]`)
	tab.Click("#chosen button")
	tab.Wait(`location.pathname === "/compare"`)
	tab.WaitReady()
	check(t, "with the mouse", tab.Text("h1"), "Compare 2 runs")

	tab.Open(address + "/?sort=name")
	for _, name := range []string{"exp/a=2", "second"} {
		tabTo(tab, `[value="`+name+`"]`)
		tab.Press(" ")
	}
	tab.Click(".sweep a") // a link leaves the choice alone
	tab.Wait(`location.pathname === "/compare"`)
	tab.WaitReady()
	if h := tab.Text(".headline"); !strings.Contains(h, "exp/a=1") || !strings.Contains(h, "exp/a=2") {
		t.Errorf("headline %q", h)
	}
	tab.Open(address + "/?sort=name")
	for _, name := range []string{"exp/a=2", "second"} {
		tabTo(tab, `[value="`+name+`"]`)
		tab.Press(" ")
	}
	tab.Press("\r") // in a check box, the key sends the form
	tab.Wait(`location.pathname === "/compare"`)
	tab.WaitReady()
	if h := tab.Text(".headline"); !strings.Contains(h, "exp/a=2") || !strings.Contains(h, "second") {
		t.Errorf("headline %q", h)
	}

	tab.Open(address + "/")
	tab.Type("#filter", "exp")
	tab.Wait(`document.querySelector(".shown")?.innerText === "2 of 4"`)
	tab.Click(`th a[href*="sort=name"]`)
	tab.Wait(`location.search.includes("sort=name")`)
	tab.WaitReady()
	check(t, "filter and order", tab.Text("tbody tr:nth-child(2) a"), "a=1")
}

// TestSetLabels sets labels and a note on the page of an instance while a process works on the run,
// with and without scripts.
func TestSetLabels(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 2, 1, 2)
	folder, err := runner.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if _, err := folder.StartSession(runs.Manifest{}, nil); err != nil {
		t.Fatal(err)
	}
	address := view(t, dir)
	for _, scripts := range []bool{true, false} {
		tab := chromium.Tab(t)
		if !scripts {
			tab.DisableScripts()
		}
		id := webtest.BigID(1)
		tab.Open(address + "/r/run/i/" + id)
		tab.Type("#add", "flaky")
		tab.Wait(`document.querySelector("button[value=flaky]")`)
		tab.WaitReady()
		tabTo(tab, "#note")
		note := "slow </textarea><script>pwn()</script>"
		tab.Press(note)
		tabTo(tab, "#note + button")
		tab.Press("\r")
		tab.Wait(`document.querySelector("#note").defaultValue !== ""`)
		tab.WaitReady()
		check(t, "note", browsertest.Eval[string](tab, `document.querySelector("#note").value`), note)
		words, notes, err := labels.ReadAll(dir)
		if err != nil || !slices.Equal(words[id], []string{"flaky"}) || notes[id] != note {
			t.Errorf("%v, %v, %v", words, notes, err)
		}
		tab.Open(address + "/r/run/?filter=label:flaky")
		check(t, "rows with the label", tab.Text(".shown"), "1 of 2")
		check(t, "marks", tab.Text("tbody td"), id+" flaky note")
		tab.Click("tbody a")
		tab.Wait(`document.querySelector("button[value=flaky]")`)
		tab.WaitReady()
		tab.Click("button[value=flaky]")
		tab.Wait(`document.querySelector("#add") && !document.querySelector("button[value=flaky]")`)
		tab.WaitReady()
		if err := labels.SetNote(dir, id, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadingAnInstance reads why an instance is not resolved: from the run to the log of a test.
func TestReadingAnInstance(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 6, 1, 3)
	tab := chromium.Tab(t)
	tab.Open(view(t, dir) + "/r/run/")
	check(t, "charts", browsertest.Eval[int](tab, `document.querySelectorAll("figure svg").length`) >= 5, true)
	row := browsertest.Eval[string](tab, `[...document.querySelectorAll("tbody tr")].map(r => r.innerText).find(r => r.includes("tests failed"))`)
	if !strings.Contains(row, "2 of 2 tests failed") {
		t.Errorf("row %q", row)
	}
	if all := tab.Text("tbody"); !strings.Contains(all, "no result, the model provider failed: RateLimited") {
		t.Errorf("rows %s", all)
	}
	tab.Click(`td a.U`)
	tab.Wait(`location.pathname.endsWith("/a/1")`)
	tab.WaitReady()
	tab.Click(`[data-go=up]`)
	tab.Wait(`document.querySelector(".issue")`)
	tab.WaitReady()
	check(t, "issue is seen first", tab.InView(".issue"), true)
	if text := tab.Text("main"); strings.Index(text, "Fix the bug.") > strings.Index(text, "Verdict\n") {
		t.Errorf("the verdict is before the issue: %.500s", text)
	}
}

// TestTimelineLinks clicks on a bar of the timeline.
func TestTimelineLinks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 1, 1, 20)
	address := view(t, dir)
	tab := chromium.Tab(t)
	tab.Open(address + attemptOf("run", 0))
	tab.Click(`svg a[data-step="17"] rect`)
	waitCurrent(tab, "17")
	check(t, "output that is there before", browsertest.Eval[string](tab, `document.querySelector("#s2 details.output > summary").textContent`), "the same output as in step 1")
	check(t, "list of steps", strings.Contains(tab.Text(`.outline a[data-step="17"]`), "step 17 of attempt 1. I look at the `source`."), true)
	tab.SetView(browsertest.View{Width: 390, Height: 844})
	check(t, "title is before the list of steps", browsertest.Eval[bool](tab,
		`document.querySelector("h1").getBoundingClientRect().top < document.querySelector(".outline").getBoundingClientRect().top`), true)
	check(t, "overflow", tab.Overflow(), 0)
}
