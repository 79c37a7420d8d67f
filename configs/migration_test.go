package configs_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
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

func TestMigrationHints(t *testing.T) {
	tests := []struct{ text, want string }{
		{"agent: {whitelist_actions: [ls]}\npolicy: {whitelist_actions: [ls]}", "agent.whitelist_actions: mini calls it policy.whitelist_actions, which is also set"},
		{"agent: {whitelist_actions: ['(?=ls)']}", "x.yaml:1: policy.whitelist_actions: entry 0: invalid or unsupported Perl syntax"},
		{"step_limit: 3", "unknown key step_limit; step_limit belongs under agent"},
		{"timeout: 3", "unknown key timeout; timeout belongs under model or environment"},
		{"run: {stp_limit: 3}", "run.stp_limit; did you mean agent.step_limit?"},
		{"model: {model_kwargs: {parallel_tool_calls: true}}", "model.model_kwargs.parallel_tool_calls: servers reject it in requests without tools"},
		{"model: {model_class: deterministic}", "use scripted"},
		{"model: {model_class: opnai}", "did you mean openai?"},
		{"environment: {environment_class: dokcer}", "did you mean docker?"},
		{"agent: {step_limit: 2.5}", `it must be a whole number, not "2.5"`},
	}
	for _, tt := range tests {
		_, err := resolve(file(t, "x.yaml", tt.text))
		if !errors.Is(err, configs.ErrConfig) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than a line: %v", tt.text, err)
		}
	}
	if cfg, err := resolve(file(t, "x.yaml", "agent: {step_limit: 0.}")); err != nil || cfg.Agent.StepLimit != 0 {
		t.Errorf("a whole number, written as 0.: %v", err)
	}
}

