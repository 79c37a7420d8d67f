// Package registrytest gives tests an in-memory image registry on loopback, behind a
// proxy that can inject faults.
package registrytest

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/google/go-containerregistry/pkg/registry"
)

// Registry is a registry behind a proxy. Engines trust both without TLS, since they
// are on loopback.
type Registry struct {
	// Host is the proxy's address, as in image names.
	Host string

	direct string // the registry's own address

	mu     sync.Mutex
	inject func(*http.Request) *Fault
	asked  []string
}

// Fault is what the proxy does to a request.
type Fault struct {
	Status     int               // if not 0, answer with this status
	Header     map[string]string // headers to add to the response
	Delay      time.Duration     // before the response
	Throughput int               // bytes per second of the registry's response; 0 means no limit
}

// Start runs a registry for the length of the test.
func Start(t testing.TB) *Registry {
	t.Helper()
	direct := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(direct.Close)
	r := &Registry{direct: strings.TrimPrefix(direct.URL, "http://")}
	proxy := httptest.NewServer(r.handler())
	t.Cleanup(proxy.Close)
	r.Host = strings.TrimPrefix(proxy.URL, "http://")
	return r
}

// Inject calls f for every later request and applies the fault it returns, if any. A
// nil f removes all faults.
func (r *Registry) Inject(f func(*http.Request) *Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inject = f
}

// Requests returns the requests that the proxy got so far, for example "GET /v2/".
func (r *Registry) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.asked...)
}

func (r *Registry) handler() http.Handler {
	target := &url.URL{Scheme: "http", Host: r.direct}
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		p.Out.Host = p.In.Host // the registry uses the host in its responses
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		fault := r.inject
		r.asked = append(r.asked, q.Method+" "+q.URL.Path)
		r.mu.Unlock()
		var f *Fault
		if fault != nil {
			f = fault(q)
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
	case f.Status == http.StatusTooManyRequests:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(`{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}`)) // the client may be gone
	case f.Status != 0:
		http.Error(w, http.StatusText(f.Status), f.Status)
	case f.Throughput > 0:
		next.ServeHTTP(&slow{ResponseWriter: w, ctx: q.Context(), rate: f.Throughput}, q)
	default:
		next.ServeHTTP(w, q)
	}
}

// slow is a ResponseWriter with a limited rate.
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

// RemoveOnCleanup removes image names from the engine when the test ends.
func RemoveOnCleanup(t testing.TB, c *client.Client, refs ...string) {
	t.Helper()
	t.Cleanup(func() { RemoveImages(c, refs...) })
}

// RemoveImages removes image names from the engine. It ignores all errors.
func RemoveImages(c *client.Client, refs ...string) {
	for _, ref := range refs {
		_, _ = c.ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true}) // it may not be there
	}
}
