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

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake/vllm"
)

// newUntrusted starts a TLS server whose certificate no client trusts.
func newUntrusted(t *testing.T) *httptest.Server {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// withFaults adds faulty servers to a handler, each below its own path. It passes all
// other requests to the handler.
func withFaults(handler http.Handler) http.Handler {
	var inFlight, requests atomic.Int32
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	mux.Handle("/leaky/", leaky())
	mux.Handle("/vllm/", http.StripPrefix("/vllm", &vllm.Server{Drift: 1, Reply: func(_ string, messages []model.Message) string {
		if len(messages) > 4 {
			return "That was all.\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo patch\n```"
		}
		return "First look around.\n```bash\necho something\n```"
	}}))
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
		http.StripPrefix("/nostream", handler).ServeHTTP(w, r)
	})
	// Accept two requests at a time, and refuse every fifth one.
	mux.HandleFunc("/busy/", func(w http.ResponseWriter, r *http.Request) {
		defer inFlight.Add(-1)
		if inFlight.Add(1) > 2 || requests.Add(1)%5 == 0 {
			w.Header().Set("Retry-After-Ms", "20")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = fmt.Fprint(w, `{"error":{"message":"slow down"}}`)
			return
		}
		http.StripPrefix("/busy", handler).ServeHTTP(w, r)
	})
	return mux
}
