// Package registrytest gives tests a real image registry on the loopback, with
// images of their own in it, and a proxy in front that can be told to fail.
//
// The registry is Debian's docker-registry; scripts/registry.sh gets it. Where
// it is missing tests are skipped, or with MINI_REQUIRE_DOCKER=1 fail.
package registrytest

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
)

// Registry is a registry and the proxy in front of it. Engines trust both
// without TLS, since they are on the loopback.
type Registry struct {
	// Host is the proxy's address, as it stands in names of images.
	Host string

	direct string // the registry's own address

	mu     sync.Mutex
	inject func(*http.Request) *Fault
	asked  []string
}

// Fault is what the proxy does instead of passing a request on, or with the
// answer.
type Fault struct {
	Status     int               // answer with this instead
	Header     map[string]string // and this; also added to answers that pass
	Cut        bool              // pass half of the answer and hang up
	Reset      bool              // hang up at once
	Delay      time.Duration     // before anything
	Throughput int               // bytes a second of the answer; 0 is as fast as it goes
}

// listening is what the registry says when it is up.
var listening = regexp.MustCompile(`listening on (127\.0\.0\.1:\d+)`)

// Start runs a registry for the length of the test.
func Start(t testing.TB) *Registry {
	t.Helper()
	file := binary(t)
	dir := t.TempDir()
	config := fmt.Sprintf("version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: %s}, delete: {enabled: true}}\nhttp: {addr: 127.0.0.1:0}\n",
		filepath.Join(dir, "data"))
	if err := os.WriteFile(filepath.Join(dir, "config.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, file, "serve", filepath.Join(dir, "config.yml")) //nolint:gosec // found above
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	up := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				up <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-read
		_ = cmd.Wait() // it was killed
	})
	r := &Registry{}
	select {
	case r.direct = <-up:
	case <-time.After(20 * time.Second):
		t.Fatal("the registry does not come up")
	}
	proxy := httptest.NewServer(r.handler())
	t.Cleanup(proxy.Close)
	r.Host = strings.TrimPrefix(proxy.URL, "http://")
	return r
}

func binary(t testing.TB) string {
	t.Helper()
	if file, err := exec.LookPath("docker-registry"); err == nil {
		return file
	}
	dir, err := os.Getwd() // of the test's package
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		file := filepath.Join(dir, "bin", "docker-registry")
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			continue
		}
		if _, err := os.Stat(file); err == nil {
			return file
		}
		break
	}
	const text = "docker-registry is missing; scripts/registry.sh gets it"
	if os.Getenv("MINI_REQUIRE_DOCKER") == "1" {
		t.Fatal(text + " (MINI_REQUIRE_DOCKER=1)")
	}
	t.Skip(text)
	return ""
}

// Inject lets every request from now on be judged; nil lets all pass.
func (r *Registry) Inject(judge func(*http.Request) *Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inject = judge
}

// Asked are the requests so far, as "GET /v2/...".
func (r *Registry) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.asked...)
}

func (r *Registry) handler() http.Handler {
	target := &url.URL{Scheme: "http", Host: r.direct}
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		p.Out.Host = p.In.Host // the registry names itself in its answers
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		judge := r.inject
		r.asked = append(r.asked, q.Method+" "+q.URL.Path)
		r.mu.Unlock()
		var f *Fault
		if judge != nil {
			f = judge(q)
		}
		if f == nil {
			proxy.ServeHTTP(w, q)
			return
		}
		f.serve(w, q, proxy)
	})
}

func (f *Fault) serve(w http.ResponseWriter, q *http.Request, next http.Handler) {
	select {
	case <-time.After(f.Delay):
	case <-q.Context().Done():
		return
	}
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	switch {
	case f.Reset:
		panic(http.ErrAbortHandler)
	case f.Status == http.StatusTooManyRequests:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(`{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}`)) // the client may be gone
	case f.Status != 0:
		http.Error(w, http.StatusText(f.Status), f.Status)
	case f.Cut:
		all := httptest.NewRecorder()
		next.ServeHTTP(all, q)
		for name, values := range all.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(all.Code)
		_, _ = w.Write(all.Body.Bytes()[:all.Body.Len()/2]) // as above
		panic(http.ErrAbortHandler)
	case f.Throughput > 0:
		next.ServeHTTP(&slow{ResponseWriter: w, ctx: q.Context(), rate: f.Throughput}, q)
	default:
		next.ServeHTTP(w, q)
	}
}

// slow passes bytes on at a bounded rate.
type slow struct {
	http.ResponseWriter
	ctx  context.Context //nolint:containedctx // of one request, whose writer this is
	rate int
}

// Write implements http.ResponseWriter.
func (s *slow) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		part := p[:min(len(p), max(s.rate/20, 1))]
		var m int
		m, err = s.ResponseWriter.Write(part)
		if f, ok := s.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		n, p = n+m, p[len(part):]
		select {
		case <-s.ctx.Done():
			return n, s.ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return n, err
}

// Drop removes names from the engine when the test ends, those that are there.
func Drop(t testing.TB, c *client.Client, refs ...string) {
	t.Helper()
	t.Cleanup(func() { DropNow(c, refs...) })
}

// DropNow removes names from the engine, those that are there.
func DropNow(c *client.Client, refs ...string) {
	for _, ref := range refs {
		_, _ = c.ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true}) // it may not be there
	}
}
