package kubernetes

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/kubernetes/kubetest"
)

// TestSPDY: where WebSockets do not pass, the older protocol is used.
func TestSPDY(t *testing.T) {
	t.Parallel()
	fake := kubetest.New(t)
	address, err := url.Parse(fake.REST.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(address) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // SPDY uses POST
			http.Error(w, "no WebSockets here", http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	fake.REST = &rest.Config{Host: server.URL, QPS: -1}
	c := openFake(t, fake, nil)
	closeCluster(t, c, fake)
	p := startPod(t, c, Config{Image: dockertest.Image(t)})
	data := bytes.Repeat([]byte("0123456789abcde\n"), 64<<10)
	if err := p.Put(t.Context(), "/tmp", bytes.NewReader(packFile(t, data))); err != nil {
		t.Fatal(err)
	}
	var tree bytes.Buffer
	if err := p.Get(t.Context(), "/tmp/file", &tree); err != nil || !bytes.Equal(unpackFile(t, &tree), data) {
		t.Errorf("the file has other bytes, %v", err)
	}
	whileDown(t, p, fake, func() {})
	if got := run(t, p, "echo fine"); got != "fine\n" {
		t.Errorf("output %q", got)
	}
	if n := fake.RequestCount(); n["get pods/exec"] > 0 || n["create pods/exec"] == 0 {
		t.Errorf("requests %v", n)
	}
}
