package localservers_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/model/localservers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	const own = "LOCAL_API_KEY"
	ollama := localservers.Server{Name: "Ollama", BaseURL: "http://127.0.0.1:11434/v1", KeyEnv: own}
	vllm := localservers.Server{Name: "vLLM", BaseURL: "http://127.0.0.1:8000/v1", KeyEnv: "VLLM_API_KEY"}
	llama := localservers.Server{Name: "llama.cpp", BaseURL: "http://127.0.0.1:8080/v1", KeyEnv: "LLAMA_API_KEY"}
	tests := map[string]struct {
		host string // OLLAMA_HOST
		want localservers.Server
	}{
		"ollama":                      {"", ollama},
		"Ollama":                      {"", ollama},
		"vllm":                        {"", vllm},
		"llama.cpp":                   {"", llama},
		"llamacpp":                    {"", llama},
		"llama-cpp":                   {"", llama},
		"8000":                        {"", vllm},
		"http://127.0.0.1:8080/v1/":   {"", llama},
		"1234":                        {"", localservers.Server{BaseURL: "http://127.0.0.1:1234/v1", KeyEnv: own}},
		"box:8000":                    {"", localservers.Server{BaseURL: "http://box:8000/v1", KeyEnv: own}},
		"https://box/api/v1":          {"", localservers.Server{BaseURL: "https://box/api/v1", KeyEnv: own}},
		"[::1]:9":                     {"", localservers.Server{BaseURL: "http://[::1]:9/v1", KeyEnv: own}},
		"ollama ":                     {"0.0.0.0", ollama},
		"OLLAMA":                      {":11434", ollama},
		"ollama  ":                    {"http://127.0.0.1:11434/", ollama},
		"ollama   ":                   {"box", localservers.Server{Name: "Ollama", BaseURL: "http://box:11434/v1", KeyEnv: own}},
		"ollama    ":                  {"https://box:443", localservers.Server{Name: "Ollama", BaseURL: "https://box:443/v1", KeyEnv: own}},
		"ollama     ":                 {"[::]:7", localservers.Server{Name: "Ollama", BaseURL: "http://127.0.0.1:7/v1", KeyEnv: own}},
		"http://127.0.0.1:11434":      {"", ollama},
		"http://127.0.0.1:11434/else": {"", localservers.Server{BaseURL: "http://127.0.0.1:11434/else", KeyEnv: own}},
	}
	for text, test := range tests {
		t.Setenv("OLLAMA_HOST", test.host)
		got, err := localservers.Parse(text)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%q with %q: %v (-want +got):\n%s", text, test.host, err, diff)
		}
	}
	for _, text := range []string{"", "olama", "0", "99999", "ftp://box", "http://", "http://me:secret@box", "http://box?key=secret", "http://%zz", "/v1"} {
		if got, err := localservers.Parse(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

func TestProbe(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		key    string
		want   []localservers.Model
		err    string
	}{
		"models":       {200, `{"data":[{"id":"a","max_model_len":32768},{"id":"b"},{"id":"a"},{"id":""}]}`, "", []localservers.Model{{"a", 32768}, {"b", 0}}, ""},
		"with a key":   {200, `{"data":[{"id":"a"}]}`, "k-1", []localservers.Model{{"a", 0}}, ""},
		"wants a key":  {401, `{}`, "", nil, "the server requires a key (401): export MINE=..."},
		"no model":     {200, `{"data":[]}`, "", nil, "the server has no models"},
		"endless":      {200, `{"data":[{"id":"` + strings.Repeat("x", 5<<20), "", nil, "not a model server"},
		"a website":    {200, `<html>`, "", nil, "not a model server"},
		"another site": {404, `{}`, "", nil, "has no list of models (404)"},
		"sent away":    {302, ``, "", nil, "has no list of models (302)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MINE", test.key)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if want := map[bool]string{true: "Bearer " + test.key}[test.key != ""]; r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != want {
					t.Errorf("%s %q", r.URL, r.Header.Get("Authorization"))
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(test.status)
				_, _ = fmt.Fprint(w, test.body)
			}))
			defer s.Close()
			r := localservers.Probe(t.Context(), localservers.Server{BaseURL: s.URL + "/v1", KeyEnv: "MINE"})
			assert.Equal(t, test.want, r.Models, "r.Models")
			if (r.Err == nil) != (test.err == "") || r.Err != nil && !strings.Contains(r.Err.Error(), test.err) || errors.Is(r.Err, localservers.ErrUnreachable) {
				t.Errorf("%v, want %q", r.Err, test.err)
			}
		})
	}
}

func TestProbeAllKeepsOrder(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"data":[{"id":"qwen3:latest"},{"id":"nomic-embed-text"}]}`)
	}))
	defer s.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	results := localservers.ProbeAll(t.Context(), []localservers.Server{{Name: "gone", BaseURL: gone.URL + "/v1"}, {Name: "here", BaseURL: s.URL + "/v1"}})
	if !errors.Is(results[0].Err, localservers.ErrUnreachable) || !strings.Contains(results[0].Err.Error(), "refused") || results[1].Err != nil {
		t.Fatalf("%+v", results)
	}
	if m, ok := results[1].FindModel("qwen3"); !ok || m.Name != "qwen3:latest" {
		t.Errorf("qwen3 is %v, %v", m, ok)
	}
	if _, ok := results[1].FindModel("qwen"); ok {
		t.Error("there is no qwen")
	}
	if models := results[1].TextModels(); len(models) != 1 || models[0].Name != "qwen3:latest" {
		t.Errorf("%v", models)
	}
}

// Reasons contain no addresses, which may contain keys.
func TestErrorReason(t *testing.T) {
	const address = "http://user:k-1@host/"
	for want, err := range map[string]error{
		"no such host":                    &net.DNSError{Err: "no such host", Name: "host", IsNotFound: true},
		"its name cannot be resolved":     &net.DNSError{Err: "server misbehaving", Name: "host"},
		"no response within 5s":           context.DeadlineExceeded,
		"connection refused":              &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"the proxy address is not a URL":  fmt.Errorf("invalid proxy address %q", address),
		"http: server gave an odd answer": errors.New("http: server gave an odd answer"),
	} {
		assert.Equal(t, want, localservers.ErrorReason(&url.Error{Op: "Get", URL: address, Err: err}, 5*time.Second))
	}
}
