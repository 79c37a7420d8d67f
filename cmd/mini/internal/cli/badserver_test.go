package cli_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// newUnknown is a server with TLS whose certificate nobody trusts.
func newUnknown(t *testing.T) *httptest.Server {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// badDays serves, below paths of their own, what goes wrong with servers, and
// passes everything else on.
func badDays(well http.Handler) http.Handler {
	var atOnce, refused atomic.Int32
	mux := http.NewServeMux()
	mux.Handle("/", well)
	mux.Handle("/leaky/", leaky())
	mux.HandleFunc("/page/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<!doctype html><title>Welcome</title>")
	})
	mux.HandleFunc("/nomodel/", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"error":{"message":"The model 'loopback' does not exist","code":"model_not_found"}}`)
	})
	mux.HandleFunc("/nostream/", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "event-stream") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `{"error":{"message":"stream is not supported"}}`)
			return
		}
		http.StripPrefix("/nostream", well).ServeHTTP(w, r)
	})
	// Two at once, and each fifth request is refused for no reason.
	mux.HandleFunc("/busy/", func(w http.ResponseWriter, r *http.Request) {
		defer atOnce.Add(-1)
		if atOnce.Add(1) > 2 || refused.Add(1)%5 == 0 {
			w.Header().Set("Retry-After-Ms", "20")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = fmt.Fprint(w, `{"error":{"message":"slow down"}}`)
			return
		}
		http.StripPrefix("/busy", well).ServeHTTP(w, r)
	})
	return mux
}
