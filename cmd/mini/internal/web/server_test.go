package web

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/web/webtest"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/labels"
	"github.com/minibench/mini/runner/runs"
)

const ownHost = "127.0.0.1:7340"

// newTestServer returns a server of a run of 4 instances with 2 attempts of 3 steps, and the
// folder of the run.
func newTestServer(t *testing.T, token string) (*Server, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 4, 2, 3)
	return serverOf(t, token, dir), dir
}

func serverOf(tb testing.TB, token string, dirs ...string) *Server {
	tb.Helper()
	v, err := Open(dirs, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return NewServer(v, []string{ownHost, "localhost:7340", "[::1]:7340"}, token)
}

// ask sends a request with headers, given as alternating names and values.
func ask(s *Server, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, http.NoBody)
	r.Host = ownHost
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestServerAdmission(t *testing.T) {
	s, _ := newTestServer(t, "")
	for _, tt := range []struct {
		name, method string
		header       []string
		want         int
	}{
		{"own address", "GET", nil, 200},
		{"localhost", "GET", []string{"Host", "localhost:7340"}, 200},
		{"IPv6", "GET", []string{"Host", "[::1]:7340"}, 200},
		{"no host", "GET", []string{"Host", ""}, 403},
		{"prefix of the address", "GET", []string{"Host", "127.0.0.1.evil.example:7340"}, 403},
		{"prefix of the network", "GET", []string{"Host", "127.evil.example:7340"}, 403},
		{"another name", "GET", []string{"Host", "evil.example:7340"}, 403},
		{"dot at the end", "GET", []string{"Host", "localhost.:7340"}, 403},
		{"capitals", "GET", []string{"Host", "LOCALHOST:7340"}, 403},
		{"another port", "GET", []string{"Host", "127.0.0.1:80"}, 403},
		{"no port", "GET", []string{"Host", "127.0.0.1"}, 403},
		{"another address of this machine", "GET", []string{"Host", "127.0.0.2:7340"}, 403},
		{"user in the name", "GET", []string{"Host", "127.0.0.1:7340@evil.example"}, 403},
		{"HEAD", "HEAD", nil, 200},
		{"POST", "POST", nil, 415},
		{"PUT", "PUT", nil, 405},
		{"DELETE", "DELETE", nil, 405},
		{"PATCH", "PATCH", nil, 405},
		{"OPTIONS", "OPTIONS", nil, 405},
		{"from a page of another site", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, 403},
		{"image in a page of another site", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"cross-site without a mode", "GET", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"link on another site", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"own script", "GET", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}, 200},
		{"address bar", "GET", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := ask(s, tt.method, "/", tt.header...)
			if w.Code != tt.want {
				t.Errorf("status %d, want %d", w.Code, tt.want)
			}
			if strings.Contains(w.Body.String(), "project") {
				t.Error("the response has content of the run")
			}
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
				"Access-Control-Allow-Origin": "",
			} {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if policy := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") {
				t.Errorf("policy %q", policy)
			}
		})
	}
}

// The token of the first address becomes a cookie, and the cookie admits.
func TestServerToken(t *testing.T) {
	s, _ := newTestServer(t, "secret")
	for _, tt := range []struct {
		name, target string
		header       []string
		want         int
	}{
		{"nothing", "/r/run/", nil, 403},
		{"style sheet", "/viewer.css", nil, 403},
		{"wrong token", "/r/run/?token=secre", nil, 403},
		{"empty token", "/r/run/?token=", nil, 403},
		{"token", "/r/run/?token=secret&sort=-cost", nil, 303},
		{"cookie", "/r/run/", []string{"Cookie", s.cookieName() + "=secret"}, 200},
		{"wrong cookie", "/r/run/", []string{"Cookie", s.cookieName() + "=secrets"}, 403},
		{"empty cookie", "/r/run/", []string{"Cookie", s.cookieName() + "="}, 403},
		{"token, but another host", "/r/run/?token=secret", []string{"Host", "evil.example"}, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := ask(s, "GET", tt.target, tt.header...)
			if w.Code != tt.want {
				t.Fatalf("status %d, want %d", w.Code, tt.want)
			}
			if w.Code != http.StatusSeeOther {
				if c := w.Header().Get("Set-Cookie"); c != "" {
					t.Errorf("cookie %q", c)
				}
				return
			}
			if l := w.Header().Get("Location"); l != "/r/run/?sort=-cost" {
				t.Errorf("location %q", l)
			}
			if c := w.Header().Get("Set-Cookie"); c != s.cookieName()+"=secret; Path=/; HttpOnly; SameSite=Strict" {
				t.Errorf("cookie %q", c)
			}
		})
	}
	// A path with two slashes is the name of a host to a browser.
	if l := ask(s, "GET", "//evil.example/?token=secret").Header().Get("Location"); strings.HasPrefix(l, "//") {
		t.Errorf("the server redirects to %s", l)
	}
}

