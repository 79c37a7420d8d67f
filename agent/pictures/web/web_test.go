package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent/pictures"
	"github.com/minibench/mini/agent/pictures/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFetch(t *testing.T) {
	var visited []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visited = append(visited, r.URL.Path)
		switch r.URL.Path {
		case "/image":
			_, _ = w.Write([]byte("bytes"))
		case "/moved":
			http.Redirect(w, r, "/image", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/huge":
			_, _ = w.Write(make([]byte, 2*pictures.MaxBytes))
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("bytes"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	for name, tt := range map[string]struct {
		url, want string
		size      int
	}{
		"image":          {server.URL + "/image", "", 5},
		"moved":          {server.URL + "/moved", "", 5},
		"huge":           {server.URL + "/huge", "", pictures.MaxBytes + 1},
		"round":          {server.URL + "/round", "redirected too often", 0},
		"another scheme": {server.URL + "/file", "redirected too often, or elsewhere", 0},
		"missing":        {server.URL + "/none", "the server answers 404", 0},
		"cut":            {server.URL + "/cut", "cannot be fetched", 0},
		"with a name":    {strings.Replace(server.URL, "://", "://me:secret@", 1), "not a plain http", 0},
		"no http":        {"ftp://example.com/x", "not a plain http", 0},
	} {
		data, err := web.New(true).Fetch(t.Context(), tt.url)
		if len(data) != tt.size || (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %d bytes, %v; want %d, %q", name, len(data), err, tt.size, tt.want)
		}
	}
	before := len(visited)
	if _, err := web.New(false).Fetch(t.Context(), server.URL+"/image"); err == nil || !strings.Contains(err.Error(), "its address is not public") {
		t.Errorf("a private address: %v", err)
	}
	if len(visited) != before {
		t.Errorf("it was asked for %v", visited[before:])
	}
}

func TestPrivateAddresses(t *testing.T) {
	for _, host := range []string{
		"127.0.0.1:1", "[::1]:1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "[fe80::1]", "[::ffff:127.0.0.1]:1",
		"0.0.0.0:1", "100.100.100.200", "[fd00::1]", "224.0.0.1",
	} {
		if _, err := web.New(false).Fetch(t.Context(), "http://"+host+"/"); err == nil || !strings.Contains(err.Error(), "not public") {
			t.Errorf("%s: %v", host, err)
		}
	}
}
