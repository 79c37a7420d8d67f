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
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
)

func builtin(t *testing.T, name string) configs.Layer {
	t.Helper()
	l, err := configs.ReadBuiltin(name)
	require.NoError(t, err)
	return l
}

// file writes a configuration and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
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
			require.NoError(t, err)
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
		require.NoError(t, err)
		layers = append(layers, l)
	}
	cfg, err := configs.Merge(append([]configs.Layer{builtin(t, "swebench")}, layers...)...)
	require.NoError(t, err)
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
	assert.Equal(t, want, got, "merged")
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
			require.NoError(t, err)
			cfg, err := configs.Merge(builtin(t, "mini"), l)
			require.NoError(t, err)
			assert.Equal(t, want, cfg.Model.Kwargs["x"], "value")
		})
	}
}

// TestPlaceholders checks that a value that begins with a placeholder is a string where the settings are strings, also
// in a mapping of strings.
func TestPlaceholders(t *testing.T) {
	for arg, value := range map[string]func(*configs.Config) any{
		"model.headers.X-Session={session}":    func(c *configs.Config) any { return c.Model.Headers["X-Session"] },
		"model.headers.X={instance} {attempt}": func(c *configs.Config) any { return c.Model.Headers["X"] },
		"environment.env.X={a: b}":             func(c *configs.Config) any { return c.Environment.Env["X"] },
	} {
		t.Run(arg, func(t *testing.T) {
			l, err := configs.ReadArg(arg)
			require.NoError(t, err)
			cfg, err := configs.Merge(builtin(t, "mini"), l)
			require.NoError(t, err)
			_, want, _ := strings.Cut(arg, "=")
			assert.Equal(t, any(want), value(&cfg.Config), "value")
		})
	}
}

