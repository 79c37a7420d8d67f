package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent/images"
	"github.com/minibench/mini/agent/images/web"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
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
			_, _ = w.Write(make([]byte, 2*images.MaxBytes))
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
		"huge":           {server.URL + "/huge", "", images.MaxBytes + 1},
		"round":          {server.URL + "/round", "too many redirects", 0},
		"another scheme": {server.URL + "/file", "too many redirects, or a redirect to another scheme", 0},
		"missing":        {server.URL + "/none", "the server answers 404", 0},
		"cut":            {server.URL + "/cut", "cannot be fetched", 0},
		"with a name":    {strings.Replace(server.URL, "://", "://me:secret@", 1), "not an http or https URL", 0},
		"no http":        {"ftp://example.com/x", "not an http or https URL", 0},
	} {
		data, err := web.New(true).Fetch(t.Context(), tt.url)
		if len(data) != tt.size || (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %d bytes, %v; want %d, %q", name, len(data), err, tt.size, tt.want)
		}
	}
	before := len(visited)
	_, err := web.New(false).Fetch(t.Context(), server.URL+"/image")
	assert.ErrorContains(t, err, "the address is not public", "a private address")
	if len(visited) != before {
		t.Errorf("it was asked for %v", visited[before:])
	}
}

func TestPrivateAddresses(t *testing.T) {
	for _, host := range []string{
		"127.0.0.1:1", "[::1]:1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "[fe80::1]", "[::ffff:127.0.0.1]:1",
		"0.0.0.0:1", "100.100.100.200", "[fd00::1]", "224.0.0.1",
	} {
		_, err := web.New(false).Fetch(t.Context(), "http://"+host+"/")
		assert.ErrorContains(t, err, "not public", "%s", host)
	}
}

// Requests go to the proxy, whatever its address. Requests for addresses that
// are not public are rejected, also after a redirect.
func TestProxy(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		if strings.HasSuffix(r.URL.Path, "/moved") {
			http.Redirect(w, r, "http://169.254.169.254/token", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("bytes"))
	}))
	defer proxy.Close()
	through, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	f := web.NewWithProxy(http.ProxyURL(through), false)
	const image, moved = "http://198.51.100.7/a.png", "http://198.51.100.7/moved"
	for address, want := range map[string]string{
		image:                           "",
		"http://images.mini.invalid/a":  "", // the name cannot be resolved here; the proxy may know it
		moved:                           "the address is not public",
		"http://127.0.0.1/a":            "the address is not public",
		"http://[::ffff:10.0.0.1]/a":    "the address is not public",
		"http://169.254.169.254/latest": "the address is not public",
		"http://localhost/a":            "the address is not public",
		"http://a.localhost./a":         "the address is not public",
		"http://intranet/a":             "the address is not public",
		"http://2130706433/a":           "the address is not public",
		"http://127.1/a":                "the address is not public",
		"http://0x7f.0x1/a":             "the address is not public",
	} {
		data, err := f.Fetch(t.Context(), address)
		if want == "" && (err != nil || string(data) != "bytes") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v", address, data, err)
		}
	}
	slices.Sort(asked)
	assert.Equal(t, []string{image, moved, "http://images.mini.invalid/a"}, asked, "the proxy was asked for")

	none := func(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // as http.Transport has it
	_, err = web.NewWithProxy(none, false).Fetch(t.Context(), proxy.URL+"/a")
	assert.ErrorContains(t, err, "not public", "without a proxy")
}
