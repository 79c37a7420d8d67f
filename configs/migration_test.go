package configs_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
)

// resolve reads one file on top of the batch's defaults, as -c does.
func resolve(path string) (*configs.Resolved, error) {
	base, err := configs.ReadBuiltin("swebench")
	if err != nil {
		return nil, err
	}
	l, err := configs.ReadArg(path)
	if err != nil {
		return nil, err
	}
	return configs.Merge(base, l)
}

func TestNamesOfConfigurations(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	shared := file(t, "shared.yaml", "agent: {step_limit: 11}")
	lib := shared[:strings.LastIndex(shared, "/")]
	for arg, want := range map[string]string{
		"swebench": "", "swebench.yaml": "", "mini": "", "mini_textbased": "", "default.yaml": "", "swebench_backticks": "",
		"shared": "", "shared.yaml": "",
		"swebench_xml": "", "benchmarks/swebench_xml.yaml": "", "benchmarks/swebench.yaml": "", "extra/swebench": "", "default_xml": "",
		"swebench_modal":     "-c swebench_modal: only mini-swe-agent has it; mini has no Modal yet; leave it out for Docker",
		"benchmarks/nope":    "no such file",
		"benchmarks/mini":    "no such file",
		"./swebench.yaml":    "no such file",
		"other/swebench":     "no such file",
		"":                   "it is empty",
		lib:                  "is a directory",
		"agent.step_limit":   "no such file; it takes a YAML file or key.sub=value",
		"https://e.x/c.yaml": "no such file",
	} {
		_, err := configs.ReadArg(arg, lib)
		if want == "" && err != nil || want != "" && (!errors.Is(err, configs.ErrConfig) || !strings.Contains(err.Error(), want)) {
			t.Errorf("-c %s: %v, want %q", arg, err, want)
		}
	}
}

