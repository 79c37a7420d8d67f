package web

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/web/webtest"
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
		{"POST", "POST", nil, 405},
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
		{"nothing", "/r/0", nil, 403},
		{"style sheet", "/viewer.css", nil, 403},
		{"wrong token", "/r/0?token=secre", nil, 403},
		{"empty token", "/r/0?token=", nil, 403},
		{"token", "/r/0?token=secret&sort=-cost", nil, 303},
		{"cookie", "/r/0", []string{"Cookie", s.cookieName() + "=secret"}, 200},
		{"wrong cookie", "/r/0", []string{"Cookie", s.cookieName() + "=secrets"}, 403},
		{"empty cookie", "/r/0", []string{"Cookie", s.cookieName() + "="}, 403},
		{"token, but another host", "/r/0?token=secret", []string{"Host", "evil.example"}, 403},
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
			if l := w.Header().Get("Location"); l != "/r/0?sort=-cost" {
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
	for _, target := range []string{"/", "/r/0", "/r/0/i/0", "/r/0/i/0/a/1", "/r/0/i/0/a/1/steps?from=0"} {
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
		"/r/1", "/r/-1", "/r/x", "/r/" + huge, "/r/0x0", "/r/%2e%2e", "/r/0/i/4", "/r/0/i/-1", "/r/0/i/x", "/r/0/i/" + huge,
		"/r/0/i/0/a/0", "/r/0/i/0/a/3", "/r/0/i/0/a/-1", "/r/0/i/0/a/x", "/r/0/i/0/a/1/steps", "/r/0/i/0/a/1/steps?from=5",
		"/r/0/i/0/a/1/steps?from=-1", "/r/0/i/0/a/1/steps?from=" + huge, "/r/0/i/0/a/1/steps?after=9", "/r/0/i/0/a/1/steps?after=../x",
		"/r/0/i/0/a/1/raw/9/0", "/r/0/i/0/a/1/raw/1/99", "/r/0/i/0/a/1/raw/1/-1", "/r/0/i/0/a/1/raw/x/y", "/r/0/i/0/log/9", "/r/0/i/0/log/-1",
		"/r/0/i/0/log/x", "/compare", "/compare?base=1", "/compare?base=x", "/compare?missing=x", "/compare/0/i/9", "/compare/1/i/0",
		"/compare/x/i/0", "/run.json", "/results.json", "/r/0/run.json", "/r/0/i/0/a/1/journal.jsonl", "/assets/viewer.js",
	} {
		w := ask(s, "GET", target)
		if w.Code != 404 {
			t.Errorf("%s: status %d, want 404", target, w.Code)
		}
		if strings.Contains(w.Body.String(), dir) {
			t.Errorf("%s: the page names the folder", target)
		}
	}
	for _, target := range []string{"/r/0/../../etc/passwd", "/r/0/i/0/a/1/raw/..%2f..%2fx/0", "/..%2f..%2fetc/passwd"} {
		if w := ask(s, "GET", target); w.Code == 200 {
			t.Errorf("%s: status %d", target, w.Code)
		}
	}
	// Parameters without meaning leave the page as it is.
	for _, target := range []string{
		"/r/0?sort=x", "/r/0?sort=-", "/r/0?filter=" + strings.Repeat("x", 1000), "/r/0?filter=cost>x", "/r/0/i/0/a/1?step=" + huge,
		"/r/0/i/0/a/1?step=-1", "/r/0/i/0/a/1?step=%3Cb%3E", "/r/0/i/0/a/1?q=%ff%00", "/r/0/i/0/a/1/search?q=%ff", "/r/0/i/0/a/1/search",
	} {
		if w := ask(s, "GET", target); w.Code != 200 {
			t.Errorf("%s: status %d, want 200", target, w.Code)
		}
	}
}

// Untrusted text is sent as text that the browser does not interpret.
func TestServerRawText(t *testing.T) {
	s, _ := newTestServer(t, "")
	for target, want := range map[string]string{
		"/r/0/i/0/a/1/raw/1/0": "THOUGHT: step 1", "/r/0/i/0/a/1/patch": "+attempt 1", "/r/0/i/0/a/1/search?q=step+2": "2",
		"/r/0/i/1/log/1": "FAILED test_a",
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
	const page, since = "/r/0/i/0/a/1", "/r/0/i/0/a/1/steps?after=3"
	w := ask(s, "GET", page)
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, `id="s3"`) || strings.Contains(body, `id="send"`) || strings.Contains(body, `class="problem"`) {
		t.Errorf("half a line: status %d, %.2000s", w.Code, body)
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
	other := filepath.Join(t.TempDir(), "other")
	webtest.BigRun(t, other, 2, 1, 1)
	s := serverOf(t, "", dir, other)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.viewer.runs {
		r.mu.Lock()
		r.checked = r.checked.Add(-2 * recheck) // as if time had passed
		r.mu.Unlock()
	}
	s.viewer.attempts = attemptCache{}
	for _, target := range []string{"/r/0", "/r/0/i/0", "/r/0/i/0/a/1", "/r/0/i/0/a/1/steps?from=0", "/r/0/i/0/a/1/raw/1/0", "/r/0/i/0/log/1", "/compare"} {
		if w := ask(s, "GET", target); w.Code < 400 {
			t.Errorf("%s: status %d", target, w.Code)
		}
	}
	w := ask(s, "GET", "/")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `href="/r/1"`) || !strings.Contains(w.Body.String(), `class="problem"`) {
		t.Errorf("list: status %d, %s", w.Code, w.Body)
	}
	if w := ask(s, "GET", "/r/1"); w.Code != 200 {
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
	up, down := order("/r/0?sort=id"), order("/r/0?sort=-id")
	if len(up) != 12 || len(down) != 12 || up[0] != down[11] || up[11] != down[0] {
		t.Errorf("by id: %q, %q", up, down)
	}
	some, back := order("/r/0?filter=verdict:unresolved"), order("/r/0?filter=verdict:unresolved&sort=-id")
	slices.Reverse(back)
	if len(some) == 0 || len(some) >= 12 || !slices.Equal(some, back) {
		t.Errorf("filtered: %q, %q", some, back)
	}
	if some := order("/r/0?filter=status:limit"); len(some) == 0 || len(some) >= 12 {
		t.Errorf("by status: %q", some)
	}
	body := ask(s, "GET", "/r/0?filter=status:limit+%22&sort=-cost").Body.String()
	for _, want := range []string{`value="status:limit &#34;"`, `name="sort" value="-cost"`, `class="problem"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in the page", want)
		}
	}
	if want := fmt.Sprintf(`href="?filter=%s&amp;sort=id"`, "status%3alimit"); !strings.Contains(ask(s, "GET", "/r/0?filter=status:limit&sort=-cost").Body.String(), want) {
		t.Errorf("no %s in the page", want)
	}
}
