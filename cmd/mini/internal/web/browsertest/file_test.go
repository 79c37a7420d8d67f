//go:build full

package browsertest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/web"
	"github.com/minibench/mini/cmd/mini/internal/web/browsertest"
	"github.com/minibench/mini/cmd/mini/internal/web/webtest"
)

// writeFile writes runs into one file, and returns its address.
func writeFile(t *testing.T, o web.FileOptions, dirs ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openViewer(t, dirs...).WriteFile(t.Context(), f, o); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return "file://" + name
}

// TestHostileFile opens the pages of a hostile run in one file.
func TestHostileFile(t *testing.T) {
	hostile, harmless := runPair(t, webtest.HostileRun), runPair(t, webtest.HarmlessRun)
	counts := func(dirs []string) (all []map[string]int) {
		tab := chromium.Tab(t)
		watch(tab)
		address := writeFile(t, web.FileOptions{}, dirs...)
		tab.Open(address)
		all = append(all, count(tab))
		for _, kind := range []string{"#home", "#r/first", "#compare", "#holds", "#r/first/i/" + webtest.AllID, "#r/first/i/" + webtest.AllID + "/a/1"} {
			tab.Open(address + kind)
			tab.Wait(`(() => {
				const page = document.getElementById(location.hash.slice(1)) ?? document.querySelector(".page")
				return page.matches(".shown") && !page.querySelector(".packed")
			})()`)
			all = append(all, count(tab))
		}
		return all
	}
	check(t, "elements", counts(hostile), counts(harmless))
}

// TestFile opens a file of two runs from the disk.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	webtest.BigRun(t, first, 4, 2, 40)
	webtest.BigRun(t, second, 4, 2, 40)
	address := writeFile(t, web.FileOptions{Steps: web.AllSteps}, first, second)
	tab := chromium.Tab(t)
	tab.Open(address)
	check(t, "first page", tab.Text(".page.shown h1"), "Compare 2 runs")
	tab.Open(address + "#" + attemptOf("first", 1)[1:] + "/s30") // a permalink from cold
	waitCurrent(tab, "30")
	check(t, "step in view", tab.InView("#s30"), true)
	for _, tt := range []struct{ key, step string }{{"l", "31"}, {"h", "30"}, {"G", "end"}, {"g", "0"}} {
		tab.Press(tt.key)
		waitCurrent(tab, tt.step)
	}
	check(t, "address", browsertest.Eval[string](tab, "location.hash"), "#"+attemptOf("first", 1)[1:]+"/s0")
	tab.Press("L")
	tab.Wait(`location.hash === "#` + instanceOf("first", 2)[1:] + `"`)
	tab.Press("/") // no field here: nothing happens

	tab = chromium.Tab(t) // without scripts, all but the steps is there
	tab.DisableScripts()
	tab.Open(address)
	for _, text := range []string{"Compare 2 runs", "owner0__project-1000", "+attempt 1"} {
		check(t, text, browsertest.Eval[bool](tab, `document.body.textContent.includes("`+text+`")`), true)
	}
}
