package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// goldenCase is one text that Jinja2 rendered; scripts/jinja-goldens.py writes them.
type goldenCase struct {
	Template string         `json:"template"` // a key of the configuration
	TextOf   string         `json:"text_of"`  // or the template itself
	Vars     map[string]any `json:"vars"`
	Text     string         `json:"text"`
	SHA256   string         `json:"sha256"` // of a long text
	Error    string         `json:"error"`  // Jinja2's exception
}

// TestJinjaConformance compares with what Jinja2 renders, byte for byte.
func TestJinjaConformance(t *testing.T) {
	files, err := filepath.Glob("testdata/jinja/*.json")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		base := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(base, func(t *testing.T) {
			var cases []goldenCase
			decode(t, json.Unmarshal, file, &cases)
			config := map[string]map[string]any{}
			if base != "constructs" {
				decode(t, yaml.Unmarshal, filepath.Join("../configs/testdata/peer", base+".yaml"), &config)
			}
			if len(cases) < 30 {
				t.Errorf("%d cases, want at least 30", len(cases))
			}
			vars := cases[0].Vars
			for _, c := range cases {
				if c.Vars != nil {
					vars = c.Vars
				}
				text := c.TextOf
				if section, key, ok := strings.Cut(c.Template, "."); ok {
					text, _ = config[section][key].(string)
				}
				expanded, _ := expand(vars).(map[string]any)
				checkGolden(t, text, expanded, c)
			}
		})
	}
}

func decode(t *testing.T, unmarshal func([]byte, any) error, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = unmarshal(data, into)
	}
	require.NoError(t, err)
}

// expand repeats the texts of values like [TEXT, N], and makes whole numbers of others.
func expand(v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) == 2 {
			text, isText := v[0].(string)
			n, isNumber := v[1].(float64)
			if isText && isNumber {
				return strings.Repeat(text, int(n))
			}
		}
		list := make([]any, len(v))
		for i := range v {
			list[i] = expand(v[i])
		}
		return list
	case map[string]any:
		m := map[string]any{}
		for key, value := range v {
			m[key] = expand(value)
		}
		return m
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

func checkGolden(t *testing.T, text string, vars map[string]any, c goldenCase) {
	t.Helper()
	got, err := renderJinja(text, vars)
	hash := sha256.Sum256([]byte(got))
	switch {
	case c.Error != "":
		if e, ok := errors.AsType[*FieldError](err); !ok || e.Line != 1 {
			t.Errorf("%.200q: %q, %v, want an error like %s", text, got, err, c.Error)
		}
	case err != nil:
		t.Errorf("%.200q: %v, want %.200q", text, err, c.Text)
	case c.SHA256 != "" && hex.EncodeToString(hash[:]) != c.SHA256:
		t.Errorf("%.200q with %v: another text than Jinja2's: %.300q", text, c.Vars, got)
	case c.SHA256 == "" && got != c.Text:
		t.Errorf("%.200q with %v:\n got %q\nwant %q", text, c.Vars, got, c.Text)
	}
}

// renderJinja renders a template with vars as its only variables.
func renderJinja(text string, vars map[string]any) (string, error) {
	r, err := parseJinja("f", text)
	if err != nil {
		return "", err
	}
	tmpl, _ := r.(jinjaTemplate)
	if err := tmpl.checkNames(vars); err != nil {
		return "", err
	}
	return tmpl.execute(vars)
}

// TestJinjaDifferences renders the table of docs/prompts.md.
func TestJinjaDifferences(t *testing.T) {
	page, err := os.ReadFile("../docs/prompts.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(page), "\n### What is rendered otherwise than by Jinja2\n")
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) != 3 {
			continue
		}
		rows++
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "| `")
		}
		got, err := renderJinja(strings.ReplaceAll(cells[0], `\|`, "|"), map[string]any{"task": "t"})
		want, _ := strings.CutPrefix(cells[2], "nothing")
		if (err != nil) != (want == "error") || err == nil && got != want || cells[1] == cells[2] {
			t.Errorf("%s: %q, %v, want %q", cells[0], got, err, want)
		}
	}
	if rows < 20 {
		t.Errorf("%d rows", rows)
	}
}

