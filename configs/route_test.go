package configs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/model"
)

const twoModels = `
model:
  base_url: https://one.example/v1
  model_kwargs: {temperature: 0, extra: {a: 1}}
  timeout: 100
  route:
    kind: interleave
    sequence: [0, 0, 1]
    models:
      - {model_name: fast, model_kwargs: {top_p: 0.5}, price: {input: 1, output: 2}}
      - {model_name: deep, model_class: anthropic, stream: true, timeout: null, model_kwargs: {temperature: 1}}
`

// TestRouted checks that each entry overrides settings of the section, and that the
// section does not change.
func TestRouted(t *testing.T) {
	cfg := merged(t, "swebench", file(t, "two.yaml", twoModels), "model.headers={}")
	before := cfg.Config
	all := cfg.RouteConfigs()
	if len(all) != 2 {
		t.Fatalf("%d models", len(all))
	}
	fast, deep := all[0].Model, all[1].Model
	want := cfg.Model
	want.Route = configs.Route{}
	want.Name, want.Price = "fast", model.Price{Input: 1, Output: 2}
	want.Kwargs = map[string]any{"temperature": 0, "extra": map[string]any{"a": 1}, "top_p": 0.5}
	if diff := cmp.Diff(want, fast); diff != "" {
		t.Errorf("the first (-want +got):\n%s", diff)
	}
	want.Name, want.Class, want.Price, want.Stream = "deep", "anthropic", model.Price{}, true
	want.BaseURL, want.APIKeyEnv, want.Headers = "", "ANTHROPIC_API_KEY", nil
	want.Kwargs = map[string]any{"temperature": 1, "extra": map[string]any{"a": 1}}
	if diff := cmp.Diff(want, deep); diff != "" {
		t.Errorf("the second (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, cfg.Config); diff != "" || len(cfg.Model.Kwargs) != 2 {
		t.Errorf("the section changed: %s", diff)
	}
	single := merged(t, "swebench")
	if all := single.RouteConfigs(); len(all) != 1 || all[0] != single {
		t.Error("without a route, RouteConfigs must return only the configuration itself")
	}
}

// TestRouteIsShownAndReadBack checks that -c accepts the output of `mini config show`.
func TestRouteIsShownAndReadBack(t *testing.T) {
	cfg := merged(t, "swebench", file(t, "two.yaml", twoModels))
	data, err := cfg.AnnotatedYAML()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withoutDefaults(cfg), withoutDefaults(merged(t, "swebench", file(t, "again.yaml", string(data))))); diff != "" {
		t.Errorf("read back (-first +second):\n%s", diff)
	}
}

func TestInvalidRoutes(t *testing.T) {
	const two = "models: [{model_name: a}, {model_name: b}]"
	tests := map[string]struct{ route, want string }{
		"no kind":                 {two, "bad.yaml:3: model.route.models: set model.route.kind to one of roulette, interleave, fallback"},
		"another kind":            {"kind: roulete, " + two, `model.route.kind: "roulete" is not one of roulette, interleave, fallback; did you mean roulette?`},
		"no models":               {"kind: roulette", "model.route.models: the list of models is empty"},
		"an index beyond":         {"kind: interleave, sequence: [0, 2], " + two, "model.route.sequence: 2 is not an index of the 2 models, which starts at 0"},
		"an index before":         {"kind: interleave, sequence: [-1], " + two, "model.route.sequence: -1 is not an index"},
		"an index that is none":   {"kind: interleave, sequence: [a], " + two, "model.route.sequence: "},
		"a status":                {"kind: fallback, on: [RateLimit], " + two, `model.route.on: "RateLimit" is not one of AuthenticationError, RateLimited`},
		"a seed for a fallback":   {"kind: fallback, seed: 3, " + two, "model.route.seed: only the kind roulette uses it"},
		"a sequence for roulette": {"kind: roulette, sequence: [0], " + two, "model.route.sequence: only the kind interleave uses it"},
		"on for interleave":       {"kind: interleave, on: [RateLimited], " + two, "model.route.on: only the kind fallback uses it"},
		"a negative seed":         {"kind: roulette, seed: -1, " + two, "model.route.seed: it must be a whole number"},
		"a script":                {"kind: roulette, models: [{model_name: a}, {model_class: scripted}]", "model.route.models[1].model_class: the scripted model cannot be part of a route"},
		"a class":                 {"kind: roulette, models: [{model_class: opena}]", `model.route.models[0].model_class: "opena" is not one of openai, anthropic, scripted; did you mean openai?`},
		"a key nobody knows":      {"kind: roulette, models: [{model_nam: a}]", "unknown key model.route.models[0].model_nam; did you mean model.route.models[0].model_name?"},
		"a wrong type":            {"kind: roulette, models: [{stream: maybe}]", `model.route.models[0].stream: it must be true or false, not "maybe"`},
		"no mapping":              {"kind: roulette, models: [a]", "model.route.models[0]: it must be a mapping"},
		"no list":                 {"kind: roulette, models: a", "model.route.models: it must be a list of mappings"},
		"a route in a route":      {"kind: roulette, models: [{route: {kind: roulette}}]", "model.route.models[0].route: it cannot be set for a model of a route"},
		"replies":                 {"kind: roulette, models: [{replies: a.yaml}]", "model.route.models[0].replies: it cannot be set for a model of a route"},
		"a key in the kwargs":     {"kind: roulette, models: [{model_kwargs: {api_key: k}}]", "model.route.models[0].model_kwargs.api_key: do not put keys in the configuration"},
		"an address":              {"kind: roulette, models: [{base_url: 'ftp://a'}]", "bad.yaml:3: model.route.models[0].base_url: it must start with"},
		"another class's setting": {"kind: roulette, models: [{cache: 1h}]", "model.route.models[0].cache: only model_class: anthropic"},
		"one price for two":       {"kind: roulette, " + two + "}, price: {input: 1", "model.price: it is the price of one model, but the route has several"},
		"one name for two":        {"kind: roulette, " + two + "}, price_as: gpt-5, headers: {", "model.price_as: it is the price of one model"},
		"a scripted section":      {"kind: roulette, " + two + "}, model_class: scripted, headers: {", "model.model_class: the scripted model cannot be used with a route"},
		"the section's mistake":   {"kind: roulette, " + two + "}, max_wait: 0, headers: {", "model.max_wait: 0 is not a number of seconds"},
		"a window":                {"}, context_window: -1, headers: {", "model.context_window: -1 is negative; 0 means the window"},
		"a reserve":               {"}, context_window: 100, context_reserve: 100, headers: {", "model.context_reserve: 100 leaves no room for the prompt in the window of 100 tokens"},
		"a reserve of an entry":   {"kind: roulette, models: [{context_window: 10, context_reserve: 20}]", "model.route.models[0].context_reserve: 20 leaves no room"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l, err := configs.ReadArg(file(t, "bad.yaml", "# a comment\nmodel:\n  {route: {"+test.route+"}}\n"))
			if err == nil {
				_, err = configs.Merge(builtin(t, "swebench"), l)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "more; mini config") && name != "a seed for a fallback" {
				t.Errorf("reported more than once: %v", err)
			}
		})
	}
	free := merged(t, "swebench", file(t, "free.yaml", "model: {price: {free: true}, route: {kind: roulette, "+two+"}}"))
	if !free.RouteConfigs()[1].Model.Price.Free {
		t.Error("a free section does not make all models free")
	}
}
