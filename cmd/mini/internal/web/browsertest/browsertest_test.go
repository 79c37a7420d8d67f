//go:build full

package browsertest_test

import (
	"bytes"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/cmd/mini/internal/web/browsertest"
)

var chromium browsertest.Browser

func TestMain(m *testing.M) { os.Exit(chromium.Run(m)) }

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; trusted-types mini"

const good = `<!doctype html><html lang=en><title>good</title><meta name=viewport content="width=device-width">
<link rel=icon href="/script.js"><h1>Hello</h1><details><summary>more</summary><p>folded</p></details>
<p id=keys></p><input id=filter aria-label=filter><button>copy</button><button aria-label="next step">&gt;</button>
<a id=next href="/next">next</a><noscript><p id=off>no scripts</p></noscript><script src="/script.js"></script>`

const script = `document.addEventListener("keydown", e => {
	if (e.key === "c") navigator.clipboard.writeText("copied text")
	if (e.target.id !== "filter" && !e.ctrlKey) document.querySelector("#keys").append(e.key)
})
setTimeout(() => document.documentElement.dataset.ready = "", 200)`

// serve serves a page at / and at /next with the content security policy, and scripts.
func serve(t *testing.T, body string) string {
	t.Helper()
	mux := http.NewServeMux()
	text := func(kind, s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Content-Security-Policy", policy)
			_, _ = w.Write([]byte(s))
		}
	}
	mux.Handle("/", text("text/html; charset=utf-8", body))
	mux.Handle("/script.js", text("text/javascript", script))
	mux.Handle("/missing", http.NotFoundHandler())
	for name, s := range scripts {
		mux.Handle("/"+name+".js", text("text/javascript", `document.documentElement.dataset.ready = "";`+s))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// scripts are what a page must not do.
var scripts = map[string]string{
	"console":   `console.error("broken", 7)`,
	"warning":   `console.warn("careful")`,
	"exception": `setTimeout(() => { throw new Error("thrown") })`,
	"rejection": `Promise.reject(new Error("rejected"))`,
	"dialog":    `alert("hello")`,
	"window":    `window.open("about:blank")`,
	"fetch":     `fetch("https://evil.example/x").catch(() => {})`,
	"missing":   `fetch("/missing")`,
	"sink":      `document.querySelector("p").innerHTML = "<b>x</b>"`,
	"eval":      `try { eval("1") } catch {}`,
}

// TestProblems checks that each problem is seen, and nothing else.
func TestProblems(t *testing.T) {
	tests := map[string]struct {
		body string   // instead of a script
		want []string // part of a problem each; all problems have one of them
	}{
		"console":   {want: []string{"console error: broken 7"}},
		"warning":   {want: []string{"console warning: careful"}},
		"exception": {want: []string{"exception: Uncaught Error: thrown"}},
		"rejection": {want: []string{"exception: Uncaught (in promise) Error: rejected"}},
		"dialog":    {want: []string{"dialog: alert: hello"}},
		"window":    {want: []string{"window opened: about:blank"}},
		"fetch":     {want: []string{"content security policy: connect-src", "browser error: "}},
		"missing":   {want: []string{"browser error: Failed to load resource: the server responded with a status of 404"}},
		"sink":      {want: []string{"content security policy: require-trusted-types-for", "browser error: This document requires 'TrustedHTML'", "exception: Uncaught TypeError"}},
		"eval":      {want: []string{"content security policy: require-trusted-types-for", "browser error: This document requires 'TrustedScript'"}},
		"inline script": {
			`<script>console.error("ran")</script>`,
			[]string{"content security policy: script-src-elem", "browser error: Executing inline script"},
		},
		"handler": {
			`<img src="/missing" onerror="alert(1)">`,
			[]string{"content security policy: script-src-attr", "browser error"},
		},
		"style":   {`<p style="color: red">x</p>`, []string{"content security policy: style-src-attr", "browser error: Applying inline style"}},
		"image":   {`<img src="https://evil.example/x.png">`, []string{"content security policy: img-src", "browser error: Loading the image", "foreign request: GET https://evil.example/x.png"}},
		"data":    {`<img src="data:image/gif;base64,AA">`, []string{"content security policy: img-src", "browser error: Loading the image", "foreign request: GET data:"}},
		"frame":   {`<iframe src="https://evil.example/"></iframe>`, []string{"content security policy: frame-src", "browser error: Framing"}},
		"base":    {`<base href="https://evil.example/">`, []string{"content security policy: base-uri", "browser error"}},
		"nothing": {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			body := tt.body
			if scripts[name] != "" {
				body = `<script src="/` + name + `.js"></script>`
			} else {
				body += `<script src="/script.js"></script>`
			}
			address := serve(t, "<!doctype html><link rel=icon href=/script.js><p>x</p>"+body)
			tab := chromium.Tab(t)
			tab.Open(address)
			var problems []string
			for end := time.Now().Add(time.Minute); len(problems) < len(tt.want) && time.Now().Before(end); {
				problems = append(problems, tab.Problems()...)
			}
			for _, w := range tt.want {
				if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, w) }) {
					t.Errorf("no problem %q in %q", w, problems)
				}
			}
			for _, p := range problems {
				if !slices.ContainsFunc(tt.want, func(w string) bool { return strings.Contains(p, w) }) {
					t.Errorf("unexpected problem %q", p)
				}
			}
		})
	}
}