// An unchanged page is not sent again.
func TestServerETag(t *testing.T) {
	s, _ := newTestServer(t, "")
	for _, target := range []string{"/", "/r/run/", "/r/run/i/owner0__project-1000", "/r/run/i/owner0__project-1000/a/1", "/r/run/i/owner0__project-1000/a/1/steps?from=0"} {
		first := ask(s, "GET", target)
		tag := first.Header().Get("ETag")
		if first.Code != 200 || tag == "" {
			t.Errorf("%s: status %d, tag %q", target, first.Code, tag)
		}
		again := ask(s, "GET", target, "If-None-Match", tag)
		if again.Code != http.StatusNotModified || again.Body.Len() > 0 || again.Header().Get("ETag") != tag {
			t.Errorf("%s again: status %d, %d bytes", target, again.Code, again.Body.Len())
		}
		if other := ask(s, "GET", target, "If-None-Match", `"other"`); other.Code != 200 || other.Body.Len() == 0 {
			t.Errorf("%s with another tag: status %d", target, other.Code)
		}
	}
}

// Addresses that name nothing are pages that say so.
func TestServerBadAddresses(t *testing.T) {
	s, dir := newTestServer(t, "")
	huge := strings.Repeat("9", 30)
	for _, target := range []string{
		"/r/other/", "/r/un/", "/r/", "/r/x", "/r/" + huge, "/r/%2e%2e/", "/r/run/i/owner4__project-1004", "/r/run/i/-1", "/r/run/i/x", "/r/run/i/" + huge,
		"/r/run/i/owner0__project-1000/a/0", "/r/run/i/owner0__project-1000/a/3", "/r/run/i/owner0__project-1000/a/-1", "/r/run/i/owner0__project-1000/a/x", "/r/run/i/owner0__project-1000/a/1/steps", "/r/run/i/owner0__project-1000/a/1/steps?from=5",
		"/r/run/i/owner0__project-1000/a/1/steps?from=-1", "/r/run/i/owner0__project-1000/a/1/steps?from=" + huge, "/r/run/i/owner0__project-1000/a/1/steps?after=9", "/r/run/i/owner0__project-1000/a/1/steps?after=../x",
		"/r/run/i/owner0__project-1000/a/1/raw/9/0", "/r/run/i/owner0__project-1000/a/1/raw/1/99", "/r/run/i/owner0__project-1000/a/1/raw/1/-1", "/r/run/i/owner0__project-1000/a/1/raw/x/y", "/r/run/i/owner0__project-1000/log/9", "/r/run/i/owner0__project-1000/log/-1",
		"/r/run/i/owner0__project-1000/log/x", "/compare?run=run&run=x", "/compare/i/9",
		"/compare/i/%2e%2e", "/run.json", "/results.json", "/r/run/run.json", "/r/run/i/owner0__project-1000/a/1/journal.jsonl", "/assets/viewer.js",
	} {
		w := ask(s, "GET", target)
		if w.Code != 404 {
			t.Errorf("%s: status %d, want 404", target, w.Code)
		}
		if strings.Contains(w.Body.String(), dir) {
			t.Errorf("%s: the page names the folder", target)
		}
	}
	for _, target := range []string{"/r/run/../../etc/passwd", "/r/run/i/owner0__project-1000/a/1/raw/..%2f..%2fx/0", "/..%2f..%2fetc/passwd"} {
		if w := ask(s, "GET", target); w.Code == 200 {
			t.Errorf("%s: status %d", target, w.Code)
		}
	}
	// Parameters without meaning leave the page as it is.
	for _, target := range []string{
		"/r/run/?sort=x", "/r/run/?sort=-", "/r/run/?filter=" + strings.Repeat("x", 1000), "/r/run/?filter=cost>x", "/r/run/i/owner0__project-1000/a/1?step=" + huge,
		"/r/run/i/owner0__project-1000/a/1?step=-1", "/r/run/i/owner0__project-1000/a/1?step=%3Cb%3E", "/r/run/i/owner0__project-1000/a/1?q=%ff%00", "/r/run/i/owner0__project-1000/a/1/search?q=%ff", "/r/run/i/owner0__project-1000/a/1/search",
	} {
		if w := ask(s, "GET", target); w.Code != 200 {
			t.Errorf("%s: status %d, want 200", target, w.Code)
		}
	}
}

