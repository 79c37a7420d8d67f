//go:build full

package browsertest_test

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/minibench/mini/cmd/mini/internal/web"
	"github.com/minibench/mini/cmd/mini/internal/web/browsertest"
	"github.com/minibench/mini/cmd/mini/internal/web/webtest"
	"github.com/minibench/mini/runner/runs"
)

// view serves runs as mini view does, and returns the address of the server.
func view(t *testing.T, dirs ...string) string {
	t.Helper()
	viewer := openViewer(t, dirs...)
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = web.NewServer(viewer, []string{server.Listener.Addr().String()}, "")
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func openViewer(t *testing.T, dirs ...string) *web.Viewer {
	t.Helper()
	viewer, err := web.Open(dirs, web.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return viewer
}

// harmfulNames are the elements of which a page of a hostile run has as many as one of a harmless
// run.
var harmfulNames = []string{
	"script", "style", "link", "meta", "base", "iframe", "frame", "object", "embed", "img", "form", "input", "textarea",
	"button", "svg", "title", "dialog", "template", "on*", "script:",
}

// markup is the number of texts with markup, which webtest.Strings returns first.
const markup = 25

// count returns the number of such elements. A page has a title, and each chart has one.
func count(tab *browsertest.Tab) map[string]int {
	n := map[string]int{}
	elements := tab.Elements()
	for _, name := range harmfulNames {
		n[name] = elements[name]
	}
	return n
}

// watch defines pwn, which hostile texts call, in every page that the tab opens.
func watch(tab *browsertest.Tab) { tab.Before(`window.pwn = () => console.error("pwn was called")`) }

// kinds are the pages of an instance that has two attempts.
var kinds = []string{"/r/first/i/%s", "/r/first/i/%s/a/1", "/r/first/i/%s/a/2", "/compare/i/%s"}

// overview are the other pages.
var overview = []string{"/", "/r/first/", "/compare", "/r/none/"}

// TestHostileRun opens the pages of a run that attacks its reader. No page may run a script of the
// run, ask another server or write to the console, which the tab checks, and all must have
// the elements that they have with harmless texts.
func TestHostileRun(t *testing.T) {
	hostile, harmless := runPair(t, webtest.HostileRun), runPair(t, webtest.HarmlessRun)
	address, plain := view(t, hostile...), view(t, harmless...)
	want := map[string]map[string]int{}
	tab := chromium.Tab(t)
	for _, path := range overview {
		open(tab, plain+path)
		want[path] = count(tab)
	}
	for _, kind := range kinds {
		for _, id := range []string{webtest.ID(0), webtest.AllID} {
			open(tab, plain+fmt.Sprintf(kind, id))
			waitChunks(tab)
			want[kind+id] = count(tab)
			if kind == kinds[2] {
				break // AllID has one attempt
			}
		}
	}

	t.Run("overview", func(t *testing.T) {
		tab := chromium.Tab(t)
		watch(tab)
		for _, path := range overview {
			open(tab, address+path)
			check(t, path, count(tab), want[path])
		}
	})
	t.Run("filter", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		webtest.BigRun(t, dir, 1, 1, 1)
		small := view(t, dir)
		tab := chromium.Tab(t)
		watch(tab)
		open(tab, small+"/r/run/?filter=x%3C&sort=x")
		want := count(tab)
		for _, h := range webtest.Strings() {
			if len(h.Text) > 500 {
				continue
			}
			open(tab, small+"/r/run/?filter="+url.QueryEscape(h.Text)+"&sort="+url.QueryEscape(h.Text))
			check(t, h.Name, count(tab), want)
		}
	})
	t.Run("together", func(t *testing.T) {
		tab := chromium.Tab(t)
		watch(tab)
		for _, kind := range []string{kinds[0], kinds[1], kinds[3]} {
			open(tab, address+fmt.Sprintf(kind, webtest.AllID))
			waitChunks(tab)
			check(t, kind, count(tab), want[kind+webtest.AllID])
		}
		tab.Press("]") // what is folded is shown
	})
	t.Run("alone", func(t *testing.T) {
		tab := chromium.Tab(t)
		watch(tab)
		for i, h := range webtest.Strings() {
			for _, kind := range kinds {
				if kind == kinds[3] && i%4 > 0 || kind != kinds[1] && i >= markup && i%4 > 0 {
					continue // the page has the parts of others
				}
				open(tab, address+fmt.Sprintf(kind, webtest.ID(i)))
				check(t, h.Name+" "+kind, count(tab), want[kind+webtest.ID(0)])
				if kind == kinds[1] {
					checkVisible(t, tab, h)
				}
			}
		}
	})
	t.Run("ids", func(t *testing.T) {
		tab := chromium.Tab(t)
		watch(tab)
		for _, id := range ids(t, hostile[0]) {
			if strings.HasPrefix(id, "hostile__") || strings.HasPrefix(id, "all__") {
				continue
			}
			for _, kind := range []string{kinds[0], kinds[1], kinds[3]} {
				open(tab, address+fmt.Sprintf(kind, url.PathEscape(id)))
			}
		}
		open(tab, address+fmt.Sprintf(kinds[1], webtest.NumbersID))
	})
	t.Run("raw", func(t *testing.T) {
		tab := chromium.Tab(t)
		watch(tab)
		for i, h := range webtest.Strings()[:markup] {
			path := []string{"/a/1/raw/1/0", "/a/1/patch", "/log/0", "/a/1/search?q=" + url.QueryEscape(h.Text)}[i%4]
			tab.Load(address + fmt.Sprintf(kinds[0], webtest.ID(i)) + path)
			if n := tab.Elements(); n["script"]+n["img"]+n["iframe"]+n["form"]+n["on*"]+n["svg"] > 0 {
				t.Errorf("%s %s: elements %v", h.Name, path, n)
			}
			ignoreProblems(tab, "browser error: Blocked script execution") // of the test itself: the page is sandboxed
		}
	})
	t.Run("without scripts", func(t *testing.T) {
		tab := chromium.Tab(t)
		tab.DisableScripts()
		for _, kind := range []string{kinds[0], kinds[1], kinds[3]} {
			tab.Open(address + fmt.Sprintf(kind, webtest.AllID))
			check(t, kind+" styles", tab.Elements()["style="], 0)
			check(t, kind+" handlers", tab.Elements()["on*"], 0)
		}
	})
}

// runPair writes a run, and returns its folder and another folder of the same files, for a
// comparison.
func runPair(t *testing.T, write func(testing.TB, string)) []string {
	t.Helper()
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	write(t, first)
	if err := filepath.Walk(first, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		to := second + strings.TrimPrefix(path, first)
		if info.IsDir() {
			return os.MkdirAll(to, 0o750)
		}
		return os.Link(path, to)
	}); err != nil {
		t.Fatal(err)
	}
	return []string{first, second}
}

