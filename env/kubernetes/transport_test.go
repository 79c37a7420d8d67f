//go:build kubernetes

package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/minibench/mini/env"
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

// TestNoConnection: a sandbox whose helper cannot be reached does not start.
func TestNoConnection(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer *apierrors.StatusError
		limit  time.Duration
		want   env.Status
		texts  []string
	}{
		"no rights": {
			apierrors.NewForbidden(schema.GroupResource{Resource: "pods/exec"}, "p", errors.New(`User "u" cannot create resource`)),
			time.Hour, env.StartFailed,
			[]string{`User "u" cannot create resource`, hintRights},
		},
		"no answer": {
			apierrors.NewServiceUnavailable("try later"),
			time.Second, env.DaemonUnavailable,
			[]string{"no connection for ", "try later", hintCluster},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fake := kubetest.New(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				status := test.answer.ErrStatus
				status.Kind, status.APIVersion = "Status", "v1"
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(int(status.Code))
				if err := json.NewEncoder(w).Encode(status); err != nil {
					t.Error(err)
				}
			}))
			t.Cleanup(server.Close)
			fake.REST = &rest.Config{Host: server.URL, QPS: -1}
			c := openFake(t, fake, func(s *Settings) { s.StartTimeout = test.limit })
			closeCluster(t, c, fake)
			_, err := c.Start(t.Context(), Config{Image: dockertest.Image(t)})
			checkStatus(t, err, test.want, test.texts...)
			if strings.Contains(err.Error(), "closed pipe") {
				t.Errorf("the reason is hidden: %v", err)
			}
		})
	}
}
