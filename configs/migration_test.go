package configs_test

import (
	"errors"
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
		{"agent: {output_path: x}", "agent.output_path; say -o FILE"},
		{"agent: {agent_class: default}", "agent.agent_class; mini has one agent"},
		{"agent: {action_observation_template: x}", "agent.action_observation_template; the template is agent.observation_template"},
		{"agent: {timeout_template: x}", "agent.timeout_template; agent.observation_template shows timeouts"},
		{"model: {cost_tracking: ignore_errors}", "model.cost_tracking; mini continues if a cost is unknown"},
		{"model: {litellm_model_registry: f}", "model.litellm_model_registry; set model.price"},
		{"model: {set_cache_control: default_end}", "model.set_cache_control; servers"},
		{"model: {multimodal_regex: x}", "model.multimodal_regex; files are shown by agent.images.marker"},
		{"model: {observation_template: x}", "model.observation_template; observation_template belongs under agent"},
		{"model: {action_regex: x}", "model.action_regex; action_regex belongs under agent"},
		{"environment: {executable: podman}", "environment.executable; mini talks to the engine"},
		{"environment: {run_args: [--rm]}", "environment.run_args; network, memory"},
		{"environment: {container_timeout: 2h}", "environment.container_timeout; a container lives as long as its attempt"},
		{"run: {task: x}", "run.task; say -t TASK"},
		{"step_limit: 3", "unknown key step_limit; step_limit belongs under agent"},
		{"timeout: 3", "unknown key timeout; timeout belongs under model or environment"},
		{"run: {stp_limit: 3}", "run.stp_limit; did you mean agent.step_limit?"},
		{"model: {model_kwargs: {drop_params: true}}", "model.model_kwargs.drop_params: it is an option of litellm"},
		{"model: {model_kwargs: {parallel_tool_calls: true}}", "model.model_kwargs.parallel_tool_calls: servers reject it in requests without tools"},
		{"model: {model_class: litellm_textbased}", `"litellm_textbased" is not one of openai, anthropic, scripted; use openai`},
		{"model: {model_class: minisweagent.models.litellm_model.LitellmModel}", "use openai"},
		{"model: {model_class: openrouter_textbased}", "OPENROUTER_API_KEY"},
		{"model: {model_class: deterministic}", "use scripted"},
		{"model: {model_class: opnai}", "did you mean openai?"},
		{"environment: {environment_class: singularity}", "no Singularity or Apptainer yet; use docker"},
		{"environment: {environment_class: swerex_modal}", "no Modal yet"},
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

func TestJinjaHints(t *testing.T) {
	tests := []struct{ field, text, want string }{
		{"instance_template", "{{task}}", "{{task}} is Jinja; in mini's Go templates it is {{.task}}"},
		{"instance_template", "{{- task -}}", "it is {{.task}}"},
		{"observation_template", "{{ output.output }}", "it is {{.output}}"},
		{"observation_template", "{{output.returncode}}", "it is {{.returncode}}"},
		{"observation_template", "{{output.exception_info}}", "it is {{.exception}}"},
		{"observation_template", "{{ output.output[:5000] }}", "it is {{.output_head}}"},
		{"observation_template", "{{ output.output[-5000:] }}", "it is {{.output_tail}}"},
		{"observation_template", "{{ output.output | length }}", "it is {{.output_chars}}"},
		{"observation_template", "{{ output.output|tojson }}", "it is {{toJson .output}}"},
		{"format_error_template", "{{actions|length}}", "it is {{.n_actions}}"},
		{"observation_template", "{% if output.exception_info -%}", "it is {{if .exception}}...{{end}}"},
		{"observation_template", "{% if output.output | length < 10000 -%}", "it is {{if not .elided}}...{{end}}"},
		{"instance_template", `{%- if system == "Darwin" -%}`, `it is {{if eq .system "Darwin"}}...{{end}}`},
		{"instance_template", `{%- if system != 'Darwin' -%}`, `it is {{if ne .system "Darwin"}}...{{end}}`},
		{"instance_template", "{% if not task %}", "it is {{if not .task}}...{{end}}"},
		{"instance_template", "{% if a in [1, 2] %}", "it is {{if ...}}...{{end}}"},
		{"instance_template", "{% elif cwd %}", "it is {{else if .cwd}}"},
		{"instance_template", "{%- else -%}", "it is {{else}}"},
		{"instance_template", "{%- endif %}", "it is {{end}}"},
		{"instance_template", "{% for f in files %}", "it is {{range .list}}...{{end}}"},
		{"observation_template", "{%- set elided_chars = output.output | length - 10000 -%}", "it is {{$name := ...}}"},
		{"instance_template", "{# a word #}", "it is {{/* ... */}}"},
		{"instance_template", "{{ instance_id }}", "it is {{.instance.instance_id}}"},
	}
	for _, tt := range tests {
		text := "agent:\n  " + tt.field + ": |\n    first {{.cwd}}\n    " + tt.text + "\n"
		path := file(t, "x.yaml", text)
		_, err := resolve(path)
		want := path + ":4: agent." + tt.field + ": "
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), tt.want) || !strings.HasSuffix(err.Error(), "(see "+configs.MigrationGuide+")") {
			t.Errorf("%s:\n got %v\nwant %s%s", tt.text, err, want, tt.want)
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
	_, err = resolve(file(t, "y.yaml", "run: {workers: 0}\nenvironment: {memory: lots, timeout: 0}\nagent: {system_template: '{{task}}'}\n"))
	if got := configs.SplitErrors(err); len(got) != 4 || !errors.Is(err, configs.ErrConfig) {
		t.Errorf("found %d mistakes: %v", len(got), got)
	}
	if configs.SplitErrors(nil) != nil {
		t.Error("SplitErrors(nil) is not nil")
	}
}
