// Package modeltest is the conformance suite of model providers. A provider's
// test supplies a constructor, good responses of its API, and the faults that
// only it has.
//
//	modeltest.Run(t, modeltest.Provider{New: ..., Plain: ..., Streamed: ...})
package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minibench/mini/model"
)

// Provider is the provider under test.
type Provider struct {
	New func(Settings) (Model, error)
	// Plain and Streamed are a good response with some text and a usage of 100
	// prompt tokens, as JSON and as events.
	Plain, Streamed string
	// FirstEvent is an event without content that can begin a stream.
	FirstEvent string
	// Faults are the faults that only this API has, by name.
	Faults map[string]Fault
	// Echoes are responses that repeat the key, by name.
	Echoes map[string]Echo
	// StreamedPieces returns a good streamed response with these text deltas.
	StreamedPieces func(pieces ...string) string
}

// Settings configure the model under test. The model's name does not matter.
type Settings struct {
	BaseURL string // without a path
	Key     string
	Stream  bool
	Timeout time.Duration
	Client  *http.Client
}

// Model is a model that can be closed.
type Model interface {
	model.Model
	io.Closer
}

// Run runs the suite.
func Run(t *testing.T, p Provider) {
	t.Run("faults", p.faults)
	t.Run("secrets", p.secrets)
	t.Run("deltas", p.deltas)
	t.Run("redirections", p.redirections)
	t.Run("slow servers", p.slowServers)
	t.Run("many workers", p.manyWorkers)
	t.Run("wrong addresses", p.wrongAddresses)
	t.Run("resets", p.resets)
}

// StaticHandler returns a handler that always gives the same response.
func StaticHandler(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// goodResponse returns a good response, streamed or plain.
func (p Provider) goodResponse(stream bool) (contentType, body string) {
	if stream {
		return "text/event-stream", p.Streamed
	}
	return "application/json", p.Plain
}

// serve returns a handler that gives good responses.
func (p Provider) serve(stream bool) http.HandlerFunc {
	contentType, body := p.goodResponse(stream)
	return StaticHandler(http.StatusOK, contentType, body)
}

// connect returns a model that sends its requests to serve.
func (p Provider) connect(t *testing.T, s Settings, serve http.HandlerFunc) Model {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	s.BaseURL = server.URL
	return p.make(t, s)
}

func (p Provider) make(t *testing.T, s Settings) Model {
	t.Helper()
	m, err := p.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func ask(ctx context.Context, m model.Model) (model.Reply, error) {
	return m.Query(ctx, []model.Message{{Role: model.User, Content: "x"}})
}

func forBothModes(t *testing.T, test func(t *testing.T, stream bool)) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream %t", stream), func(t *testing.T) { test(t, stream) })
	}
}

// redirections tests that the key is not sent to another server, not even on another
// port, where net/http would send it.
func (p Provider) redirections(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked, with %v", r.Header)
	}))
	defer other.Close()
	forBothModes(t, func(t *testing.T, stream bool) {
		s := Settings{Key: Key, Stream: stream}
		_, err := ask(t.Context(), p.connect(t, s, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/v1", http.StatusTemporaryRedirect)
		}))
		if e, ok := errors.AsType[*model.Error](err); !ok || e.Status != model.BadRequest || e.Retryable || !strings.Contains(e.Hint, "base URL") {
			t.Errorf("error %v: %+v", err, e)
		}
		reply, err := ask(t.Context(), p.connect(t, s, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/elsewhere" {
				http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
				return
			}
			if keyOf(r) != Key {
				t.Error("the key is lost")
			}
			p.serve(stream)(w, r)
		}))
		if err != nil || reply.Usage.Prompt != 100 {
			t.Errorf("%+v, %v", reply, err)
		}
	})
}

// slowServers tests that a request ends at its timeout, and with its context.
func (p Provider) slowServers(t *testing.T) {
	forBothModes(t, func(t *testing.T, stream bool) {
		reached := make(chan struct{}, 2)
		hang := func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if stream {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, p.FirstEvent)
				_ = http.NewResponseController(w).Flush()
			}
			reached <- struct{}{}
			<-r.Context().Done()
		}
		_, err := ask(t.Context(), p.connect(t, Settings{Stream: stream, Timeout: 50 * time.Millisecond}, hang))
		if e, ok := errors.AsType[*model.Error](err); !ok || e.Status != model.ProviderError || !e.Retryable || e.MaybeMisconfigured ||
			!strings.Contains(err.Error(), "no complete answer within 50ms") || !strings.Contains(e.Hint, "model.timeout") {
			t.Errorf("timeout: %v", err)
		}
		select { // the time may have been over before the request was sent
		case <-reached:
		default:
		}

		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-reached; cancel(stop) }()
		_, err = ask(ctx, p.connect(t, Settings{Stream: stream}, hang))
		if !errors.Is(err, stop) || err.Error() != stop.Error() {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// manyWorkers tests a model that many workers share.
func (p Provider) manyWorkers(t *testing.T) {
	forBothModes(t, func(t *testing.T, stream bool) {
		m := p.connect(t, Settings{Stream: stream}, p.serve(stream))
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 10 {
					if r, err := ask(t.Context(), m); err != nil || r.Usage.Prompt != 100 {
						t.Errorf("usage %+v, %v", r.Usage, err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// resets tests connections that break before and within a response.
func (p Provider) resets(t *testing.T) {
	forBothModes(t, func(t *testing.T, stream bool) {
		for _, part := range []int{0, 300} {
			var requests atomic.Int32
			_, err := ask(t.Context(), p.connect(t, Settings{Stream: stream}, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				kind, body := p.goodResponse(stream)
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
			}))
			e, ok := errors.AsType[*model.Error](err)
			if !ok || e.Status != model.ProviderError || !e.Retryable || e.MaybeMisconfigured != (part == 0) || requests.Load() != 1 {
				t.Errorf("after %d bytes: %d requests, %v", part, requests.Load(), err)
			}
		}
	})
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // test values always encode
	}
	return string(b)
}