// Go templates that resemble Jinja are valid.
func TestGoTemplatesAreNotTakenForJinja(t *testing.T) {
	for _, text := range []string{
		`{{.task}} {{ .cwd }} {{len .task}} {{if .network}}a{{else}}b{{end}}`,
		`write {{"{%"}} if x {{"%}"}} and {{"{{task}}"}}`,
		"100{% of it, a set {x} and {%y%}",
		`{{"{% if x %}"}} {{` + "`{{task}}`" + `}}`,
		`{{$task := .task}}{{$task}} {{with .task}}{{.}}{{end}}`,
		`{{/* task */}}`,
	} {
		path := file(t, "x.yaml", "agent:\n  instance_template: |\n    "+text+"\n")
		cfg, err := resolve(path)
		if err == nil {
			_, err = agent.New(cfg.Agent)
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAllErrorsAreReported(t *testing.T) {
	path := file(t, "x.yaml", "agent:\n  stp_limit: 1\n  cost_limit: x\n  system_template: {file: nope}\nrun: {workers: y}\n")
	_, err := resolve(path)
	assert.Equal(t, 4, len(configs.SplitErrors(err)), "found mistakes")
	if !strings.HasSuffix(err.Error(), "(and 3 more; mini config check shows all)") || strings.Contains(err.Error(), "\n") {
		t.Errorf("as one error: %v", err)
	}
	_, err = resolve(file(t, "y.yaml", "run: {workers: 0}\nenvironment: {memory: lots, timeout: 0}\nagent: {mode: x}\n"))
	if got := configs.SplitErrors(err); len(got) != 4 || !errors.Is(err, configs.ErrConfig) {
		t.Errorf("found %d mistakes: %v", len(got), got)
	}
	if configs.SplitErrors(nil) != nil {
		t.Error("SplitErrors(nil) is not nil")
	}
}

// TestPeerFiles loads the configurations of mini-swe-agent's users on top of the defaults.
func TestPeerFiles(t *testing.T) {
	tests := []struct {
		name                           string
		protocol, class, model, engine string
		unused                         []string
	}{
		{"mini", "tools", "openai", "", "jinja", []string{"model.model_kwargs.drop_params"}},
		{"mini_textbased", "text", "openai", "", "jinja", []string{"drop_params"}},
		{"default", "text", "openai", "", "jinja", []string{"drop_params"}},
		{"swebench", "tools", "openai", "anthropic/claude-sonnet-4-5-20250929", "jinja", []string{"drop_params", "parallel_tool_calls"}},
		{"swebench_backticks", "text", "openai", "anthropic/claude-sonnet-4-5-20250929", "jinja", []string{"drop_params"}},
		{"swebench_xml", "xml", "openai", "minimax/minimax-m2", "jinja", nil},
		{"swebench_modal", "tools", "openai", "gpt-5-mini", "", []string{
			"environment_class swerex_modal: docker is used", "environment.startup_timeout", "environment.runtime_timeout",
			"environment.deployment_timeout", "environment.install_pipx", "environment.modal_sandbox_kwargs",
			"model.model_class portkey", "model.provider", "drop_params",
		}},
		{"programbench", "tools", "openai", "", "jinja", []string{"environment.container_timeout", "environment.run_args --memory-swap 60g"}},
	}
	for _, tt := range tests {
		cfg, err := resolve("testdata/peer/" + tt.name + ".yaml")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		notes := strings.Join(cfg.Notes(), "\n")
		if (notes == "") != (tt.unused == nil) || strings.Count(notes, "no effect here") > 1 {
			t.Errorf("%s: notes %q, want one", tt.name, notes)
		}
		for _, want := range tt.unused {
			assert.Contains(t, notes, want, "%s: is not in the note", tt.name)
		}
		if cfg.Agent.Protocol != tt.protocol && (cfg.Agent.Protocol != "" || tt.protocol != "text") || cfg.Model.Class != tt.class || cfg.Model.Name != tt.model ||
			cfg.Agent.TemplateEngine["instance_template"] != tt.engine || cfg.Agent.TemplateEngine["observation_template"] != tt.engine || cfg.Agent.TemplateEngine["summary_template"] != "" {
			t.Errorf("%s: protocol %s, class %s, model %s, engines %v", tt.name, cfg.Agent.Protocol, cfg.Model.Class, cfg.Model.Name, cfg.Agent.TemplateEngine)
		}
		if _, err := agent.New(cfg.Agent); err != nil {
			t.Errorf("%s: %v", tt.name, cfg.Locate(err))
		}
		again, err := cfg.YAML() // config.yaml of a run
		if err == nil {
			_, err = resolve(file(t, "again.yaml", string(again)))
		}
		if err != nil {
			t.Errorf("%s, written and read again: %v", tt.name, err)
		}
	}
	cfg, err := resolve("testdata/peer/programbench.yaml")
	require.NoError(t, err)
	if e := cfg.Environment; e.Network != "none" || e.CPUs != 20 || e.Memory != "60g" || e.User != "agent" || e.Timeout != 180 || e.Dir != "/workspace" {
		t.Errorf("%+v", e)
	}
}

func TestPeerKeys(t *testing.T) {
	golden.Cases(t, "testdata/peerkeys.txt", func(t *testing.T, input string) string {
		key, text, _ := strings.Cut(input, "\n")
		path := file(t, "x.yaml", text)
		cfg, err := resolve(path)
		require.NoError(t, err)
		entries, err := cfg.Entries(key)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%s: %v, %v", key, entries, err)
		}
		notes := strings.ReplaceAll(strings.Join(cfg.Notes(), "; "), path, "x.yaml")
		return fmt.Sprintf("%q, notes %q", fmt.Sprint(entries[0].Value), notes)
	})
}

// TestTemplateEngine checks that a template keeps its engine when layers are merged.
func TestTemplateEngine(t *testing.T) {
	for _, tt := range []struct {
		texts []string
		want  string // the engine of the instance template, or a part of the error
	}{
		{[]string{"agent: {instance_template: '{{.task}}'}"}, "go"},
		{[]string{"agent: {instance_template: '{{task}}'}\nmodel: {observation_template: '{{output.output}}'}"}, "jinja"},
		{[]string{"agent: {instance_template: '{{task}}'}\nmodel: {action_regex: 'a'}"}, "jinja"},
		{[]string{"agent: {instance_template: '{{task}}', action_observation_template: a}"}, "jinja"},
		{[]string{"agent: {instance_template: '{{task}}'}\nenvironment: {container_timeout: 2h}"}, "jinja"},
		{[]string{"agent: {instance_template: '{{.task}}', template_engine: go}\nenvironment: {container_timeout: 2h}"}, "go"},
		{[]string{"agent: {instance_template: '{{.task}}', template_engine: {observation_template: jinja}}\nenvironment: {container_timeout: 2h}"}, "go"},
		{[]string{"agent: {instance_template: '{{task}}', template_engine: jinja}", "agent: {observation_template: '{{.output}}'}"}, "jinja"},
		{[]string{"agent: {instance_template: '{{task}}', template_engine: jinja}", "agent: {instance_template: '{{.task}}'}"}, "go"},
		{[]string{"agent: {instance_template: 'a', template_engine: jinja}"}, "jinja"},
		{[]string{"agent: {instance_template: 'Write {% if %} {{.task}}', template_engine: go}"}, "go"},
		{[]string{"agent: {template_engine: {observation_template: jinja}, instance_template: '{{.task}}'}"}, "go"},
		{[]string{"agent: {template_engine: mako, instance_template: x}"}, `"mako" is neither go nor jinja`},
		{[]string{"agent: {template_engine: jinja}"}, "there are none; name them"},
		{[]string{"agent: {template_engine: {instance_template: mako}}"}, `"mako" is neither go nor jinja`},
		{[]string{`agent: {instance_template: '{{"{%"}} {{"{{task}}"}} {{.task}}'}`}, "go"},
		{[]string{"run: {env_startup_command: 'git checkout {{base_commit}}'}"}, "go"},
	} {
		layers := make([]configs.Layer, 1, 3)
		var err error
		layers[0], err = configs.ReadBuiltin("swebench")
		for _, text := range tt.texts {
			l, readErr := configs.ReadFile(file(t, "x.yaml", text))
			layers, err = append(layers, l), errors.Join(err, readErr)
		}
		cfg, mergeErr := configs.Merge(layers...)
		err = errors.Join(err, mergeErr)
		switch engine := cmp.Or(cfg.Agent.TemplateEngine["instance_template"], "go"); {
		case err != nil && !strings.Contains(err.Error(), tt.want), err == nil && engine != tt.want:
			t.Errorf("%s: %s, %v; want %s", tt.texts, engine, err, tt.want)
		}
	}
}