// parallel_tool_calls is valid with the protocol tools.
func TestParallelToolCalls(t *testing.T) {
	_, err := resolve(file(t, "x.yaml", "agent: {protocol: tools}\nmodel: {model_kwargs: {parallel_tool_calls: false}}"))
	if err != nil {
		t.Error(err)
	}
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

func TestMissingDotHint(t *testing.T) {
	for text, want := range map[string]string{
		"agent: {instance_template: 'x {{issue}}'}":               "variables start with a dot: {{.issue}}",
		"agent: {instance_template: '{{.task | length}}'}":        "use len before the value",
		"run: {env_startup_command: 'git checkout {{version_}}'}": "a column of the row is {{.instance.version_}}",
	} {
		cfg, err := resolve(file(t, "x.yaml", text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = agent.New(cfg.Agent)
		if err = cfg.Locate(err); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestAllErrorsAreReported(t *testing.T) {
	path := file(t, "x.yaml", "agent:\n  stp_limit: 1\n  cost_limit: x\n  system_template: {file: nope}\nrun: {workers: y}\n")
	_, err := resolve(path)
	if got := configs.SplitErrors(err); len(got) != 4 {
		t.Errorf("found %d mistakes: %v", len(got), got)
	}
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
			if !strings.Contains(notes, want) {
				t.Errorf("%s: %q is not in the note %q", tt.name, want, notes)
			}
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
	if err != nil {
		t.Fatal(err)
	}
	if e := cfg.Environment; e.Network != "none" || e.CPUs != 20 || e.Memory != "60g" || e.User != "agent" || e.Timeout != 180 || e.Dir != "/workspace" {
		t.Errorf("%+v", e)
	}
}

func TestPeerKeys(t *testing.T) {
	for _, tt := range []struct{ text, key, want, note string }{
		{"model: {action_regex: '<a>(.*)</a>'}", "agent.action_regex", "<a>(.*)</a>", ""},
		{"agent: {action_observation_template: '{{output}}'}", "agent.observation_template", "{{output}}", ""},
		{"agent: {output_path: x, agent_class: default}", "agent.step_limit", "250", "agent.output_path: say -o FILE on the command line"},
		{"model: {cost_tracking: ignore_errors}", "model.cost_tracking", "ignore_errors", ""},
		{"model: {litellm_model_registry: f}", "model.model_class", "openai", "set model.price"},
		{"model: {model_class: minisweagent.models.litellm_model.LitellmModel, model_name: openai/gpt-5}", "model.model_name", "openai/gpt-5", ""},
		{"model: {model_class: openrouter_textbased, model_name: a/b}", "model.api_key_env", "OPENROUTER_API_KEY", ""},
		{"model: {model_class: litellm, model_name: my-model}", "agent.protocol", "tools", ""},
		{"model: {model_class: litellm_textbased, model_name: my-model}", "agent.protocol", "text", ""},
		{"model: {model_class: anthropic, model_name: claude-x}", "agent.protocol", "text", ""},
		{"agent: {instance_template: '{{task}} Each reply needs a tool call.', template_engine: jinja}", "agent.protocol", "tools", ""},
		{"agent: {instance_template: '{{task}}', action_observation_template: '{{output.output}}'}\nmodel: {}", "agent.protocol", "text", ""},
		{
			"agent: {timeout_template: x, action_observation_template: '{{output.output}}'}", "agent.observation_template",
			"{% if output.exception_info %}{{ output.exception_info }}\n{% endif %}{{output.output}}", "agent.timeout_template: the exception stands before",
		},
		{"model: {model_kwargs: {num_retries: 4}}", "model.max_tries", "5", ""},
		{"model: {model_kwargs: {extra_headers: {X-Team: a}}}", "model.headers.X-Team", "a", ""},
		{"model: {model_kwargs: {custom_llm_provider: openai, extra_body: {top_k: 3}}}", "model.model_kwargs.top_k", "3", ""},
		{"model: {model_class: roulette, model_kwargs: [{model_name: openai/a}, {model_name: b}], model_name: r}", "model.route.kind", "roulette", ""},
		{"model: {model_class: minisweagent.models.extra.roulette.InterleavingModel, model_kwargs: [{model_name: a}, {model_name: b}], sequence: [0, 1]}", "model.route.sequence", "[0 1]", ""},
		{"model: {model_name: openai/local, model_kwargs: {api_base: 'http://localhost:1'}}", "model.model_name", "local", ""},
		{"model: {model_kwargs: {api_base: 'http://localhost:1'}}", "model.base_url", "http://localhost:1", ""},
		{"environment: {executable: docker, run_args: [--rm, --memory=8g, -v, 'a:b']}", "environment.memory", "8g", "environment.run_args -v a:b"},
		{"environment: {run_args: [-e, A=b=c, --env=TOKEN_FILE]}", "environment.env.A", "b=c", ""},
		{"environment: {run_args: [--env, TOKEN_FILE, --cap-add=SYS_PTRACE]}", "environment.forward_env", "[TOKEN_FILE]", "SYS_PTRACE: add it to the list environment.cap_add"},
		{"environment: {executable: podman}", "environment.environment_class", "docker", "set DOCKER_HOST"},
		{"environment: {environment_class: minisweagent.environments.docker.DockerEnvironment}", "environment.environment_class", "docker", ""},
		{"environment: {environment_class: singularity}", "environment.environment_class", "docker", "singularity: docker is used"},
		{"run: {task: x}", "run.workers", "1", "run.task: say -t TASK"},
	} {
		cfg, err := resolve(file(t, "x.yaml", tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		entries, err := cfg.Entries(tt.key)
		notes := strings.Join(cfg.Notes(), "\n")
		if err != nil || len(entries) != 1 || fmt.Sprint(entries[0].Value) != tt.want || !strings.Contains(notes, tt.note) || tt.note == "" && notes != "" {
			t.Errorf("%s: %v, %v, note %q; want %s and %q", tt.text, entries, err, notes, tt.want, tt.note)
		}
	}
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
