package configs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
)

func builtin(t *testing.T, name string) configs.Layer {
	t.Helper()
	l, err := configs.ReadBuiltin(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// file writes a configuration and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBuiltinConfigurationsWork(t *testing.T) {
	for _, names := range [][]string{{"mini"}, {"swebench"}, {"swebench", "demo"}} {
		t.Run(strings.Join(names, "+"), func(t *testing.T) {
			var layers []configs.Layer
			for _, n := range names {
				layers = append(layers, builtin(t, n))
			}
			cfg, err := configs.Merge(layers...)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := agent.New(cfg.Agent); err != nil {
				t.Error(cfg.Locate(err))
			}
		})
	}
}

func TestLaterLayersWin(t *testing.T) {
	path := file(t, "mine.yaml", "agent:\n  step_limit: 7\nenvironment:\n  env: {A: one, PAGER: less}\n  interpreter: [sh]\n")
	var layers []configs.Layer
	for _, arg := range []string{path, "environment.env.A=two", "agent.cost_limit=0.5", "model.model_name=a=b", `model.model_kwargs={"temperature":0,"stop":["x"]}`} {
		l, err := configs.ReadArg(arg)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, l)
	}
	cfg, err := configs.Merge(append([]configs.Layer{builtin(t, "swebench")}, layers...)...)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{
		cfg.Agent.StepLimit, cfg.Agent.CostLimit, cfg.Environment.Env["A"], cfg.Environment.Env["PAGER"],
		cfg.Environment.Env["BASH_ENV"], cfg.Environment.Interpreter, cfg.Model.Name, cfg.Model.Kwargs,
	}
	want := []any{
		7, 0.5, "two", "less",
		"/root/.bashrc",
		[]string{"sh"},
		"a=b",
		map[string]any{"temperature": 0, "stop": []any{"x"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	for key, want := range map[string]string{
		"agent.step_limit": path + ":2", "agent.cost_limit": "-c agent.cost_limit=0.5", "environment.env.A": "-c environment.env.A=two",
	} {
		if o, ok := cfg.Origin(key); !ok || o.String() != want {
			t.Errorf("%s comes from %q, want %q", key, o, want)
		}
	}
}

func TestValuesOfSettings(t *testing.T) {
	for arg, want := range map[string]any{
		"model.model_kwargs.x=1":        1,
		"model.model_kwargs.x=-2.5":     -2.5,
		"model.model_kwargs.x=true":     true,
		"model.model_kwargs.x=null":     nil,
		"model.model_kwargs.x=":         "",
		"model.model_kwargs.x=a b":      "a b",
		`model.model_kwargs.x="12"`:     "12",
		"model.model_kwargs.x=[1,2]":    []any{1, 2},
		`model.model_kwargs.x={"a":{}}`: map[string]any{"a": map[string]any{}},
		"model.model_kwargs.x=yes":      "yes",
		"model.model_kwargs.x=ž: y":     "ž: y",
	} {
		t.Run(arg, func(t *testing.T) {
			l, err := configs.ReadArg(arg)
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := configs.Merge(builtin(t, "mini"), l)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, cfg.Model.Kwargs["x"]); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown key", "agent:\n  stp_limit: 3\n", ":2: unknown key agent.stp_limit; did you mean agent.step_limit?"},
		{"unknown section", "\nagnet:\n  step_limit: 3\n", ":2: unknown key agnet; did you mean agent?"},
		{"the section left out", "model:\n  name: x\n", ":2: unknown key model.name; did you mean model.model_name?"},
		{"nothing near", "run:\n  zzzzzzzz: 3\n", ":2: unknown key run.zzzzzzzz; run has attempts, env_startup_command, eval, fsync, image_budget"},
		{"wrong type", "agent:\n  step_limit: many\n", `:2: agent.step_limit: it must be a whole number, not "many"`},
		{"list for a text", "model:\n  model_name: [a]\n", ":2: model.model_name: it must be a string, not a list"},
		{"text for a section", "model: x\n", `:1: model: it must be a mapping, not "x"`},
		{"a list as a file", "- a\n", ":1: the file: it must be a mapping, not a list"},
		{"twice", "agent:\n  step_limit: 1\n  step_limit: 2\n", ":3: agent.step_limit is set twice; first on line 2"},
		{"an anchor that is not there", "agent: *x\n", ".yaml: unknown anchor 'x' referenced"},
		{"not YAML", "agent: [\n", ":1: did not find expected node content"},
		{"a tab", "agent:\n\tstep_limit: 3\n", ":2: found character that cannot start any token; indent with spaces instead of tabs"},
		{"an indentation", "agent:\n  step_limit: 3\n cost_limit: 1\n", ":2: did not find expected key; keys of one level begin in the same column"},
		{"a variable as URL", "model:\n  base_url: http://${HOST}/v1\n", ":2: model.base_url: variables are not expanded here"},
		{"no URL", "model:\n  base_url: user:sk-123@localhost:8000\n", ":2: model.base_url: it must start with"},
		{"negative price", "model:\n  price: {input: -1}\n", ":2: model.price.input: -1 is negative"},
		{"two documents", "agent: {}\n---\nagent: {}\n", "a second document"},
		{"cache", "model:\n  model_class: anthropic\n  cache: 2h\n", `:3: model.cache: "2h" is not one of 5m, 1h, off`},
		{"cache elsewhere", "model:\n  cache: 5m\n", ":2: model.cache: only model_class: anthropic"},
		{"headers elsewhere", "model:\n  model_class: scripted\n  headers: {x-team: a}\n", ":3: model.headers: only model_class: openai or anthropic has it"},
		{"thinking elsewhere", "model:\n  model_class: anthropic\n  send_reasoning: true\n", ":3: model.send_reasoning: only model_class: openai"},
		{"a key as a header", "model:\n  model_class: anthropic\n  headers: {X-Api-Key: sk-123}\n", ":3: model.headers.X-Api-Key: do not put keys"},
		{"timeout", "environment:\n  timeout: -1\n", ":2: environment.timeout: -1 is not a number of seconds"},
		{"no size of a tmpfs", "environment:\n  tmpfs:\n    /scratch: ''\n", `:3: environment.tmpfs./scratch: "" is not a size; write "64m"`},
		{"a value to forward", "environment:\n  forward_env: [A=1]\n", `:2: environment.forward_env: "A=1" is not the name of a variable`},
		{"workers", "run:\n  workers: 0\n", ":2: run.workers: 0 is less than 1"},
		{"reruns", "eval:\n  rerun_failed: 1000\n", ":2: eval.rerun_failed: 1000 is not a number from 0 to 100"},
		{"a key", "model:\n  model_kwargs:\n    api_key: sk-123\n", ":3: model.model_kwargs.api_key: do not put keys"},
		{"alias within itself", "agent: &a\n  system_template: *a\n", "refers to a node that contains it"},
		{"a key, deep down", "model:\n  model_kwargs: {extra: {Authorization: Bearer sk-123}}\n", "model.model_kwargs.extra.Authorization: do not put keys"},
		{"a password in a URL", "model:\n  base_url: https://u:sk-123@h/v1\n", "model.base_url: not a plain URL"},
		{"not a number", "agent:\n  cost_limit: .inf\n", `:2: agent.cost_limit: it must be a number, not ".inf"`},
		{"twice in a mapping", "environment:\n  env: {A: 1, A: 2}\n", ":2: environment.env: "},
		{"prompt file", "agent:\n  system_template: {file: nope.txt}\n", "/nope.txt: no such file or directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := file(t, "x.yaml", tt.text)
			l, err := configs.ReadFile(path)
			if err == nil {
				_, err = configs.Merge(builtin(t, "swebench"), l)
			}
			if err == nil {
				t.Fatal("no error")
			}
			if !errors.Is(err, configs.ErrConfig) || !strings.HasPrefix(err.Error(), path) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want the file and %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "sk-123") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q contains a key or a line end", err)
			}
		})
	}
}

func TestTemplateErrorsNameTheLine(t *testing.T) {
	dir := t.TempDir()
	prompt := filepath.Join(dir, "prompt.txt")
	if err := os.WriteFile(prompt, []byte("one\ntwo {{.tusk}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"block":       {"# mine\nagent:\n  instance_template: |\n    one\n    two\n    {{.tusk}}\n", "x.yaml:6: agent.instance_template: unknown variable .tusk"},
		"one line":    {"agent:\n  instance_template: '{{.tusk}}'\n", "x.yaml:2: agent.instance_template: unknown variable .tusk"},
		"prompt file": {"agent:\n  instance_template: {file: prompt.txt}\n", "prompt.txt:2: agent.instance_template: unknown variable .tusk"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "x.yaml")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := configs.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := configs.Merge(builtin(t, "swebench"), l)
			if err != nil {
				t.Fatal(err)
			}
			_, err = agent.New(cfg.Agent)
			if err := cfg.Locate(err); err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, tt.want)) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for arg, want := range map[string]string{
		"nope.yaml":          "no such file",
		"agent..step=1":      "empty part",
		"agent.step_limit=x": `-c agent.step_limit=x: agent.step_limit: it must be a whole number`,
		"agent.stp_limit=1":  "did you mean agent.step_limit?",
	} {
		if _, err := configs.ReadArg(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
	if _, err := configs.ReadArg("swebench"); err != nil {
		t.Errorf("built-in configuration by its name: %v", err)
	}
}

// An error about a -c argument names its key, but does not repeat a value that may
// contain a password.
func TestPasswordOnTheCommandLineIsNotShown(t *testing.T) {
	_, err := resolve("model.base_url=https://u:sk-123@h/v1")
	if err == nil || !strings.HasPrefix(err.Error(), "-c model.base_url: not a plain URL") || strings.Contains(err.Error(), "sk-123") {
		t.Error(err)
	}
}

func TestSecretsAreRedacted(t *testing.T) {
	l, err := configs.ReadArg("environment.env.GITHUB_TOKEN=ghp_abc")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Merge(builtin(t, "mini"), l)
	if err != nil {
		t.Fatal(err)
	}
	data, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "ghp_abc") || cfg.Environment.Env["GITHUB_TOKEN"] != "ghp_abc" {
		t.Errorf("the token must be set, and must not be written:\n%s", data)
	}
}

// The output of Config.YAML can be read as a configuration file.
func TestYAMLReadsBack(t *testing.T) {
	cfg, err := configs.Merge(builtin(t, "swebench"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	l, err := configs.ReadFile(file(t, "config.yaml", string(data)))
	if err != nil {
		t.Fatal(err)
	}
	again, err := configs.Merge(l)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cfg.Config, again.Config); diff != "" {
		t.Errorf("read back (-first +second):\n%s", diff)
	}
}

// The settings that mini.yaml and swebench.yaml share are equal: this test fails if
// a change reaches only one of the files.
func TestBuiltinConfigurationsAgree(t *testing.T) {
	single, err := configs.Merge(builtin(t, "mini"))
	if err != nil {
		t.Fatal(err)
	}
	batch, err := configs.Merge(builtin(t, "swebench"))
	if err != nil {
		t.Fatal(err)
	}
	a, b := single.Environment, batch.Environment
	a.Class, a.Dir, a.Timeout = b.Class, b.Dir, b.Timeout
	a.Env["BASH_ENV"] = b.Env["BASH_ENV"]
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("environment (-mini +swebench):\n%s", diff)
	}
	if diff := cmp.Diff(single.Run, batch.Run); diff != "" {
		t.Errorf("run (-mini +swebench):\n%s", diff)
	}
	excluded := append([]string{"/patch.txt"}, single.Agent.PatchExclude...)
	if diff := cmp.Diff(excluded, batch.Agent.PatchExclude); diff != "" {
		t.Errorf("agent.patch_exclude (-mini +swebench):\n%s", diff)
	}
}
