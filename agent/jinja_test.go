package agent

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
)

// jinjaConfig has one template in Jinja and plainConfig's others.
func jinjaConfig(field, text string) Config {
	c := plainConfig()
	c.TemplateEngine = map[string]string{field: EngineJinja}
	c.StepLimit, c.CostLimit, c.WallTimeLimit = 50, 3, 21600
	c.JinjaSettings = map[string]any{"model_name": "m", "timeout": 30}
	switch field {
	case "instance_template":
		c.InstanceTemplate = text
	case "observation_template":
		c.ObservationTemplate = text
	case "format_error_template":
		c.FormatErrorTemplate = text
	case "env_startup_command":
		c.StartupCommand = text
	}
	return c
}

func TestJinjaVariables(t *testing.T) {
	parsed := protocol.ParsedReply{Problem: "no command", Actions: []protocol.Action{{Command: "a"}, {Command: "{{ task }}"}}}
	long := env.Result{Output: bytes.Repeat([]byte("ab"), 6000), Head: 6000, Truncated: true, Chars: 1_000_000, ExitCode: 2}
	tests := []struct {
		field, text string
		own         map[string]any
		want        string
	}{
		{
			"instance_template", "{{task}} {{system}} {{machine}} {{cwd}} {{step_limit}} {{cost_limit}} {{wall_time_limit_seconds}} {{n_model_calls}} {{model_cost}} {{elapsed_seconds}} {{model_name}} {{timeout}}\n",
			nil, "{{ x }} Linux x86_64 / 50 3.0 21600 7 0.25 90 m 30",
		},
		{"env_startup_command", "git checkout {{base_commit}}", nil, "git checkout abc"},
		{
			"observation_template", "{{output.returncode}} {{output.exception_info}} {{output.output | length}} {{output.output[:3]}} {{output.output[-3:]}}",
			observationValues(shownOutput{}, long, "killed"), "2 killed 1000000 aba bab",
		},
		{
			"observation_template", "{{output.output}}{{step_limit - n_model_calls}}",
			observationValues(shownOutput{}, env.Result{Output: []byte("{% if %}\xff\n")}, ""), "{% if %}\ufffd\n43",
		},
		{
			"format_error_template", "{{error}} {{actions|length}} {{actions | join}} {{finish_reason}} {{has_tool_calls}}",
			formatErrorValues(parsed, "stop"), "No command. 2 a{{ task }} stop False",
		},
	}
	for _, tt := range tests {
		cfg := jinjaConfig(tt.field, tt.text)
		templates, err := parseTemplates(Config{
			SystemTemplate: "", InstanceTemplate: cfg.InstanceTemplate, ObservationTemplate: cfg.ObservationTemplate,
			FormatErrorTemplate: cfg.FormatErrorTemplate, TemplateEngine: cfg.TemplateEngine, JinjaSettings: cfg.JinjaSettings,
		}, protocol.NewTools(false))
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		task := Task{Text: "{{ x }}", Instance: map[string]any{"base_commit": "abc"}}
		vars := merge(cfg.variables(task, env.Info{System: "Linux", Machine: "x86_64", Dir: "/"}, Capabilities{}, 7, 0.25, 90.7), tt.own)
		p := map[string]promptTemplate{
			"instance_template": templates[instancePrompt], "observation_template": templates[observationPrompt], "format_error_template": templates[formatErrorPrompt],
		}[tt.field]
		if tt.field == "env_startup_command" {
			r, err := parseJinja(tt.field, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			p = promptTemplate{field: tt.field, renderer: r}
		}
		if got, err := p.render(vars); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.text, got, err, tt.want)
		}
	}
}

func TestJinjaMistakes(t *testing.T) {
	t.Setenv("MINI_TEST_KEY", "secret")
	for _, tt := range []struct {
		field, text string
		line        int
		want        string
	}{
		{"instance_template", "a\n{% if task %}", 2, "expected tag elif or else or endif"},
		{"instance_template", "a\n\n{{ tsk }}", 3, "unknown variable tsk; known variables: "},
		{"instance_template", "{{ MINI_TEST_KEY }}", 1, "environment variables are not passed on"},
		{"instance_template", "{{ output.output }}", 1, "unknown variable output"},
		{"observation_template", "{% if output.returncode == 77 %}{{ nope }}{% endif %}", 1, "unknown variable nope"},
		{"observation_template", "\n{{ output.stdout }}", 2, "attribute 'stdout' not found"},
		{"env_startup_command", "git checkout {{ base_commit }}", 1, "unknown variable base_commit"},
	} {
		a, err := New(jinjaConfig(tt.field, tt.text))
		if err == nil {
			err = a.CheckTask(Task{Instance: map[string]any{"repo": "x"}})
		}
		field, ok := errors.AsType[*FieldError](err)
		if !ok || field.Field != tt.field || field.Line != tt.line || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", tt.text, err, tt.want)
		}
	}
	if _, err := New(jinjaConfig("observation_template", "{% if nope is defined %}{{ nope }}{% endif %}")); err != nil {
		t.Error(err)
	}
}