// Forms of the own pages change labels and notes, and nothing else does.
func TestServerLabels(t *testing.T) {
	s, dir := newTestServer(t, "secret")
	page := instancePath(0)
	post := func(target, body string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", target, strings.NewReader(body))
		r.Host = ownHost
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Origin", "null")
		r.Header.Set("Cookie", s.cookieName()+"=secret")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	own := "form=" + s.form
	for _, tt := range []struct {
		name, target, body string
		header             []string
		want               int
	}{
		{"label", page + "/labels", own + "&add=flaky", nil, 303},
		{"note", page + "/labels", own + "&note=" + "%3Cb%3E+a%0D%0Aline", []string{"Origin", "http://" + ownHost}, 303},
		{"another label", page + "/labels", own + "&add=todo", []string{"Sec-Fetch-Site", "", "Origin", ""}, 303},
		{"removed label and unchanged note", page + "/labels", own + "&remove=flaky&add=&note=old&old-note=old", nil, 303},
		{"wrong label", page + "/labels", own + "&add=%3Cb%3E", nil, 400},
		{"no such label", page + "/labels", own + "&remove=x", nil, 400},
		{"long note", page + "/labels", own + "&note=" + strings.Repeat("x", 5000), nil, 400},
		{"long body", page + "/labels", own + "&note=" + strings.Repeat("x", 70_000), nil, 400},
		{"no such instance", instancePath(9) + "/labels", own + "&add=flaky", nil, 404},
		{"no cookie", page + "/labels", own + "&add=evil", []string{"Cookie", ""}, 403},
		{"token in the address", page + "/labels?token=secret", own + "&add=evil", []string{"Cookie", ""}, 303},
		{"no token of the form", page + "/labels", "add=evil", nil, 403},
		{"wrong token of the form", page + "/labels", "form=x&add=evil", nil, 403},
		{"token of the form in the address", page + "/labels?" + own, "add=evil", nil, 403},
		{"another site", page + "/labels", own + "&add=evil", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 403},
		{"another port", page + "/labels", own + "&add=evil", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate"}, 403},
		{"another origin", page + "/labels", own + "&add=evil", []string{"Sec-Fetch-Site", "", "Origin", "http://127.0.0.1:80"}, 403},
		{"another type", page + "/labels", own + "&add=evil", []string{"Content-Type", "text/plain"}, 415},
		{"another page", page, own + "&add=evil", nil, 405},
	} {
		if w := post(tt.target, tt.body, tt.header...); w.Code != tt.want {
			t.Errorf("%s: status %d, want %d: %.300s", tt.name, w.Code, tt.want, w.Body)
		}
	}
	// One button sends all fields. What is refused stays in its field, beside the reason.
	both := instancePath(1)
	w := post(both+"/labels", own+"&add=Odd+one&old-note=&note="+strings.Repeat("y", 4001))
	for _, want := range []string{`value="Odd one"`, "is not a label", "yyy</textarea>", "4001 bytes, more than 4000", `value="` + s.form} {
		if w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("refused: status %d, no %q", w.Code, want)
		}
	}
	if w = post(both+"/labels", own+"&add=Odd&old-note=&note=kept"); w.Code != 400 || !strings.Contains(w.Body.String(), "kept</textarea>") {
		t.Errorf("the label is refused: status %d", w.Code)
	}
	if w = post(both+"/labels", own+"&add=odd&old-note=kept&note=both"); w.Code != 303 {
		t.Errorf("both: status %d", w.Code)
	}
	words, notes, err := labels.ReadAll(dir)
	if id := webtest.BigID(1); !slices.Equal(words[id], []string{"odd"}) || notes[id] != "both" {
		t.Errorf("both: %v, %v", words, notes)
	}
	if err != nil || len(words) != 2 || !slices.Equal(words[webtest.BigID(0)], []string{"todo"}) || notes[webtest.BigID(0)] != "<b> a\nline" {
		t.Errorf("%v, %v, %v", words, notes, err)
	}
	body := ask(s, "GET", page, "Cookie", s.cookieName()+"=secret").Body.String()
	if !strings.Contains(body, `value="todo"`) || !strings.Contains(body, "&lt;b&gt; a\nline</textarea>") {
		t.Error("the page does not show the label and the note")
	}
}

// instancePath returns the path of an instance of newTestServer.
func instancePath(i int) string { return "/r/run/i/" + webtest.BigID(i) }

// A run that mini works on shows how many attempts have ended over time.
func TestServerProgress(t *testing.T) {
	const caption = "Attempts that have ended since the start"
	s, dir := newTestServer(t, "")
	if strings.Contains(ask(s, "GET", "/r/run/").Body.String(), caption) {
		t.Error("a finished run shows its progress")
	}
	folder, err := runner.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if _, err := folder.StartSession(runs.Manifest{}, nil); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "run.json")
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	data = regexp.MustCompile(`("started": *)"[^"]*"`).ReplaceAll(data, []byte(`$1"2026-01-02T03:00:00Z"`)) // before the attempts
	if err := os.WriteFile(manifest, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if body := ask(serverOf(t, "", dir), "GET", "/r/run/").Body.String(); !strings.Contains(body, caption) || !strings.Contains(body, "8 ended, 5 resolved") {
		t.Errorf("no progress in %s", body)
	}
}

// A run without all results says so on both pages, why it ended, what is missing and how to continue.
func TestServerIncompleteRun(t *testing.T) {
	_, dir := newTestServer(t, "")
	folder, err := runner.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = folder.StartSession(runs.Manifest{Command: []string{"bench", "-o", "a run"}}, nil)
	if err == nil {
		err = folder.EndSession(runs.Summary{Instances: 11, Halt: &runs.HaltError{Failures: 3, Reason: "<b>"}})
	}
	if err := errors.Join(err, folder.Close()); err != nil {
		t.Fatal(err)
	}
	s := serverOf(t, "", dir)
	for target, wants := range map[string][]string{
		"/": {"incomplete, "},
		"/r/run/": {
			"incomplete, ", " of 11", "stopped: 3 instances in a row failed", "with &lt;b&gt;", "<code>mini bench -o &#39;a run&#39;</code>",
			"</b> not started",
		},
	} {
		body := ask(s, "GET", target).Body.String()
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q", target, want)
			}
		}
		if strings.Contains(body, "finished;") {
			t.Errorf("%s: the run is finished", target)
		}
	}
}