// TestJinjaBounds renders templates that the library cannot render, or that would fill the memory.
func TestJinjaBounds(t *testing.T) {
	for _, text := range []string{
		"{% for a in s %}{% for b in s %}{{ s }}{% endfor %}{% endfor %}",
		"{{ s * -1 }}", "{{ 1 % 0 }}", "{% raw %}{% endraw %}",
		"{{ " + strings.Repeat("(", 5000), "{{ " + strings.Repeat("not ", 5000) + "s }}", "{{ " + strings.Repeat("-", 5000) + "1 }}",
	} {
		got, err := renderJinja(text, map[string]any{"s": strings.Repeat("x", 1000)})
		if _, ok := errors.AsType[*FieldError](err); !ok {
			t.Errorf("%.80q: %d bytes, %v", text, len(got), err)
		}
	}
}

// TestJinjaLongText checks outputs of which the middle is not known.
func TestJinjaLongText(t *testing.T) {
	long := strings.Repeat("é", 6000) + "\n[... 4988000 characters left out ...]\n" + strings.Repeat("z", 6000)
	vars := map[string]any{"o": longText(long), lengthVariable: int64(5_000_000)}
	for text, want := range map[string]string{
		"{{ o | length - 10000 }}": "4990000",
		"{{ o[:5000] }}":           strings.Repeat("é", 5000),
		"{{ o[-5000:] }}":          strings.Repeat("z", 5000),
		"{{ o[1:3] }}{{ o[-1:] }}": "ééz",
		"{{ o }}":                  long,
		"{{ o is string }}{{ 'z' in o }}{{ o[:2] | tojson }}": `TrueTrue"\u00e9\u00e9"`,
	} {
		if got, err := renderJinja(text, vars); err != nil || got != want {
			t.Errorf("%s: %.100q, %v; want %.100q", text, got, err, want)
		}
	}
}

func TestJinjaErrorLines(t *testing.T) {
	for text, want := range map[string]string{
		"a\n{{ x }}":                     "f:2: unknown variable x",
		"a\n\n{% if o.x\n %}{% endif %}": "f:3: attribute 'x' not found",
		"{% if not o %}{% else %}\n{% for a in o %}\n{{ o\n.x }}{% endfor %}{% endif %}": "f:3: attribute 'x' not found",
		"\n{% include 'x' %}":                               "f:2: statement 'include' is unknown or not open; if, for, set and raw are known",
		"{# \n #}{%- if o -%}\n{% endfor %}":                "f:3: statement 'endfor' is unknown",
		"\n{{ o | foo }}":                                   "f:2: filter 'foo' not found",
		"\n{% if o o %}{% endif %}":                         "f:2: If-condition is malformed",
		"\n{% if o == %}{% endif %}":                        "f:2: ",
		"a\n{% if o and\no %}{{ 1 }}\n{{ o.y }}{% endif %}": "f:4: attribute 'y' not found",
		"\n{{ 'a }}":                                        "f:2: syntax error: ",
		"\n{{ (1 }}":                                        "f:2: ",
	} {
		_, err := renderJinja(text, map[string]any{"o": map[string]any{"a": 1}})
		e, ok := errors.AsType[*FieldError](err)
		if !ok || !strings.HasPrefix(fmt.Sprintf("%s:%d: %v", e.Field, e.Line, e.Err), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzJinja(f *testing.F) {
	data, err := os.ReadFile("testdata/jinja/constructs.txt")
	require.NoError(f, err)
	for line := range strings.Lines(string(data)) {
		f.Add(line)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = renderJinja(text, map[string]any{"n": 3, "s": "text", "lst": []string{"a"}, "d": map[string]any{"a": 1}}) // must not panic
	})
}

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
			require.NoError(t, err)
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
	_, err := New(jinjaConfig("observation_template", "{% if nope is defined %}{{ nope }}{% endif %}"))
	assert.NoError(t, err)
}