// ids returns the ids of the instances of a run, in the order of its page.
func ids(t *testing.T, dir string) (all []string) {
	t.Helper()
	run, err := runs.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range run.Instances {
		all = append(all, in.ID)
	}
	return all
}

// open opens a page, which may be one that says that there is no such page.
func open(tab *browsertest.Tab, address string) {
	tab.Open(address)
	ignoreProblems(tab, "browser error: Failed to load resource: the server responded with a status of 404")
}

// ignoreProblems forgets problems that begin with one of the given texts.
func ignoreProblems(tab *browsertest.Tab, expected ...string) {
	for _, p := range tab.Problems() {
		if !slices.ContainsFunc(expected, func(e string) bool { return strings.HasPrefix(p, e) }) {
			tab.Report(p)
		}
	}
}

// waitChunks waits until all steps are loaded, if the page has any.
func waitChunks(tab *browsertest.Tab) {
	tab.Wait(`!document.querySelector(".chunk[data-missing]")`)
}

// checkVisible checks that a page shows a text that needs no marks.
func checkVisible(t *testing.T, tab *browsertest.Tab, h webtest.Hostile) {
	t.Helper()
	isPlain := func(r rune) bool { return r < unicode.MaxASCII && unicode.IsPrint(r) }
	if len(h.Text) > 1000 || strings.ContainsFunc(h.Text, func(r rune) bool { return !isPlain(r) }) {
		return
	}
	for _, kind := range []string{"reply", "command", "output"} {
		texts := browsertest.Eval[[]string](tab, `[...document.querySelectorAll("#s1 .item.`+kind+` .text")].map(e => e.textContent)`)
		if !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, h.Text) }) {
			t.Errorf("%s: the %s is shown as %.300q", h.Name, kind, texts)
		}
	}
}
