package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestGoTemplate(t *testing.T) {
	for _, tt := range []struct{ field, jinja, want, limits string }{
		{"instance_template", "{{task}} {{ 'a' if system == 'Darwin' else 'b' }}", `{{.task}} {{if eq .system "Darwin"}}a{{else}}b{{end}}`, ""},
		{"instance_template", "{{ instance.repo }}{# c #}{% raw %}{{x}}{% endraw %}", `{{.instance.repo}}{{"{{"}}x}}`, ""},
		{"instance_template", "{% if step_limit > 0 and cost_limit >= 1 %}{{ step_limit - n_model_calls }}{% endif %}", "{{if and (gt .step_limit 0) (ge .cost_limit 1.0)}}{{sub .step_limit .n_model_calls}}{{end}}", ""},
		{"instance_template", "{% for f in ['a', 'b'] %}{{ f }}{{ task }}{% endfor %}", `{{range $f := list "a" "b"}}{{$f}}{{$.task}}{{end}}`, ""},
		{"env_startup_command", "git checkout {{base_commit}} in {{cwd}}", "git checkout {{.instance.base_commit}} in {{.cwd}}", ""},
		{
			"observation_template", "{% if output.output | length <= 99 %}{{output.output}}{% else %}{{output.output[:40]}}|{{output.output[-7:]}}{% endif %}",
			"{{if le .output_chars 99}}{{.output}}{{else}}{{.output_head}}|{{.output_tail}}{{end}}", "{100 40 7  0 0}",
		},
		{"observation_template", "{{ output.output | tojson }}{{ output.exception_info | trim | upper }}", "{{toJson .output}}{{upper (trim .exception)}}", "{1000000 500000 500000  0 0}"},
		{"observation_template", "{{ ((wall_time_limit_seconds - elapsed_seconds) / 60) | int }}", "{{div (sub (int .wall_time_limit_seconds) (int .elapsed_seconds)) 60}}", ""},
		{"format_error_template", "{% if finish_reason is defined and finish_reason in ['length'] %}cut{% else %}{{error}} {{actions|length}}{% endif %}", `{{if eq .finish_reason "length"}}cut{{else}}{{.error}} {{.n_actions}}{{end}}`, ""},
	} {
		got, limits, _, err := GoTemplate(tt.field, tt.jinja)
		if err != nil || got != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.jinja, got, err, tt.want)
		}
		if (limits != nil) != (tt.limits != "") || limits != nil && fmt.Sprint(*limits) != tt.limits {
			t.Errorf("%s: limits %v, want %s", tt.jinja, limits, tt.limits)
		}
	}
	for _, tt := range []struct{ field, jinja, want string }{
		{"instance_template", "a\n{{ task[:200] }}", "line 2: a slice of task"},
		{"instance_template", "{{ model_name }}", "model_name is no variable of Go templates"},
		{"instance_template", "{{ cost_limit * 2 }}", "would render \"5\" in place of \"5.0\""},
		{"observation_template", "{{output.output[:40]}}{{output.output[:50]}}", "parts of an output of different lengths"},
		{"observation_template", "{{output.output[:40]}}", "a Go template would render"}, // short outputs have no head
		{"instance_template", "{% if task %}{% set a = 1 %}{% endif %}{{ a }}", "a is no variable"},
		{"instance_template", "{% set a = 1 %}{% for f in ['b'] %}{% set a = 2 %}{% endfor %}{{ a }}", "set a assigns a variable again"},
		{"instance_template", "{% for f in ['b'] %}{{ loop.index }}{% endfor %}", "loop.index is no variable"},
		{"instance_template", "{{ task.strip() }}", "a mapping or a call"},
		{"instance_template", "{{ task", "line 1"},
	} {
		_, _, _, err := GoTemplate(tt.field, tt.jinja)
		e, ok := errors.AsType[*FieldError](err)
		if !ok || !strings.Contains(fmt.Sprintf("line %d: %v", e.Line, e.Err), tt.want) {
			t.Errorf("%s: %v, want %s", tt.jinja, err, tt.want)
		}
	}
}