// Runs that are chosen are compared, and one run is not compared with itself.
func TestServerCompare(t *testing.T) {
	dir := t.TempDir()
	var dirs []string
	for _, name := range []string{"first", "second", "exp/a=1", "exp/a=2"} {
		dirs = append(dirs, filepath.Join(dir, name))
		webtest.BigRun(t, dirs[len(dirs)-1], 3, 1, 2)
	}
	s := serverOf(t, "", dirs...)
	for target, want := range map[string]string{
		"/compare": "Compare 4 runs", "/compare?run=first&run=second": "Compare 2 runs", "/compare?run=exp%2Fa%3D1&run=second&base=second": "Compare 2 runs",
		"/compare/i/" + webtest.BigID(1) + "?run=first&run=second": "first, attempt 1",
	} {
		if w := ask(s, "GET", target); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: status %d, without %q", target, w.Code, want)
		}
	}
	// Names of runs and instances are links, and attempts have the same classes as on the page of their run.
	body := ask(s, "GET", "/compare?run=first&run=second").Body.String()
	address := "/compare/i/" + webtest.BigID(1) + "?run=first&amp;run=second"
	for _, want := range []string{`<td><a href="/r/first/">first</a></td>`, `<a href="` + address + `"><text`, "I infrastructure failed"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s", want)
		}
	}
	if w := ask(s, "GET", "/r/first?filter=a+b&sort=-id"); w.Header().Get("Location") != "/r/first/?filter=a+b&sort=-id" {
		t.Errorf("redirect to %q", w.Header().Get("Location"))
	}
	if _, err := s.viewer.Address("project", ""); err == nil || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("a part of several ids: %v", err)
	}
	for target, want := range map[string]int{
		"/compare?run=first": 400, "/compare?run=first&run=first": 400, "/compare?run=first&run=x": 404, "/compare?run=first&run=second&base=exp%2Fa%3D1": 404,
		"/compare?missing=x": 404, "/compare/i/x": 404,
	} {
		if w := ask(s, "GET", target); w.Code != want {
			t.Errorf("%s: status %d, want %d", target, w.Code, want)
		}
	}
}

