package transport_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newServer(t *testing.T, serve http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	return server
}

// post sends body through an exchange, and reads the answer a byte at a time.
func post(t *testing.T, x *transport.Exchange, body string, serve http.HandlerFunc) (string, error) {
	t.Helper()
	server := httptest.NewServer(serve)
	defer server.Close()
	x.Base = server.Client().Transport
	client := &http.Client{Transport: x}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(iotest.OneByteReader(resp.Body))
	return string(got), err
}

func TestFieldsSurviveARedirect(t *testing.T) {
	x := &transport.Exchange{Limit: 1000, Fields: map[string]json.RawMessage{"temperature": json.RawMessage("0"), "a": json.RawMessage("[2]")}}
	got, err := post(t, x, `{"a":1,"b":"<x>"}`, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/new", http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(got), &object); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": []any{2.0}, "b": "<x>", "temperature": 0.0}
	if diff := cmp.Diff(want, object); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(got, string(x.Body())); diff != "" {
		t.Errorf("the record is not what came: %s", diff)
	}
}

func TestTooLong(t *testing.T) {
	for _, kind := range []string{"application/json", "text/event-stream"} {
		x := &transport.Exchange{Limit: 1000}
		got, err := post(t, x, "{}", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, "data: "+strings.Repeat("x", 5000)+"\n")
		})
		if !errors.Is(err, transport.ErrTooLong) || len(got) > 1000 || len(x.Body()) > 1000 {
			t.Errorf("%s: %d bytes, %v", kind, len(got), err)
		}
	}
}

func TestEvents(t *testing.T) {
	tests := map[string]struct{ sent, want, last string }{
		"data and blanks only": {": hi\nevent: x\nid: 1\nretry: 3\ndata: a\n\ndata:b\r\n\r\n", "data: a\n\ndata:b\r\n\r\n", "b"},
		"no line feed at end":  {"data: a\n\ndata: [DONE]", "data: a\n\ndata: [DONE]", "[DONE]"},
		"comments only":        {": a\n: b\n", "", ""},
		"nothing":              {"", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			x := &transport.Exchange{Limit: 1000}
			got, err := post(t, x, "{}", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, test.sent)
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if last := string(x.LastEvent()); last != test.last {
				t.Errorf("last event %q, want %q", last, test.last)
			}
		})
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
		"date":         {"Retry-After", soon, 90 * time.Second, 100 * time.Second},
		"past":         {"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", 0, 0},
		"milliseconds": {"Retry-After-Ms", "250", 250 * time.Millisecond, 250 * time.Millisecond},
		"negative":     {"Retry-After", "-5", 0, 0},
		"words":        {"Retry-After", "later", 0, 0},
		"absurd":       {"Retry-After", "1e300", 0, 0},
		"no number":    {"Retry-After", "NaN", 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := post(t, &transport.Exchange{}, "{}", func(w http.ResponseWriter, _ *http.Request) {
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
		want transport.Detail
	}{
		"openai":       {`{"error":{"message":"m","type":"t","code":"c"}}`, transport.Detail{Message: "m", Code: "c"}},
		"type only":    {`{"error":{"message":"m","type":"t","code":null}}`, transport.Detail{Message: "m", Code: "t"}},
		"number":       {`{"error":{"message":"m","code":503}}`, transport.Detail{Message: "m", Code: "503"}},
		"bare message": {`{"object":"error","message":"m","code":40303}`, transport.Detail{Message: "m", Code: "40303"}},
		"error text":   {`{"error":"m"}`, transport.Detail{Message: "m"}},
		"detail":       {`{"detail":"m"}`, transport.Detail{Message: "m"}},
		"text":         {" m\n", transport.Detail{Message: "m"}},
		"list":         {`["m"]`, transport.Detail{Message: `["m"]`}},
		"HTML":         {"<!doctype html><p>secret", transport.Detail{}},
		"nothing":      {"", transport.Detail{}},
		"long":         {long, transport.Detail{Message: long[:1000] + "..."}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, transport.ParseDetail([]byte(test.body))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Nothing at all may be a wrong address; the beginning of an answer is not.
func TestFailedSuspectsSilence(t *testing.T) {
	for name, test := range map[string]struct {
		serve   http.HandlerFunc
		suspect bool
	}{
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		"hangs up in the midst": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, false},
	} {
		x := &transport.Exchange{Limit: 1000}
		_, err := post(t, x, "{}", test.serve)
		if e := x.Failed(err); err == nil || !e.Retryable || e.Suspect != test.suspect || !strings.Contains(e.Hint, "model.base_url") {
			t.Errorf("%s: %+v: %v", name, e, err)
		}
	}
	if e := transport.Late(time.Second); e.Suspect || !e.Retryable || !strings.Contains(e.Hint, "model.timeout") {
		t.Errorf("%+v", e)
	}
}
