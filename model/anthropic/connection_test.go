package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
)

func TestSlowServer(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream %t", stream), func(t *testing.T) {
			reached := make(chan struct{}, 2)
			hang := func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if stream {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, "event: ping\ndata: {\"type\":\"ping\"}\n\n")
					_ = http.NewResponseController(w).Flush()
				}
				reached <- struct{}{}
				<-r.Context().Done()
			}
			m := connect(t, anthropic.Config{Stream: stream, Timeout: 50 * time.Millisecond}, hang)
			_, err := m.Query(t.Context(), nil)
			if e, ok := errors.AsType[*model.Error](err); !ok || e.Status != model.ProviderError || !e.Retryable ||
				!strings.Contains(err.Error(), "no complete answer within 50ms") {
				t.Errorf("timeout: %v", err)
			}
			<-reached

			m = connect(t, anthropic.Config{Stream: stream}, hang)
			stop := errors.New("stop")
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { <-reached; cancel(stop) }()
			_, err = m.Query(ctx, nil)
			if _, provider := errors.AsType[*model.Error](err); !errors.Is(err, stop) || provider {
				t.Errorf("cancelled: %v", err)
			}
		})
	}
}

func TestManyWorkers(t *testing.T) {
	m := connect(t, anthropic.Config{Stream: true, Kwargs: map[string]any{"top_k": 1}, Tools: bash}, says(200, "text/event-stream", streamed))
	messages := []model.Message{{Role: model.System, Content: "s"}, {Role: model.User, Content: "x"}}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 10 {
				if r, err := m.Query(t.Context(), messages); err != nil || r.Usage.Prompt != 100 {
					t.Errorf("usage %+v, %v", r.Usage, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestUnreachable(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	secure := httptest.NewUnstartedServer(says(200, "application/json", plain))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	open := httptest.NewServer(says(200, "application/json", plain))
	defer open.Close()
	tests := map[string]struct {
		url       string
		retryable bool
		hint      string
	}{
		"nobody there":     {closed.URL, true, "can be reached"},
		"own certificate":  {secure.URL, false, "SSL_CERT_FILE"},
		"https, no TLS":    {strings.Replace(open.URL, "http:", "https:", 1), false, "http:// instead"},
		"http, but wanted": {strings.Replace(secure.URL, "https:", "http:", 1), false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := anthropic.New(anthropic.Config{Name: "m", BaseURL: test.url})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			_, err = m.Query(t.Context(), nil)
			if e, ok := errors.AsType[*model.Error](err); !ok || e.Retryable != test.retryable || !strings.Contains(e.Hint, test.hint) {
				t.Errorf("error %v: %+v", err, e)
			}
		})
	}
}

// The connection breaks before, and within, an answer.
func TestResets(t *testing.T) {
	for _, stream := range []bool{false, true} {
		for _, part := range []int{0, 600} {
			t.Run(fmt.Sprintf("stream %t after %d bytes", stream, part), func(t *testing.T) {
				var requests atomic.Int32
				m := connect(t, anthropic.Config{Stream: stream}, func(w http.ResponseWriter, r *http.Request) {
					requests.Add(1)
					_, _ = io.Copy(io.Discard, r.Body)
					kind, body := "application/json", plain
					if stream {
						kind, body = "text/event-stream", streamed
					}
					conn, buffered, err := http.NewResponseController(w).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					if part > 0 {
						_, _ = fmt.Fprintf(buffered, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", kind, len(body), body[:part])
						_ = buffered.Flush()
					}
					if tcp, ok := conn.(*net.TCPConn); ok && part == 0 {
						_ = tcp.SetLinger(0)
					}
					_ = conn.Close()
				})
				_, err := m.Query(t.Context(), []model.Message{{Role: model.User, Content: "x"}})
				if e, ok := errors.AsType[*model.Error](err); !ok || e.Status != model.ProviderError || !e.Retryable || requests.Load() != 1 {
					t.Errorf("%d requests, %v", requests.Load(), err)
				}
			})
		}
	}
}
