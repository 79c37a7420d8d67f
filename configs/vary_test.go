package configs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/configs"
)

// A later layer replaces the values of a setting in its place; other layers do not see
// the key vary.
func TestVaryOfFiles(t *testing.T) {
	low := file(t, "low.yaml", "agent: {step_limit: 7}\nvary:\n  agent.step_limit: [1, 2]\n  model.model_name: [\"a,b\", c]\n")
	high := file(t, "high.yaml", "vary:\n  agent.step_limit: [3]\n  environment.cap_drop: [[ALL], []]\n  agent.instance_template: [{file: p.md}]\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(high), "p.md"), []byte("the prompt"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := merged(t, "swebench", low, high)
	var layers []configs.Layer
	for _, path := range []string{low, high} {
		l, err := configs.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, l)
	}
	vary := configs.NewOverlay(layers...).Vary()
	got := map[string][]string{}
	var order []string
	for _, v := range vary {
		order = append(order, v.Key)
		for _, value := range v.Values {
			got[v.Key] = append(got[v.Key], value.Text)
		}
	}
	want := map[string][]string{
		"agent.step_limit": {"3"}, "model.model_name": {"a,b", "c"}, "environment.cap_drop": {`["ALL"]`, "[]"}, "agent.instance_template": {"p.md"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if order[0] != "agent.step_limit" || order[1] != "model.model_name" {
		t.Errorf("order %v", order)
	}
	varied, err := cfg.With(vary[0].Values[0].Layer, vary[3].Values[0].Layer)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Agent.StepLimit != 7 || varied.Agent.StepLimit != 3 || varied.Agent.InstanceTemplate != "the prompt" {
		t.Errorf("step limits %d and %d, prompt %q", cfg.Agent.StepLimit, varied.Agent.StepLimit, varied.Agent.InstanceTemplate)
	}
	if data, err := varied.YAML(); err != nil || strings.Contains(string(data), "vary") {
		t.Errorf("config.yaml has the key vary: %v", err)
	}
}

func TestVaryMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"vary: 3":                                      `:1: vary: it must be a mapping from keys to lists of values, not "3"`,
		"vary:\n  agent.step_limit: 3":                 `:2: vary.agent.step_limit: it must be a list of values, not "3"`,
		"vary:\n  agent.step_limit: []":                ":2: vary.agent.step_limit: it has no values",
		"vary:\n  agent.step_limit: [~]":               ":2: vary.agent.step_limit: null is not a value",
		"vary:\n  agent.step_limit: [2, 2]":            `:2: vary.agent.step_limit: the value "2" is given twice`,
		"vary:\n  agent.step_limit:\n    - 2\n    - b": `:4: agent.step_limit: it must be a whole number, not "b"`,
		"vary:\n  agent..x: [1]":                       ": the key has an empty part; write key.sub=value",
		"vary:\n  vary: [1]":                           ":2: unknown key vary",
	} {
		path := file(t, "f.yaml", text)
		if _, err := configs.ReadFile(path); err == nil || !strings.HasPrefix(err.Error(), path+want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for arg, want := range map[string]string{
		"agent.step_limit":           "--vary agent.step_limit: it takes KEY=A,B",
		"agent.step_limit=":          "--vary agent.step_limit=: it takes KEY=A,B",
		"agent.step_limit=1,,2":      "--vary agent.step_limit: a value is empty",
		"environment.cap_drop=[A,B]": "--vary environment.cap_drop: a value is empty or contains a comma",
		"agent.step_limit=1,1":       `--vary agent.step_limit: the value "1" is given twice`,
		"agent.step_limits=1":        "--vary agent.step_limits=1: unknown key agent.step_limits; did you mean agent.step_limit?",
	} {
		if _, err := configs.ParseVaried(arg); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", arg, err, want)
		}
	}
	if _, err := configs.ReadArg("vary.agent.step_limit=1"); err == nil || !strings.Contains(err.Error(), "the flag is --vary KEY=A,B") {
		t.Errorf("-c vary: %v", err)
	}
}
