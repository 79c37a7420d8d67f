package servers_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/minibench/mini/cmd/mini/internal/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	const own = "LOCAL_API_KEY"
	ollama := servers.Place{Name: "Ollama", BaseURL: "http://127.0.0.1:11434/v1", KeyEnv: own}
	vllm := servers.Place{Name: "vLLM", BaseURL: "http://127.0.0.1:8000/v1", KeyEnv: "VLLM_API_KEY"}
	llama := servers.Place{Name: "llama.cpp", BaseURL: "http://127.0.0.1:8080/v1", KeyEnv: "LLAMA_API_KEY"}
	tests := map[string]struct {
		host string // OLLAMA_HOST
		want servers.Place
	}{
		"ollama":                      {"", ollama},
		"Ollama":                      {"", ollama},
		"vllm":                        {"", vllm},
		"llama.cpp":                   {"", llama},
		"llamacpp":                    {"", llama},
		"llama-cpp":                   {"", llama},
		"8000":                        {"", vllm},
		"http://127.0.0.1:8080/v1/":   {"", llama},
		"1234":                        {"", servers.Place{BaseURL: "http://127.0.0.1:1234/v1", KeyEnv: own}},
		"box:8000":                    {"", servers.Place{BaseURL: "http://box:8000/v1", KeyEnv: own}},
		"https://box/api/v1":          {"", servers.Place{BaseURL: "https://box/api/v1", KeyEnv: own}},
		"[::1]:9":                     {"", servers.Place{BaseURL: "http://[::1]:9/v1", KeyEnv: own}},
		"ollama ":                     {"0.0.0.0", ollama},
		"OLLAMA":                      {":11434", ollama},
		"ollama  ":                    {"http://127.0.0.1:11434/", ollama},
		"ollama   ":                   {"box", servers.Place{Name: "Ollama", BaseURL: "http://box:11434/v1", KeyEnv: own}},
		"ollama    ":                  {"https://box:443", servers.Place{Name: "Ollama", BaseURL: "https://box:443/v1", KeyEnv: own}},
		"ollama     ":                 {"[::]:7", servers.Place{Name: "Ollama", BaseURL: "http://127.0.0.1:7/v1", KeyEnv: own}},
		"http://127.0.0.1:11434":      {"", ollama},
		"http://127.0.0.1:11434/else": {"", servers.Place{BaseURL: "http://127.0.0.1:11434/else", KeyEnv: own}},
	}
	for text, test := range tests {
		t.Setenv("OLLAMA_HOST", test.host)
		got, err := servers.Parse(text)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%q with %q: %v (-want +got):\n%s", text, test.host, err, diff)
		}
	}
	for _, text := range []string{"", "olama", "0", "99999", "ftp://box", "http://", "http://me:secret@box", "http://box?key=secret", "http://%zz", "/v1"} {
		if got, err := servers.Parse(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

func TestAsk(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		key    string
		want   []servers.Model
		err    string
	}{
		"models":       {200, `{"data":[{"id":"a","max_model_len":32768},{"id":"b"},{"id":"a"},{"id":""}]}`, "", []servers.Model{{"a", 32768}, {"b", 0}}, ""},
		"with a key":   {200, `{"data":[{"id":"a"}]}`, "k-1", []servers.Model{{"a", 0}}, ""},
		"wants a key":  {401, `{}`, "", nil, "it wants a key (401): export MINE=..."},
		"no model":     {200, `{"data":[]}`, "", nil, "it answers, and has no model"},
		"a website":    {200, `<html>`, "", nil, "no server of models"},
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
			f := servers.Ask(t.Context(), servers.Place{BaseURL: s.URL + "/v1", KeyEnv: "MINE"})
			if diff := cmp.Diff(test.want, f.Models); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (f.Err == nil) != (test.err == "") || f.Err != nil && !strings.Contains(f.Err.Error(), test.err) || errors.Is(f.Err, servers.ErrNobody) {
				t.Errorf("%v, want %q", f.Err, test.err)
			}
		})
	}
}

func TestFindKeepsTheOrder(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"data":[{"id":"qwen3:latest"},{"id":"nomic-embed-text"}]}`)
	}))
	defer s.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	found := servers.Find(t.Context(), []servers.Place{{Name: "gone", BaseURL: gone.URL + "/v1"}, {Name: "here", BaseURL: s.URL + "/v1"}})
	if !errors.Is(found[0].Err, servers.ErrNobody) || !strings.Contains(found[0].Err.Error(), "refused") || found[1].Err != nil {
		t.Fatalf("%+v", found)
	}
	if m, ok := found[1].Named("qwen3"); !ok || m.Name != "qwen3:latest" {
		t.Errorf("qwen3 is %v, %v", m, ok)
	}
	if _, ok := found[1].Named("qwen"); ok {
		t.Error("there is no qwen")
	}
	if talking := found[1].Talking(); len(talking) != 1 || talking[0].Name != "qwen3:latest" {
		t.Errorf("%v", talking)
	}
}