// An address leads to the same run whichever other runs are shown, or to none.
func TestAddressesStay(t *testing.T) {
	dir := t.TempDir()
	var dirs []string
	for _, name := range []string{"runs/first", "runs/exp/a=1", "runs/exp/a=2", "other/exp/a=2"} {
		dirs = append(dirs, filepath.Join(dir, name))
		webtest.BigRun(t, dirs[len(dirs)-1], 1, 1, 1)
	}
	shown := map[string][]string{"one": dirs[1:2], "sweep": dirs[1:3], "folder": dirs[:3], "all": dirs}
	for _, from := range shown {
		s := serverOf(t, "", from...)
		for _, r := range s.viewer.all() {
			address := links{}.Run(r)
			for name, to := range shown {
				other := serverOf(t, "", to...)
				found := other.viewer.run(r.Key)
				isShown := slices.Contains(to, r.Dir)
				if found != nil && found.Dir != r.Dir || found == nil && isShown && (!strings.HasSuffix(r.Key, "a=2") || name != "all") {
					t.Errorf("%s with %s leads to %v", address, name, found)
				}
			}
		}
	}
}

// Runs that begin while the viewer works are listed and have pages; those whose folders are gone are not.
func TestNewRuns(t *testing.T) {
	dir := t.TempDir()
	dirs := []string{filepath.Join(dir, "runs/first")}
	webtest.BigRun(t, dirs[0], 1, 1, 1)
	v, err := Open(dirs, Options{Find: func() ([]string, error) { return dirs, nil }})
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(v, []string{ownHost}, "")
	check := func(listed, missing string) {
		t.Helper()
		v.found = time.Time{} // as if time had passed
		if w := ask(s, "GET", "/r/"+listed+"/"); w.Code != 200 {
			t.Errorf("the page of %s: status %d", listed, w.Code)
		}
		v.found = time.Time{}
		home := ask(s, "GET", "/").Body.String()
		if !strings.Contains(home, `href="/r/`+listed+`/"`) || missing != "" && strings.Contains(home, `href="/r/`+missing+`/"`) {
			t.Errorf("%s or %s in the list: %.2000s", listed, missing, home)
		}
	}
	check("first", "")
	dirs = append(dirs, filepath.Join(dir, "runs/second"))
	webtest.BigRun(t, dirs[1], 1, 1, 1)
	check("second", "")
	check("first", "")
	dirs = dirs[1:]
	check("second", "first")
}

