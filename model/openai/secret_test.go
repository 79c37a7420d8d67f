package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/openai"
)

// leaks says whether a text has the key, as it is or as JSON or Go writes it.
func leaks(text string) bool {
	return strings.Contains(text, "0123") || strings.Contains(text, "456789") ||
		strings.Contains(text, fmt.Sprintf("%x", "456789"))
}

func TestConfigNeverPrintsTheKey(t *testing.T) {
	c := openai.Config{Name: "m", APIKey: secret, BaseURL: "https://example.org/v1"}
	m, err := openai.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for what, value := range map[string]any{"config": c, "pointer": &c, "in a struct": struct{ C openai.Config }{c}, "model": m} {
			if text := fmt.Sprintf(verb, value); leaks(text) {
				t.Errorf("%s with %s: %s", what, verb, text)
			}
		}
	}
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "config", c)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "config", c)
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if leaks(logged.String()) || leaks(string(b)) || leaks(c.String()) {
		t.Errorf("logged %s, as JSON %s", logged.String(), b)
	}
	if !strings.Contains(fmt.Sprint(c), "key set") {
		t.Errorf("%v does not say that there is a key", c)
	}
}

// A server, or a proxy, that echoes the request's headers.
func TestAnswersNeverHoldTheKey(t *testing.T) {
	echo := func(status int, kind, format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			quoted, err := json.Marshal(r.Header.Get("Authorization"))
			if err != nil {
				t.Error(err)
			}
			if !leaks(string(quoted)) {
				t.Error("the key did not arrive")
			}
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.ReplaceAll(format, "KEY", string(quoted)))
		}
	}
	tests := map[string]http.HandlerFunc{
		"refusal": echo(401, "application/json", `{"error":{"message":KEY}}`),
		"text":    echo(500, "text/plain", `not good: KEY`),
		"error":   echo(200, "application/json", `{"error":{"message":KEY}}`),
		"answer":  echo(200, "application/json", `{"echo":KEY,"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`),
		"event":   echo(200, "text/event-stream", "data: {\"error\":{\"message\":KEY}}\n\n"),
		"stream":  echo(200, "text/event-stream", "data: {\"echo\":KEY,\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n"),
	}
	for name, serve := range tests {
		t.Run(name, func(t *testing.T) {
			c := openai.Config{APIKey: secret, Stream: name == "event" || name == "stream"}
			got, err := ask(t, c, serve)
			if text := fmt.Sprintf("%+v %+v %s", got, err, got.Raw); leaks(text) || !strings.Contains(text, "[redacted]") {
				t.Errorf("%s", text)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	tests := map[string]struct {
		config openai.Config
		want   string
	}{
		"no name":           {openai.Config{}, "model name is missing"},
		"no scheme":         {openai.Config{Name: "m", BaseURL: "localhost:8000/v1"}, "want http:// or https://"},
		"no host":           {openai.Config{Name: "m", BaseURL: "http:///v1"}, "and a host"},
		"password":          {openai.Config{Name: "m", BaseURL: "http://u:0123@h/v1"}, "want no user"},
		"query":             {openai.Config{Name: "m", BaseURL: "http://h/v1?key=0123"}, "keys come from the environment"},
		"not a URL":         {openai.Config{Name: "m", BaseURL: "http://0123 456789\x7f"}, "cannot be parsed"},
		"whole address":     {openai.Config{Name: "m", BaseURL: "http://h/v1/chat/completions/"}, "leave /chat/completions away"},
		"broken key":        {openai.Config{Name: "m", APIKey: "sk-0123\n456789"}, "control character"},
		"model in kwargs":   {openai.Config{Name: "m", Kwargs: map[string]any{"model": "x"}}, `"model" cannot be set here`},
		"key in kwargs":     {openai.Config{Name: "m", Kwargs: map[string]any{"api_key": "0123"}}, "keys come from the environment"},
		"kwargs of no JSON": {openai.Config{Name: "m", Kwargs: map[string]any{"f": func() {}}}, "model kwargs: f: "},
		"negative timeout":  {openai.Config{Name: "m", Timeout: -1}, "cannot be negative"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := openai.New(test.config)
			if err == nil || !strings.Contains(err.Error(), test.want) || leaks(err.Error()) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// A server that sends its callers elsewhere does not get the key there: not even
// on another port, or without TLS, where the standard library would send it.
func TestRedirects(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked, with %v", r.Header)
	}))
	defer thief.Close()
	for _, stream := range []bool{false, true} {
		_, err := ask(t, openai.Config{APIKey: secret, Stream: stream}, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL+"/v1/chat/completions", http.StatusTemporaryRedirect)
		})
		if e, ok := errors.AsType[*model.Error](err); !ok || e.Status != model.BadRequest || e.Retryable || !strings.Contains(e.Hint, "base URL") {
			t.Errorf("error %v: %+v", err, e)
		}
		got, err := ask(t, openai.Config{APIKey: secret, Stream: stream}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/chat/completions" {
				http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
				return
			}
			if r.Header.Get("Authorization") != "Bearer "+secret {
				t.Error("the key is lost")
			}
			says(200, "application/json", plain)(w, r)
		})
		if err != nil || got.Usage.Prompt != 100 {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
