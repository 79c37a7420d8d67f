package config_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/config"
	"github.com/minibench/mini/cmd/mini/internal/settings"
)

// provider is a server with OpenAI's API and the given models, which accepts the key "sk-right".
func provider(t *testing.T, models ...string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var list []map[string]string
		for _, m := range models {
			list = append(list, map[string]string{"id": m})
		}
		switch {
		case r.Header.Get("Authorization") != "Bearer sk-right":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"error":{"message":"Incorrect API key provided"}}`)
		case r.URL.Path == "/v1/models" && models == nil:
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Path == "/v1/models":
			_ = json.NewEncoder(w).Encode(map[string]any{"data": list})
		default:
			_, _ = fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// setUp answers the questions of mini config setup about another server with the given lines. It returns what
// was printed and the name of the stored model.
func setUp(t *testing.T, server *httptest.Server, lines ...string) (shown, model string) {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "LOCAL_API_KEY", "MSWEA_MODEL_NAME"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("OLLAMA_HOST", "127.0.0.1:9")
	t.Chdir(home)
	var out strings.Builder
	lines = append([]string{"another server", server.URL + "/v1", "LOCAL_API_KEY"}, lines...)
	a := app.New(t.Context(), cmdutil.Streams{In: strings.NewReader(strings.Join(lines, "\n") + "\n"), Out: &out, Err: &out, Interactive: true})
	cfg, err := a.ConfigWithoutModel(t.Context(), &settings.Flags{FlagSet: pflag.NewFlagSet("", pflag.ContinueOnError)}, config.BuiltinConfigByKind["task"])
	if err != nil {
		t.Fatal(err)
	}
	answers, err := config.SetUp(t.Context(), a, cfg)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	data, err := os.ReadFile(filepath.Join(home, ".config/mini/.env"))
	if err != nil || !strings.Contains(string(data), "sk-") {
		t.Errorf("the key: %q, %v", data, err)
	}
	if !strings.HasPrefix(os.Getenv("LOCAL_API_KEY"), "sk-") {
		t.Error("the session that follows does not have the key")
	}
	return out.String(), answers.Model
}

// The set-up lists the models of the server, says that a key is wrong, and calls the model.
func TestSetUpListsModels(t *testing.T) {
	many := make([]string, 60)
	for i := range many {
		many[i] = fmt.Sprintf("family-%02d\x1b[31m", i)
	}
	for name, test := range map[string]struct {
		models []string
		lines  []string
		want   string
		shown  []string
	}{
		"by number":           {[]string{"b-model", "a-model", "text-embedding-3"}, []string{"sk-right", "2", "y"}, "b-model", []string{"1  a-model\n", "2  b-model\n", `It works: "ok" after`}},
		"by a part":           {[]string{"b-model", "a-model"}, []string{"sk-right", "b-m", "n"}, "b-model", nil},
		"by a part of many":   {append(many, "last"), []string{"sk-right", "family-1", "family-17", "n"}, "family-17\x1b[31m", []string{"and 41 more; a part of a name", "18  family-17"}},
		"another name, twice": {[]string{"a-model"}, []string{"sk-right", "zz", "zz", "n"}, "zz", []string{"does not list zz; the same name again uses it anyway."}},
		"a wrong key":         {[]string{"a-model"}, []string{"sk-wrong", "sk-right", "a-model", ""}, "a-model", []string{"rejects the key (401). Paste another one", "It works"}},
		"a wrong key is kept": {[]string{"a-model"}, []string{"sk-wrong", "", "a-model", ""}, "a-model", []string{"rejects the key (401). Paste another one", "It does not work: ", "Incorrect API key provided"}},
		"no list":             {nil, []string{"sk-right", "my-model", "y"}, "my-model", []string{"lists no models (404). Type the name of the model.", "It works"}},
	} {
		t.Run(name, func(t *testing.T) {
			shown, model := setUp(t, provider(t, test.models...), test.lines...)
			if model != test.want {
				t.Errorf("the model is %q, want %q\n%s", model, test.want, shown)
			}
			for _, want := range test.shown {
				if !strings.Contains(shown, want) {
					t.Errorf("no %q in\n%s", want, shown)
				}
			}
			if strings.ContainsAny(shown, "\x1b") || strings.Contains(shown, "text-embedding") || strings.Contains(shown, "sk-") {
				t.Errorf("shown:\n%s", shown)
			}
		})
	}
}