// TestForeignRequests loads a page that no policy restrains, from a server and from a
// file, with scripts turned off.
func TestForeignRequests(t *testing.T) {
	const page = `<!doctype html><link rel=icon href="data:,"><img src="https://evil.example/x.png">`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(page))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{server.URL, "file://" + file} {
		tab := chromium.Tab(t)
		tab.DisableScripts()
		tab.Open(address)
		problems := strings.Join(tab.Problems(), "\n")
		if !strings.Contains(problems, "foreign request: GET https://evil.example/x.png") ||
			!strings.Contains(problems, "net::ERR_NAME_NOT_RESOLVED") {
			t.Errorf("%s: problems %s", address, problems)
		}
	}
}

// TestTab tries what tests do with a page.
func TestTab(t *testing.T) {
	address := serve(t, good)
	tab := chromium.Tab(t)
	tab.Open(address)
	tab.Press("jk")
	tab.Press("x", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	tab.Click("#filter")
	tab.Press("ab")
	check(t, "keys", tab.Text("#keys"), "jk")
	check(t, "filter", browsertest.Eval[string](tab, `document.querySelector("#filter").value`), "ab")
	tab.Press("c")
	check(t, "clipboard", tab.Clipboard(), "copied text")
	check(t, "folded text", tab.InView("details p"), false)
	tab.Click("summary")
	check(t, "unfolded text", tab.InView("details p"), true)

	check(t, "buttons", tab.Accessible("button"), []browsertest.Node{{Role: "button", Name: "copy"}, {Role: "button", Name: "next step"}})
	elements := tab.Elements()
	for name, want := range map[string]int{"script": 1, "button": 2, "iframe": 0, "on*": 0, "style=": 0, "script:": 0} {
		check(t, name, elements[name], want)
	}

	tab.Click("#next")
	tab.Wait(`location.pathname === "/next"`)
	tab.WaitReady()
	tab.Back()
	check(t, "path", browsertest.Eval[string](tab, "location.pathname"), "/")
	tab.Forward()
	check(t, "path", browsertest.Eval[string](tab, "location.pathname"), "/next")
	if !slices.Contains(tab.Requests(), browsertest.Request{Method: "GET", URL: address + "/next"}) {
		t.Errorf("requests: %v", tab.Requests())
	}
}

func TestElements(t *testing.T) {
	address := serve(t, `<!doctype html><link rel=icon href=/script.js><svg onload="x()"></svg><a href=" java&#9;script:x()">a</a><form action="data:,x"></form>`)
	tab := chromium.Tab(t)
	tab.DisableScripts()
	tab.Load(address)
	tab.Problems() // the policy refuses the handler, which no script runs anyhow
	elements := tab.Elements()
	for name, want := range map[string]int{"svg": 1, "on*": 1, "script:": 2, "form": 1} {
		check(t, name, elements[name], want)
	}
}

func TestScriptsOff(t *testing.T) {
	address := serve(t, good)
	tab := chromium.Tab(t)
	tab.DisableScripts()
	tab.Open(address)
	check(t, "noscript", tab.Text("#off"), "no scripts")
	check(t, "ready", browsertest.Eval[bool](tab, `"ready" in document.documentElement.dataset`), false)

	tab = chromium.Tab(t) // another tab has them
	tab.Open(address)
	check(t, "noscript", tab.Text("#off"), "(no such element)")
}

func TestPicture(t *testing.T) {
	const page = `<!doctype html><link rel=icon href=/script.js><meta name=viewport content="width=device-width">
<link rel=stylesheet href=/style.css><h1>Tall</h1><p id=wide>wide</p><p id=print>printed</p>`
	const style = `html { background: #fff } body { height: 3000px; margin: 0 } h1 { margin: 0 } #print { display: none } #wide { width: 500px }
@media (prefers-color-scheme: dark) { html { background: #000 } }
@media print { #print { display: block } body { height: auto } }`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(page))
			return
		}
		w.Header().Set("Content-Type", "text/css")
		_, _ = w.Write([]byte(style))
	}))
	defer server.Close()
	tab := chromium.Tab(t)
	tab.Load(server.URL)
	for _, tt := range []struct {
		view          browsertest.View
		limit, height int
		corner        uint32
	}{
		{browsertest.View{Width: 1280}, 5000, 3000, 0xffff},
		{browsertest.View{Width: 390, Dark: true}, 2400, 2400, 0},
	} {
		picture, err := png.Decode(bytes.NewReader(tab.Picture(tt.view, tt.limit)))
		if err != nil {
			t.Fatal(err)
		}
		check(t, "width", picture.Bounds().Dx(), tt.view.Width)
		check(t, "height", picture.Bounds().Dy(), tt.height)
		red, _, _, _ := picture.At(tt.view.Width-1, 5).RGBA()
		check(t, "colour", red, tt.corner)
	}
	check(t, "overflow", tab.Overflow() > 100, true)
	tab.SetView(browsertest.View{Width: 1280, Media: "print"})
	check(t, "print style", tab.InView("#print"), true)
	check(t, "overflow", tab.Overflow(), 0)
	pdf := tab.PDF()
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) || browsertest.Pages(pdf) != 1 {
		t.Errorf("%d bytes of PDF, %d pages", len(pdf), browsertest.Pages(pdf))
	}
}

func check[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