// testdata/mistakes.txt has the error of every mistake in a file: it names the line, and shows no key.
func TestMistakes(t *testing.T) {
	golden.Cases(t, "testdata/mistakes.txt", func(t *testing.T, text string) string {
		path := file(t, "x.yaml", text)
		dir := filepath.Dir(path)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "prompt.txt"), []byte("one\ntwo {{.tusk}}\n"), 0o600))
		cfg, err := resolve(path)
		if err == nil {
			_, err = agent.New(cfg.Agent)
			err = cfg.Locate(err)
		}
		if !errors.Is(err, configs.ErrConfig) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "sk-1") {
			t.Fatalf("%v; want one line of an error, without a key", err)
		}
		return strings.ReplaceAll(err.Error(), dir+"/", "")
	})
	cfg, err := resolve(file(t, "x.yaml", "agent: {step_limit: 0., protocol: tools}\nmodel: {model_kwargs: {parallel_tool_calls: false}}"))
	if err != nil || cfg.Agent.StepLimit != 0 {
		t.Errorf("a whole number, written as 0., and parallel calls with tools: %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	for arg, want := range map[string]string{
		"nope.yaml":                            "no such file",
		"agent..step=1":                        "empty part",
		"agent.step_limit=x":                   "-c agent.step_limit=x: agent.step_limit: it must be a whole number",
		"agent.stp_limit=1":                    "did you mean agent.step_limit?",
		"model.base_url=https://u:sk-123@h/v1": "-c model.base_url: not a plain URL",
		`tools.host=[{"name":"a"}]`:            "-c tools.host[0]: the command is missing",
		`tools.search=[""]`:                    "-c tools.search: the program",
	} {
		if _, err := resolve(arg); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sk-123") {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
	if _, err := configs.ReadArg("swebench"); err != nil {
		t.Errorf("built-in configuration by its name: %v", err)
	}
}

func TestSecretsAreRedacted(t *testing.T) {
	l, err := configs.ReadArg("environment.env.GITHUB_TOKEN=ghp_abc")
	require.NoError(t, err)
	cfg, err := configs.Merge(builtin(t, "mini"), l)
	require.NoError(t, err)
	data, err := cfg.YAML()
	require.NoError(t, err)
	if strings.Contains(string(data), "ghp_abc") || cfg.Environment.Env["GITHUB_TOKEN"] != "ghp_abc" {
		t.Errorf("the token must be set, and must not be written:\n%s", data)
	}
}

// The output of Config.YAML can be read as a configuration file.
func TestYAMLReadsBack(t *testing.T) {
	cfg, err := configs.Merge(builtin(t, "swebench"))
	require.NoError(t, err)
	data, err := cfg.YAML()
	require.NoError(t, err)
	l, err := configs.ReadFile(file(t, "config.yaml", string(data)))
	require.NoError(t, err)
	again, err := configs.Merge(l)
	require.NoError(t, err)
	assert.NoDiff(t, cmp.Diff(cfg.Config, again.Config), "read back (-first +second)")
}

// The settings that mini.yaml and swebench.yaml share are equal: this test fails if
// a change reaches only one of the files.
func TestBuiltinConfigurationsAgree(t *testing.T) {
	single, err := configs.Merge(builtin(t, "mini"))
	require.NoError(t, err)
	batch, err := configs.Merge(builtin(t, "swebench"))
	require.NoError(t, err)
	a, b := single.Environment, batch.Environment
	a.Class, a.Dir, a.Timeout = b.Class, b.Dir, b.Timeout
	a.Env["BASH_ENV"] = b.Env["BASH_ENV"]
	assert.NoDiff(t, cmp.Diff(a, b), "environment (-mini +swebench)")
	assert.NoDiff(t, cmp.Diff(single.Run, batch.Run), "run (-mini +swebench)")
	excluded := append([]string{"/patch.txt"}, single.Agent.PatchExclude...)
	assert.NoDiff(t, cmp.Diff(excluded, batch.Agent.PatchExclude), "agent.patch_exclude (-mini +swebench)")
}

// The values of an overlay can be read before they are checked.
func TestOverlay(t *testing.T) {
	l, err := configs.ReadFile(file(t, "mine.yaml", "run: {workers: 0}\nagent: {step_limit: 7, cost_limit: null}\nmodel: {model_name: a}\nenvironment: {env: {A: one}}\n"))
	require.NoError(t, err)
	o := configs.NewOverlay(builtin(t, "mini"), l)
	var limits [2]float64
	var vars map[string]string
	for key, into := range map[string]any{"agent.step_limit": &limits[0], "agent.cost_limit": &limits[1], "environment.env": &vars} {
		assert.NoError(t, o.Decode(key, into))
	}
	if name := o.Value("model.model_name"); name != "a" || limits != [2]float64{7, 3} || vars["A"] != "one" || len(vars) < 2 {
		t.Errorf("model %q, limits %v, variables %v", name, limits, vars)
	}
	_, err = o.Check()
	assert.Error(t, err, "no workers are valid")
}

// A later layer replaces the values of a setting in its place; other layers do not see
// the key vary.
func TestVaryOfFiles(t *testing.T) {
	low := file(t, "low.yaml", "agent: {step_limit: 7}\nvary:\n  agent.step_limit: [1, 2]\n  model.model_name: [\"a,b\", c]\n")
	high := file(t, "high.yaml", "vary:\n  agent.step_limit: [3]\n  environment.cap_drop: [[ALL], []]\n  agent.instance_template: [{file: p.md}]\n")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(high), "p.md"), []byte("the prompt"), 0o600))
	cfg := merged(t, "swebench", low, high)
	var layers []configs.Layer
	for _, path := range []string{low, high} {
		l, err := configs.ReadFile(path)
		require.NoError(t, err)
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
	assert.Equal(t, want, got, "values")
	if order[0] != "agent.step_limit" || order[1] != "model.model_name" {
		t.Errorf("order %v", order)
	}
	varied, err := cfg.With(vary[0].Values[0].Layer, vary[3].Values[0].Layer)
	require.NoError(t, err)
	if cfg.Agent.StepLimit != 7 || varied.Agent.StepLimit != 3 || varied.Agent.InstanceTemplate != "the prompt" {
		t.Errorf("step limits %d and %d, prompt %q", cfg.Agent.StepLimit, varied.Agent.StepLimit, varied.Agent.InstanceTemplate)
	}
	if data, err := varied.YAML(); err != nil || strings.Contains(string(data), "vary") {
		t.Errorf("config.yaml has the key vary: %v", err)
	}
}

func TestVaryMistakes(t *testing.T) {
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
	_, err := configs.ReadArg("vary.agent.step_limit=1")
	assert.ErrorContains(t, err, "the flag is --vary KEY=A,B", "-c vary")
}
