package openai_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/retry"
)

// pipes is a network inside the process, which fake time can stand still for.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answers gives one handler after the other; the last one stays.
func answers(all ...http.HandlerFunc) http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		serve := all[min(n, len(all)-1)]
		n++
		serve(w, r)
	}
}

func later(header, value string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(header, value)
		says(429, "application/json", `{"error":{"message":"slow down"}}`)(w, r)
	}
}

func in(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		later("Retry-After", time.Now().Add(d).UTC().Format(http.TimeFormat))(w, r)
	}
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestRetry(t *testing.T) {
	fine := says(200, "application/json", plain)
	bad := says(500, "text/plain", "bad day")
	tests := map[string]struct {
		serve       http.HandlerFunc
		tries       int
		least, most time.Duration
		status      model.Status // empty: a reply
	}{
		"at once":               {fine, 1, 0, 0, ""},
		"after two failures":    {answers(bad, hangUp, fine), 3, 500 * time.Millisecond, 1500 * time.Millisecond, ""},
		"seconds":               {answers(later("Retry-After", "90"), fine), 2, 90 * time.Second, 90 * time.Second, ""},
		"date":                  {answers(in(2*time.Minute), fine), 2, 119 * time.Second, 2 * time.Minute, ""},
		"milliseconds":          {answers(later("Retry-After-Ms", "1234"), fine), 2, 1234 * time.Millisecond, 1234 * time.Millisecond, ""},
		"no number":             {answers(later("Retry-After", "soon"), fine), 2, 125 * time.Millisecond, 375 * time.Millisecond, ""},
		"milliseconds, stream":  {answers(later("Retry-After-Ms", "1234"), says(200, "text/event-stream", streamed)), 2, 1234 * time.Millisecond, 1234 * time.Millisecond, ""},
		"longer than we wait":   {later("Retry-After", "86400"), 1, 0, 0, model.RateLimited},
		"five times":            {bad, 5, 5 * time.Second, 15 * time.Second, model.ProviderError},
		"of no use":             {says(400, "text/plain", "no"), 1, 0, 0, model.BadRequest},
		"another reason at end": {answers(bad, says(401, "text/plain", "no")), 2, 125 * time.Millisecond, 375 * time.Millisecond, model.AuthenticationError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := within(t, test.serve, strings.Contains(name, "stream"))
				start := time.Now()
				got, err := m.Query(t.Context(), []model.Message{{Role: model.User, Content: "x"}})
				took := time.Since(start)
				if took < test.least || took > test.most || got.Waited < test.least-time.Second || got.Waited > took+time.Second {
					t.Errorf("took %v, waited %v", took, got.Waited)
				}
				if got.Tries != test.tries {
					t.Errorf("%d tries, want %d", got.Tries, test.tries)
				}
				e, failed := errors.AsType[*model.Error](err)
				switch {
				case failed && e.Status != test.status, !failed && test.status != "", !failed && err != nil:
					t.Errorf("error %v, want %q", err, test.status)
				case test.tries == 5 && !strings.Contains(err.Error(), "5 tries: 500 Internal Server Error: bad day"):
					t.Errorf("error %v does not tell the last failure", err)
				case name == "longer than we wait" && e.RetryAfter != 24*time.Hour:
					t.Errorf("retry after %v", e.RetryAfter)
				}
			})
		})
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := within(t, later("Retry-After", "300"), true)
		stop := errors.New("stop")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 7*time.Second, stop)
		defer cancel()
		start := time.Now()
		_, err := m.Query(ctx, nil)
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("took %v", took)
		}
		if _, provider := errors.AsType[*model.Error](err); !errors.Is(err, stop) || provider || !strings.Contains(err.Error(), "slow down") {
			t.Errorf("error %v, want the cause, and the last failure as text", err)
		}
	})
}

// within makes a model of what serve answers, inside a bubble of fake time.
func within(t *testing.T, serve http.HandlerFunc, stream bool) model.Model {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: serve, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(p) }()
	m, err := openai.New(openai.Config{
		Name: "m", BaseURL: "http://inside/v1", Stream: stream,
		HTTPClient: &http.Client{Transport: &http.Transport{DialContext: p.dial, DisableKeepAlives: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), server.Close()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return retry.New(m, retry.Policy{MaxTries: 5})
}

var _ io.Closer = (*openai.Model)(nil)
