package transport_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

func TestCheckHeaders(t *testing.T) {
	for name, test := range map[string]struct{ header, value, want string }{
		"good":           {"X-Team", "a b, ü", ""},
		"empty value":    {"X-Team", "", ""},
		"no name":        {"", "a", "not a name and a value"},
		"space":          {"X Team", "a", "not a name and a value"},
		"colon":          {"X-Team:", "a", "not a name and a value"},
		"another line":   {"X-Team", "a\r\nX-More: b", "not a name and a value"},
		"key":            {"x-API-key", "a", "keys come from the environment"},
		"another key":    {"api-key", "a", "keys come from the environment"},
		"cookie":         {"Cookie", "a", "keys come from the environment"},
		"of the request": {"Content-length", "3", "mini sets it itself"},
	} {
		t.Run(name, func(t *testing.T) {
			err := transport.CheckHeaders(map[string]string{test.header: test.value})
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "X-More")) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// A server that another one sends its callers on to gets no headers, and one
// that moves a path on itself does.
func TestHeadersStayWithTheServer(t *testing.T) {
	var elsewhere, moved http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { elsewhere = r.Header.Clone() }))
	defer other.Close()
	for _, away := range []bool{false, true} {
		x := &transport.Exchange{Limit: 100, Headers: map[string]string{"X-Team": "a"}}
		_, err := post(t, x, "{}", func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/new":
				moved = r.Header.Clone()
			case away:
				http.Redirect(w, r, other.URL+"/", http.StatusTemporaryRedirect)
			default:
				http.Redirect(w, r, "/new", http.StatusTemporaryRedirect)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if moved.Get("X-Team") != "a" || elsewhere == nil || elsewhere.Get("X-Team") != "" {
		t.Errorf("moved %v, elsewhere %v", moved, elsewhere)
	}
}

// slow is a body that says each of its lines after a time.
type slow struct {
	lines  []string
	after  []time.Duration
	closed <-chan struct{}
}

func (s *slow) Read(p []byte) (int, error) {
	if len(s.lines) == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(s.after[0]):
	case <-s.closed:
		return 0, errors.New("canceled")
	}
	n := copy(p, s.lines[0])
	s.lines, s.after = s.lines[1:], s.after[1:]
	return n, nil
}

func (s *slow) Close() error { return nil }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A stream that has begun may not fall silent; one that has not may think, and
// comments are signs of life.
func TestIdle(t *testing.T) {
	const limit = 2 * time.Minute
	tests := map[string]struct {
		kind  string
		lines []string
		after []time.Duration
		took  time.Duration
		stall bool
	}{
		"steady":         {"text/event-stream", []string{"data: a\n\n", "data: b\n\n"}, []time.Duration{time.Minute, limit - 1}, 3*time.Minute - 1, false},
		"thinks first":   {"text/event-stream", []string{"data: a\n\n"}, []time.Duration{time.Hour}, time.Hour, false},
		"comments":       {"text/event-stream", []string{": \n", ": \n", "data: a\n\n"}, []time.Duration{0, time.Minute, time.Minute}, limit, false},
		"falls silent":   {"text/event-stream", []string{"data: a\n\n", "data: b\n\n"}, []time.Duration{time.Minute, time.Hour}, 3 * time.Minute, true},
		"after comments": {"text/event-stream", []string{": \n", "data: b\n\n"}, []time.Duration{0, time.Hour}, limit, true},
		"no stream":      {"application/json", []string{"{", "}"}, []time.Duration{time.Minute, time.Hour}, time.Hour + time.Minute, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &transport.Exchange{Limit: 1000, Idle: limit}
				x.Base = roundTrip(func(r *http.Request) (*http.Response, error) {
					body := &slow{lines: test.lines, after: test.after, closed: r.Context().Done()}
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {test.kind}}, Body: body}, nil
				})
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://inside/", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				resp, err := x.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				_, err = io.ReadAll(resp.Body)
				if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
				e, stalled := errors.AsType[*model.Error](err)
				if took := time.Since(start); took != test.took || stalled != test.stall || stalled && (!e.Retryable || !strings.Contains(e.Hint, "model.stream_idle")) {
					t.Errorf("%v after %v, want %v", err, took, test.took)
				}
			})
		})
	}
}
