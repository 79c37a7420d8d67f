package transport_test

import (
	"errors"
	"io"
	"net/http"
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
		"no name":        {"", "a", "invalid HTTP header name or value"},
		"space":          {"X Team", "a", "invalid HTTP header name or value"},
		"colon":          {"X-Team:", "a", "invalid HTTP header name or value"},
		"another line":   {"X-Team", "a\r\nX-More: b", "invalid HTTP header name or value"},
		"key":            {"x-API-key", "a", "set keys in the environment"},
		"another key":    {"api-key", "a", "set keys in the environment"},
		"cookie":         {"Cookie", "a", "set keys in the environment"},
		"of the request": {"Content-length", "3", "mini sets it"},
	} {
		t.Run(name, func(t *testing.T) {
			err := transport.CheckHeaders(map[string]string{test.header: test.value})
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "X-More")) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// slow is a body that delays each line.
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

// A stream that has started must not stall. Before it starts, the server may think as
// long as it needs. Comments count as data.
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
				c := transport.Client{URL: "http://inside/", Header: http.Header{}, IdleTimeout: limit, Timeout: 24 * time.Hour}
				c.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					body := &slow{lines: test.lines, after: test.after, closed: r.Context().Done()}
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {test.kind}}, Body: body}, nil
				})}
				start := time.Now()
				_, err := query(t, c, "{}")
				e, stalled := errors.AsType[*model.Error](err)
				if took := time.Since(start); took != test.took || stalled != test.stall || stalled && (!e.Retryable || !strings.Contains(e.Hint, "model.stream_idle")) {
					t.Errorf("%v after %v, want %v", err, took, test.took)
				}
			})
		})
	}
}