// The list of runs is sorted, filtered, and has the runs of a sweep together.
func TestServerHome(t *testing.T) {
	dir := t.TempDir()
	var dirs []string
	for i, name := range []string{"b", "exp/x=1", "a", "exp/x=2"} {
		dirs = append(dirs, filepath.Join(dir, name))
		webtest.BigRun(t, dirs[i], 2+i, 1, 2)
	}
	s := serverOf(t, "", dirs...)
	order := func(target string) string {
		var names []string
		for part := range strings.SplitSeq(ask(s, "GET", target).Body.String(), `name="run" form="chosen" value="`) {
			if name, _, ok := strings.Cut(part, `"`); ok && !strings.HasPrefix(part, "<") {
				names = append(names, name)
			}
		}
		return strings.Join(names, " ")
	}
	for target, want := range map[string]string{
		"/": "exp/x=2 exp/x=1 a b", "/?sort=name": "a b exp/x=1 exp/x=2", "/?sort=-name": "exp/x=2 exp/x=1 b a", "/?sort=cost": "b exp/x=1 exp/x=2 a",
		"/?filter=EXP": "exp/x=2 exp/x=1", "/?filter=exp+x%3D1+generated&sort=x": "exp/x=1", "/?filter=%3Cb%3E": "",
	} {
		if got := order(target); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}

// Untrusted text is sent as text that the browser does not interpret.
func TestServerRawText(t *testing.T) {
	s, _ := newTestServer(t, "")
	for target, want := range map[string]string{
		"/r/run/i/owner0__project-1000/a/1/raw/1/0": "THOUGHT: step 1", "/r/run/i/owner0__project-1000/a/1/patch": "+attempt 1", "/r/run/i/owner0__project-1000/a/1/search?q=step+2": "2",
		"/r/run/i/owner1__project-1001/log/1": "FAILED test_a",
	} {
		w := ask(s, "GET", target)
		h := w.Header()
		if w.Code != 200 || h.Get("Content-Type") != "text/plain; charset=utf-8" || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: status %d, headers %v", target, w.Code, h)
		}
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: no %q in %.300q", target, want, w.Body)
		}
	}
}

// A journal whose last line is being written is shown without it, and with it later.
func TestServerHalfWrittenJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 1, 1, 3)
	journal := filepath.Join(dir, webtest.BigID(0), "attempts", "1", "journal.jsonl")
	data, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	outcome := lines[len(lines)-1]
	rest := data[:len(data)-len(outcome)-1]
	write := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(journal, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(append(bytes.Clone(rest), outcome[:len(outcome)/2]...))
	s := serverOf(t, "", dir)
	const page, since = "/r/run/i/owner0__project-1000/a/1", "/r/run/i/owner0__project-1000/a/1/steps?after=3"
	w := ask(s, "GET", page)
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, `id="s3"`) || strings.Contains(body, `id="send"`) || strings.Contains(body, `class="problem"`) {
		t.Errorf("half a line: status %d, %.2000s", w.Code, body)
	}
	if err := os.Remove(filepath.Join(dir, "results.json")); err != nil {
		t.Fatal(err)
	}
	if body := ask(serverOf(t, "", dir), "GET", "/r/run/").Body.String(); !strings.Contains(body, ">has not ended<td><td>3<") || strings.Contains(body, "0 B") {
		t.Errorf("the row of the attempt: %s", body)
	}
	tag := ask(s, "GET", since).Header().Get("ETag")
	if w := ask(s, "GET", since, "If-None-Match", tag); w.Code != 304 {
		t.Errorf("nothing new: status %d", w.Code)
	}
	write(data)
	w = ask(s, "GET", since, "If-None-Match", tag)
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, `id="s3"`) || !strings.Contains(body, `id="send"`) {
		t.Errorf("the whole line: status %d, %.500s", w.Code, body)
	}
}

