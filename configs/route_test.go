package configs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
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
	require.Equal(t, 2, len(all), "models")
	fast, deep := all[0].Model, all[1].Model
	want := cfg.Model
	want.Route = configs.Route{}
	want.Name, want.Price = "fast", model.Price{Input: 1, Output: 2}
	want.Kwargs = map[string]any{"temperature": 0, "extra": map[string]any{"a": 1}, "top_p": 0.5}
	assert.Equal(t, want, fast, "the first")
	want.Name, want.Class, want.Price, want.Stream = "deep", "anthropic", model.Price{}, true
	want.BaseURL, want.APIKeyEnv, want.Headers = "", "ANTHROPIC_API_KEY", nil
	want.Kwargs = map[string]any{"temperature": 1, "extra": map[string]any{"a": 1}}
	assert.Equal(t, want, deep, "the second")
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
	require.NoError(t, err)
	assert.NoDiff(t, cmp.Diff(withoutDefaults(cfg), withoutDefaults(merged(t, "swebench", file(t, "again.yaml", string(data))))), "read back (-first +second)")
}

func TestFreeRoute(t *testing.T) {
	free := merged(t, "swebench", file(t, "free.yaml", "model: {price: {free: true}, route: {kind: roulette, models: [{model_name: a}, {model_name: b}]}}"))
	if !free.RouteConfigs()[1].Model.Price.Free {
		t.Error("a free section does not make all models free")
	}
}
