package configs_test

import (
	"testing"

	"github.com/minibench/mini/configs"
)

// A file that is not a mapping is an error, and changes nothing.
func TestMergeOfList(t *testing.T) {
	l, err := configs.ReadFile(file(t, "list.yaml", "- a\n"))
	if err == nil {
		t.Error("a list is a configuration")
	}
	if _, err := configs.Merge(builtin(t, "mini"), l); err != nil {
		t.Error(err)
	}
}

// The values of an overlay can be read before they are checked.
func TestOverlay(t *testing.T) {
	l, err := configs.ReadFile(file(t, "mine.yaml", "run: {workers: 0}\nagent: {step_limit: 7, cost_limit: null}\nmodel: {model_name: a}\nenvironment: {env: {A: one}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := configs.NewOverlay(builtin(t, "mini"), l)
	var limits [2]float64
	var vars map[string]string
	for key, into := range map[string]any{"agent.step_limit": &limits[0], "agent.cost_limit": &limits[1], "environment.env": &vars} {
		if err := o.Decode(key, into); err != nil {
			t.Error(err)
		}
	}
	if name := o.Value("model.model_name"); name != "a" || limits != [2]float64{7, 3} || vars["A"] != "one" || len(vars) < 2 {
		t.Errorf("model %q, limits %v, variables %v", name, limits, vars)
	}
	if _, err := o.Check(); err == nil {
		t.Error("no workers are valid")
	}
}
