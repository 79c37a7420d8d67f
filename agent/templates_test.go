package agent

import (
	"errors"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
)

func plainConfig() Config {
	return Config{
		SystemTemplate:      "You are at {{.cwd}} on {{.system}}.",
		InstanceTemplate:    "Do this: {{.task}}",
		ObservationTemplate: "<rc>{{.returncode}}</rc>{{if .exception}}<ex>{{.exception}}</ex>{{end}}\n{{.output}}",
		FormatErrorTemplate: "Wrong: {{.error}} ({{.n_actions}})",
		Autosubmit:          true,
	}
}

func TestNewFindsMistakes(t *testing.T) {
	tests := []struct {
		name  string
		wrong func(*Config)
		field string
		line  int
		text  string
	}{
		{"syntax", func(c *Config) { c.SystemTemplate = "a\n{{if}}" }, "system_template", 2, "missing value for if"},
		{"unknown function", func(c *Config) { c.SystemTemplate = "{{nope}}" }, "system_template", 1, `function "nope" not defined`},
		{"the host's environment", func(c *Config) { c.SystemTemplate = `{{env "HOME"}}` }, "system_template", 1, `function "env" not defined`},
		{"unknown variable", func(c *Config) { c.InstanceTemplate = "x\n\n{{.tsk}}" }, "instance_template", 3, "unknown variable .tsk; known variables: .action_tag .cost_limit "},
		{
			"unknown variable for commands that were killed",
			func(c *Config) { c.ObservationTemplate = "{{if .timed_out}}{{.nope}}{{end}}" }, "observation_template", 1, ".nope",
		},
		{"by the dollar, within range", func(c *Config) { c.SystemTemplate = "{{range .tools}}{{$.nope}}{{end}}" }, "system_template", 1, ".nope"},
		{"a field of a tool", func(c *Config) { c.SystemTemplate = "{{range .tools}}{{.nome}}{{end}}" }, "system_template", 1, "unknown variable .nome"},
		{"a field of a skill", func(c *Config) { c.SystemTemplate = "{{if .skills}}{{(index .skills 0).x}}{{end}}" }, "system_template", 1, "unknown variable .x"},
		{"a list of tools", func(c *Config) { c.SystemTemplate = "{{range .tolls}}{{.name}}{{end}}" }, "system_template", 1, "unknown variable .tolls"},
		{"the first of no tools", func(c *Config) { c.SystemTemplate = "{{(index .tools 0).name}}" }, "system_template", 1, "index out of range"},
		{"a variable of another template", func(c *Config) { c.SystemTemplate = "{{.returncode}}" }, "system_template", 1, ".returncode"},
		{"wrong use", func(c *Config) { c.ObservationTemplate = "{{.output.text}}" }, "observation_template", 1, "text"},
		{"bad regex", func(c *Config) { c.ActionRegex = "(" }, "action_regex", 0, "missing closing"},
		{"unknown protocol", func(c *Config) { c.Protocol = "yaml" }, "protocol", 0, `"yaml" is not one of text, xml, tools`},
		{"a pattern where none is used", func(c *Config) { c.Protocol, c.ActionRegex = "tools", "(a)" }, "action_regex", 0, "the protocol tools has no pattern"},
		{"bad tag", func(c *Config) { c.Protocol, c.ActionTag = "xml", "<a>" }, "action_tag", 0, "not a tag name"},
		{"tool calls", func(c *Config) { c.ToolCalls = "two" }, "tool_calls", 0, `"two" is neither "all" nor "one"`},
		{
			"unknown variable in a branch for another protocol",
			func(c *Config) { c.SystemTemplate = `{{if eq .protocol "tools"}}{{.nope}}{{end}}` }, "system_template", 1, ".nope",
		},
		{"unknown variable for late steps", func(c *Config) { c.SystemTemplate = "{{if gt .elapsed_seconds 3000.0}}{{.nope}}{{end}}" }, "system_template", 1, ".nope"},
		{"plain reply", func(c *Config) { c.PlainReply = "stop" }, "plain_reply", 0, `"stop" is not one of error, end, ask`},
		{"submission", func(c *Config) { c.Submission = "diff" }, "submission", 0, "neither"},
		{"size of a patch", func(c *Config) { c.MaxPatch = -1 }, "max_patch_bytes", 0, "-1 is not a number"},
		{"pattern of a file", func(c *Config) { c.PatchExclude = []string{"a\nb"} }, "patch_exclude", 0, "not a .gitignore pattern"},
		{"marker of images", func(c *Config) { c.Images.Marker = " x" }, "images", 0, "not the start of a line"},
		{"compaction", func(c *Config) { c.Compaction = "zip" }, "compaction", 0, "not one of"},
		{"limit of a compaction", func(c *Config) { c.CompactionTokens = -1 }, "compaction_tokens", 0, "-1 is not a number"},
		{"no template for summaries", func(c *Config) { c.Compaction = CompactionSummarize }, "summary_template", 0, "it is empty"},
		{"unknown variable of a tail", func(c *Config) { c.TailTemplate = "{{.unknown}}" }, "tail_template", 1, ".unknown"},
		{"negative limit", func(c *Config) { c.StepLimit = -1 }, "step_limit", 0, "negative"},
		{"observation", func(c *Config) { c.Observation = ObservationConfig{MaxChars: 10, HeadChars: 9, TailChars: 9} }, "observation", 0, "exceed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := plainConfig()
			tt.wrong(&cfg)
			_, err := New(cfg)
			field, ok := errors.AsType[*FieldError](err)
			if !ok {
				t.Fatalf("error is %v, want a FieldError", err)
			}
			if field.Field != tt.field || field.Line != tt.line || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %s, line %d: %v; want %s, line %d, with %q", field.Field, field.Line, err, tt.field, tt.line, tt.text)
			}
		})
	}
}

func TestCheckFindsMissingColumns(t *testing.T) {
	cfg := plainConfig()
	cfg.InstanceTemplate = "{{.task}} in {{.instance.repo}}"
	a, err := New(cfg)
	if err != nil {
		t.Fatalf("any column may be asked for before rows are known: %v", err)
	}
	if err := a.CheckTask(Task{Text: "t", Instance: map[string]any{"repo": "a/b"}}); err != nil {
		t.Errorf("row with the column: %v", err)
	}
	cfg.InstanceTemplate = "{{.task}}{{if gt .n_model_calls 5}}{{.instance.repo}}{{end}}"
	if a, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	err = a.CheckTask(Task{Text: "t", Instance: map[string]any{"rope": "a/b"}})
	assert.ErrorContains(t, err, "repo", "row without the column")
}