// A run that vanishes leaves pages that say so, and the list of the others.
func TestServerVanishingRun(t *testing.T) {
	_, dir := newTestServer(t, "")
	other := filepath.Join(filepath.Dir(dir), "other")
	webtest.BigRun(t, other, 2, 1, 1)
	s := serverOf(t, "", dir, other)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.viewer.all() {
		r.mu.Lock()
		r.checked = r.checked.Add(-2 * recheck) // as if time had passed
		r.mu.Unlock()
	}
	s.viewer.attempts = attemptCache{}
	for _, target := range []string{"/r/run/", "/r/run/i/owner0__project-1000", "/r/run/i/owner0__project-1000/a/1", "/r/run/i/owner0__project-1000/a/1/steps?from=0", "/r/run/i/owner0__project-1000/a/1/raw/1/0", "/r/run/i/owner0__project-1000/log/1", "/compare"} {
		if w := ask(s, "GET", target); w.Code < 400 {
			t.Errorf("%s: status %d", target, w.Code)
		}
	}
	w := ask(s, "GET", "/")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `href="/r/other/"`) || !strings.Contains(w.Body.String(), `class="problem"`) {
		t.Errorf("list: status %d, %s", w.Code, w.Body)
	}
	if w := ask(s, "GET", "/r/other/"); w.Code != 200 {
		t.Errorf("the other run: status %d", w.Code)
	}
}

// Sorting and filters work without a script, and the form keeps them.
func TestServerSortAndFilter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 12, 1, 2)
	s := serverOf(t, "", dir)
	order := func(target string) (ids []string) {
		body := ask(s, "GET", target).Body.String()
		_, body, _ = strings.Cut(body, `id="instances"`)
		for _, row := range strings.Split(body, "<tr><td><a")[1:] {
			_, row, _ = strings.Cut(row, ">")
			id, _, _ := strings.Cut(row, "<")
			ids = append(ids, id)
		}
		return ids
	}
	up, down := order("/r/run/?sort=id"), order("/r/run/?sort=-id")
	if len(up) != 12 || len(down) != 12 || up[0] != down[11] || up[11] != down[0] {
		t.Errorf("by id: %q, %q", up, down)
	}
	some, back := order("/r/run/?filter=verdict:unresolved"), order("/r/run/?filter=verdict:unresolved&sort=-id")
	slices.Reverse(back)
	if len(some) == 0 || len(some) >= 12 || !slices.Equal(some, back) {
		t.Errorf("filtered: %q, %q", some, back)
	}
	if some := order("/r/run/?filter=status:limit"); len(some) == 0 || len(some) >= 12 {
		t.Errorf("by status: %q", some)
	}
	body := ask(s, "GET", "/r/run/?filter=status:limit+%22&sort=-cost").Body.String()
	for _, want := range []string{`value="status:limit &#34;"`, `name="sort" value="-cost"`, `class="problem"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in the page", want)
		}
	}
	if want := fmt.Sprintf(`href="?filter=%s&amp;sort=id"`, "status%3alimit"); !strings.Contains(ask(s, "GET", "/r/run/?filter=status:limit&sort=-cost").Body.String(), want) {
		t.Errorf("no %s in the page", want)
	}
}

// The page of an instance lists five other runs, and folds more.
func TestServerOtherRuns(t *testing.T) {
	dir := t.TempDir()
	var dirs []string
	for i := range 8 {
		dirs = append(dirs, filepath.Join(dir, fmt.Sprint("run", i)))
		webtest.BigRun(t, dirs[i], 1, 1, 1)
	}
	body := ask(serverOf(t, "", dirs...), "GET", "/r/run0/i/"+webtest.BigID(0)).Body.String()
	shown, folded, ok := strings.Cut(body, "<summary>2 more runs</summary>")
	if !ok || !strings.Contains(shown, ">run5</a>") || strings.Contains(shown, ">run6</a>") || !strings.Contains(folded, ">run7</a>") {
		t.Errorf("the other runs are not folded: %.3000s", body)
	}
}
