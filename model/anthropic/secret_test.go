package anthropic_test

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
	"github.com/minibench/mini/model/anthropic"
)

// leaks says whether a text has the key, as it is or as JSON or Go writes it.
func leaks(text string) bool {
	return strings.Contains(text, "0123") || strings.Contains(text, "456789") ||
		strings.Contains(text, fmt.Sprintf("%x", "456789"))
}

func TestConfigNeverPrintsTheKey(t *testing.T) {
	c := anthropic.Config{Name: "m", APIKey: secret, BaseURL: "https://example.org", Headers: map[string]string{"X-Team": "456789"}}
	m, err := anthropic.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for what, value := range map[string]any{"config": c, "pointer": &c, "in a struct": struct{ C anthropic.Config }{c}, "model": m} {
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
	if !strings.Contains(fmt.Sprint(c), "key set") || !strings.Contains(fmt.Sprint(c), "X-Team") {
		t.Errorf("%v does not say that there is a key, and a header", c)
	}
}

// A server, or a proxy, that echoes the request's headers.
func TestAnswersNeverHoldTheKey(t *testing.T) {
	echo := func(status int, kind, format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			quoted, err := json.Marshal(r.Header.Get("X-Api-Key"))
			if err != nil {
				t.Error(err)
			}
			if !leaks(string(quoted)) {
				t.Error("the key did not arrive")
			}
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.ReplaceAll(format, `"KEY"`, string(quoted)))
		}
	}
	tests := map[string]http.HandlerFunc{
		"refusal":  echo(401, "application/json", failure("authentication_error", `x","message":"KEY"`+`,"y":"`)),
		"text":     echo(500, "text/plain", `not good: "KEY"`),
		"error":    echo(200, "application/json", `{"error":{"message":"KEY"}}`),
		"answer":   echo(200, "application/json", message(`{"type":"text","text":"KEY"}`, `"end_turn"`)),
		"thought":  echo(200, "application/json", message(`{"type":"thinking","thinking":"KEY","signature":""}`, `"end_turn"`)),
		"event":    echo(200, "text/event-stream", `data: {"type":"error","error":{"type":"api_error","message":"KEY"}}`+"\n\n"),
		"stream":   echo(200, "text/event-stream", strings.Replace(streamed, `"text":"héllo"`, `"text":"KEY"`, 1)),
		"bad kind": echo(200, "text/event-stream", `data: {"type":"KEY"}`+"\n\n"),
	}
	for name, serve := range tests {
		t.Run(name, func(t *testing.T) {
			c := anthropic.Config{APIKey: secret, Stream: name == "event" || name == "stream"}
			got, err := ask(t, c, serve)
			if text := fmt.Sprintf("%+v %+v %s %s", got, err, got.Raw, got.Message.Kept); leaks(text) || !strings.Contains(text, "[redacted]") {
				t.Errorf("%s", text)
			}
		})
	}
}

// The key is for the server that was named.
func TestRedirects(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked, with %v", r.Header)
	}))
	defer thief.Close()
	_, err := ask(t, anthropic.Config{APIKey: secret}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+"/v1/messages", http.StatusTemporaryRedirect)
	})
	if e, ok := errors.AsType[*model.Error](err); !ok || e.Status != model.BadRequest || e.Retryable || !strings.Contains(e.Hint, "base URL") {
		t.Errorf("error %v: %+v", err, e)
	}

	got, err := ask(t, anthropic.Config{APIKey: secret, Kwargs: map[string]any{"top_k": 1}}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/messages" {
			http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
			return
		}
		if r.Header.Get("X-Api-Key") != secret {
			t.Error("the key is lost")
		}
		says(200, "application/json", plain)(w, r)
	})
	if err != nil || got.Usage.Prompt != 100 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNewRefuses(t *testing.T) {
	kwargs := func(name string, value any) anthropic.Config {
		return anthropic.Config{Name: "m", Kwargs: map[string]any{name: value}}
	}
	tests := map[string]struct {
		config anthropic.Config
		want   string
	}{
		"no name":           {anthropic.Config{}, "model name is missing"},
		"no scheme":         {anthropic.Config{Name: "m", BaseURL: "localhost:8000"}, "want http:// or https://"},
		"no host":           {anthropic.Config{Name: "m", BaseURL: "http:///v1"}, "and a host"},
		"password":          {anthropic.Config{Name: "m", BaseURL: "http://u:0123@h"}, "want no user"},
		"query":             {anthropic.Config{Name: "m", BaseURL: "http://h/v1?key=0123"}, "keys come from the environment"},
		"not a URL":         {anthropic.Config{Name: "m", BaseURL: "http://0123 456789\x7f"}, "cannot be parsed"},
		"whole address":     {anthropic.Config{Name: "m", BaseURL: "http://h/v1/messages/"}, "leave /messages away"},
		"broken key":        {anthropic.Config{Name: "m", APIKey: "sk-0123\n456789"}, "control character"},
		"header name":       {anthropic.Config{Name: "m", Headers: map[string]string{"a b": "c"}}, `header "a b"`},
		"header value":      {anthropic.Config{Name: "m", Headers: map[string]string{"a": "0123\n"}}, `header "a"`},
		"key as header":     {anthropic.Config{Name: "m", Headers: map[string]string{"X-API-Key": "0123"}}, "keys come from the environment"},
		"token as header":   {anthropic.Config{Name: "m", Headers: map[string]string{"authorization": "Bearer 0123"}}, "keys come from the environment"},
		"model in kwargs":   {kwargs("model", "x"), `"model" cannot be set here`},
		"system in kwargs":  {kwargs("system", "x"), `"system" cannot be set here`},
		"key in kwargs":     {kwargs("api_key", "0123"), "keys come from the environment"},
		"tools in kwargs":   {anthropic.Config{Name: "m", Tools: bash, Kwargs: map[string]any{"tools": []any{}}}, `"tools" cannot be set here`},
		"kwargs of no JSON": {kwargs("f", func() {}), "model kwargs: f: "},
		"betas":             {kwargs("betas", "one"), "want a list of names"},
		"beta of two lines": {kwargs("betas", []string{"a\r\nx: y"}), "is not a name"},
		"max_tokens":        {kwargs("max_tokens", "many"), "is not a number of tokens"},
		"no room to answer": {anthropic.Config{Name: "m", MaxTokens: 1000, Kwargs: map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 1000}}}, "leaves nothing of the 1000"},
		"tool of no schema": {anthropic.Config{Name: "m", Tools: []model.Definition{{Name: "bash"}}}, "JSON Schema"},
		"cache":             {anthropic.Config{Name: "m", Cache: "2h"}, `cache "2h"`},
		"negative timeout":  {anthropic.Config{Name: "m", Timeout: -1}, "cannot be negative"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := anthropic.New(test.config)
			if err == nil || !strings.Contains(err.Error(), test.want) || leaks(err.Error()) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
