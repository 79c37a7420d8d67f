package setup

import (
	"strings"
	"testing"

	"github.com/minibench/mini/configs"
	modelopen "github.com/minibench/mini/model/open"
)

// configured returns the configuration of mini bench with settings.
func configured(t *testing.T, settings ...string) *configs.Resolved {
	t.Helper()
	base, err := configs.ReadBuiltin("swebench")
	if err != nil {
		t.Fatal(err)
	}
	layers := []configs.Layer{base}
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		l, err := configs.ParseSetting("-c "+s, key, value)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, l)
	}
	cfg, err := configs.Merge(layers...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestSetWindow checks windows of single models and routes. Numbers without a setting
// are from the embedded table.
func TestSetWindow(t *testing.T) {
	const claude = `{"model_name":"claude-haiku-4-5","model_class":"anthropic"}` // 200,000
	route := func(kind, models string, more ...string) []string {
		return append(more, "model.route.kind="+kind, "model.route.models=["+models+"]")
	}
	tests := map[string]struct {
		settings        []string
		tokens, reserve int64 // 0: no limit
	}{
		"nobody knows":                {[]string{"model.model_name=any"}, 0, 0},
		"the table knows":             {[]string{"model.model_name=claude-haiku-4-5", "model.model_class=anthropic"}, 200_000, 4096},
		"elsewhere it knows not":      {[]string{"model.model_name=claude-haiku-4-5", "model.model_class=anthropic", "model.base_url=http://h/"}, 0, 0},
		"the setting wins":            {[]string{"model.model_name=claude-haiku-4-5", "model.model_class=anthropic", "model.context_window=1000"}, 1000, 100},
		"a reserve":                   {[]string{"model.context_window=1000", "model.context_reserve=7"}, 1000, 7},
		"what a reply may have":       {[]string{"model.context_window=100000", `model.model_kwargs={"max_tokens":9000}`}, 100_000, 9000},
		"likewise, by its newer name": {[]string{"model.context_window=100000", `model.model_kwargs={"max_completion_tokens":9000}`}, 100_000, 9000},
		"more than the half":          {[]string{"model.context_window=100000", `model.model_kwargs={"max_tokens":99999}`}, 100_000, 50_000},
		"no number":                   {[]string{"model.context_window=100000", `model.model_kwargs={"max_tokens":"many"}`}, 100_000, 4096},
		"the smallest of a route":     {route("roulette", claude+`,{"model_name":"a","context_window":5000},{"model_name":"b"}`), 5000, 500},
		"the largest, if asked next":  {route("fallback", `{"model_name":"a","context_window":5000},`+claude, `model.route.on=["ContextWindowExceeded"]`), 200_000, 4096},
		"one of unknown size is next": {route("fallback", `{"model_name":"a","context_window":5000},{"model_name":"b"}`, `model.route.on=["ContextWindowExceeded"]`), 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := configured(t, test.settings...)
			if err := setModelFacts(cfg); err != nil {
				t.Fatal(err)
			}
			w := cfg.Agent.Window
			if w.Tokens != test.tokens || w.Reserve != test.reserve {
				t.Errorf("%d tokens, %d for the reply; want %d and %d", w.Tokens, w.Reserve, test.tokens, test.reserve)
			}
		})
	}
}

func TestNameOfSeveralModels(t *testing.T) {
	long := strings.Repeat("n", 150)
	tests := map[string][]string{
		"a+b":                 {`model.route={"kind":"roulette","models":[{"model_name":"a"},{"model_name":"b"},{"model_name":"a","base_url":"http://h/v1"}]}`},
		"both":                {`model.route={"kind":"roulette","models":[{"model_name":"a"},{"model_name":"b"}]}`, "model.model_name=both"},
		"openai":              nil,
		long + "+" + long[1:]: {`model.route={"kind":"roulette","models":[{"model_name":"` + long + `"},{"model_name":"` + long[1:] + `"}]}`},
	}
	for want, settings := range tests {
		cfg := configured(t, append(settings, "model.api_key_env=", "model.base_url=http://h/v1")...)
		if got := modelopen.Name(cfg); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if _, err := modelopen.New(cfg, false, nil, nil); (err == nil) != (want == "a+b" || want == "both") {
			t.Errorf("%.20s: %v", want, err)
		}
	}
}
