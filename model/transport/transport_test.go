package transport_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post sends a request and returns the response's text or events.
func post(t *testing.T, c transport.Client, request any, serve http.HandlerFunc) (string, error) {
	t.Helper()
	server := httptest.NewServer(serve)
	defer server.Close()
	c.URL, c.HTTP, c.Header = server.URL, server.Client(), http.Header{}
	return query(t, c, request)
}

func query(t *testing.T, c transport.Client, request any) (string, error) {
	var got strings.Builder
	_, err := transport.New(c).Query(t.Context(), request, func(resp *transport.Response) (model.Reply, error) {
		if !resp.IsStream() {
			body, err := resp.JSON()
			got.Write(body)
			return model.Reply{}, err
		}
		for data, err := range resp.Events() {
			if err != nil {
				return model.Reply{}, err
			}
			got.Write(data)
		}
		return model.Reply{}, nil
	})
	return got.String(), err
}

func TestFieldsSurviveARedirect(t *testing.T) {
	c := transport.Client{ExtraFields: map[string]json.RawMessage{"temperature": json.RawMessage("0"), "a": json.RawMessage("[2]")}}
	got, err := post(t, c, map[string]any{"a": 1, "b": "<x>"}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/new", http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	require.NoError(t, err)
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(got), &object))
	want := map[string]any{"a": []any{2.0}, "b": "<x>", "temperature": 0.0}
	assert.Equal(t, want, object, "object")
}

func TestTooLong(t *testing.T) {
	for _, kind := range []string{"application/json", "text/event-stream"} {
		got, err := post(t, transport.Client{MaxResponseBytes: 1000}, "{}", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, "data: "+strings.Repeat("x", 5000)+"\n")
		})
		if !errors.Is(err, transport.ErrResponseTooLarge) || len(got) > 1000 {
			t.Errorf("%s: %d bytes, %v", kind, len(got), err)
		}
	}
}

// TestEndless: a response without an end is not asked for again, and a whole one costs
// little more memory than its limit.
func TestEndless(t *testing.T) {
	for kind, text := range map[string]string{"application/json": `{"a":1}`, "text/event-stream": "data: a"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := post(t, transport.Client{}, "{}", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			part := bytes.Repeat([]byte(text), 1<<17)
			for range 1 << 30 / len(part) {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		})
		runtime.ReadMemStats(&after)
		e, ok := errors.AsType[*model.Error](err)
		if !ok || e.Retryable || !strings.Contains(e.Error(), "too large: the limit is 64 MiB") {
			t.Errorf("%s: error %v", kind, err)
		}
		if spent := (after.TotalAlloc - before.TotalAlloc) >> 20; spent > 160 && kind == "application/json" {
			t.Errorf("%d MiB", spent)
		}
	}
}

func TestEvents(t *testing.T) {
	for sent, want := range map[string][]string{
		": hi\nevent: x\nid: 1\nretry: 3\ndata: a\n\ndata:b\r\n\r\n": {"a", "b"},
		"data: a\n\ndata: [DONE]":                                    {"a", "[DONE]"}, // no newline at the end
		": a\n: b\n":                                                 nil,
		"":                                                           nil,
	} {
		var got []string
		for data, err := range transport.Events(iotest.OneByteReader(strings.NewReader(sent))) {
			if err != nil {
				t.Error(err)
			}
			got = append(got, string(data))
		}
		assert.Equal(t, want, got, "the result")
	}
}

func TestRefusalReadsRetryAfter(t *testing.T) {
	soon := time.Now().Add(100 * time.Second).UTC().Format(http.TimeFormat)
	tests := map[string]struct {
		header, value string
		least, most   time.Duration
	}{
		"seconds":      {"Retry-After", "12", 12 * time.Second, 12 * time.Second},
		"parts":        {"Retry-After", "0.5", 500 * time.Millisecond, 500 * time.Millisecond},
		"date":         {"Retry-After", soon, 30 * time.Second, 100 * time.Second},
		"past":         {"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", 0, 0},
		"milliseconds": {"Retry-After-Ms", "250", 250 * time.Millisecond, 250 * time.Millisecond},
		"negative":     {"Retry-After", "-5", 0, 0},
		"words":        {"Retry-After", "later", 0, 0},
		"absurd":       {"Retry-After", "1e300", 0, 0},
		"no number":    {"Retry-After", "NaN", 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := post(t, transport.Client{}, "{}", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(test.header, test.value)
				w.WriteHeader(http.StatusTooManyRequests)
			})
			e, ok := errors.AsType[*model.Error](err)
			if !ok || e.Status != model.RateLimited || e.RetryAfter < test.least || e.RetryAfter > test.most {
				t.Errorf("%v: %+v", err, e)
			}
		})
	}
}

func TestParseDetail(t *testing.T) {
	long := strings.Repeat("é", 5000)
	tests := map[string]struct {
		body string
		want transport.ErrorDetail
	}{
		"openai":       {`{"error":{"message":"m","type":"t","code":"c"}}`, transport.ErrorDetail{Message: "m", Code: "c", Type: "t"}},
		"type only":    {`{"error":{"message":"m","type":"t","code":null}}`, transport.ErrorDetail{Message: "m", Code: "t"}},
		"number":       {`{"error":{"message":"m","code":503}}`, transport.ErrorDetail{Message: "m", Code: "503"}},
		"bare message": {`{"object":"error","message":"m","code":40303}`, transport.ErrorDetail{Message: "m", Code: "40303"}},
		"error text":   {`{"error":"m"}`, transport.ErrorDetail{Message: "m"}},
		"detail":       {`{"detail":"m"}`, transport.ErrorDetail{Message: "m"}},
		"text":         {" m\n", transport.ErrorDetail{Message: "m"}},
		"list":         {`["m"]`, transport.ErrorDetail{Message: `["m"]`}},
		"HTML":         {"<!doctype html><p>secret", transport.ErrorDetail{}},
		"nothing":      {"", transport.ErrorDetail{}},
		"long":         {long, transport.ErrorDetail{Message: long[:1000] + "..."}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.NoDiff(t, cmp.Diff(test.want, transport.ParseErrorDetail([]byte(test.body))))
		})
	}
}

// KeyHint is the hint of errors about the key, and of no others.
func TestKeyHint(t *testing.T) {
	for status, want := range map[int]bool{400: false, 401: true, 402: true, 403: true, 404: false, 500: false} {
		_, err := post(t, transport.Client{KeyHint: "set the key"}, "{}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		if e, ok := errors.AsType[*model.Error](err); !ok || (e.Hint == "set the key") != want {
			t.Errorf("%d: %v", status, err)
		}
	}
}

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
