package configs_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// commented is a file with comments, in the format that yaml.v3 writes.
const commented = `# My settings.

agent: # limits
  # never more
  step_limit: 40 # was 250
  cost_limit: 1.50
model: {model_name: "gpt-5-mini", model_kwargs: {temperature: 0}} # mine
environment:
  env:
    A: 'it''s' # quoted
  forward_env:
    - HOME
    - LANG
run:
  env_startup_command: |
    # no comment
    make

    make install
  # the end
`

func TestDocumentSet(t *testing.T) {
	tests := map[string]struct {
		text, key string
		values    []string
		old, new  string // the expected replacement in the text
	}{
		"a number, its comment stays":   {commented, "agent.step_limit", []string{"50"}, "step_limit: 40 ", "step_limit: 50 "},
		"quoted in a flow":              {commented, "model.model_name", []string{"o: #1"}, `"gpt-5-mini"`, `'o: #1'`},
		"deep in a flow":                {commented, "model.model_kwargs.temperature", []string{"0.5"}, "temperature: 0", "temperature: 0.5"},
		"added deep in a flow":          {commented, "model.model_kwargs.seed", []string{"1"}, "{temperature: 0}", "{temperature: 0, seed: 1}"},
		"added at a section's end":      {commented, "agent.scrub", []string{"true"}, "cost_limit: 1.50\n", "cost_limit: 1.50\n  scrub: true\n"},
		"a list of that indent":         {commented, "environment.forward_env", []string{"A", "B"}, "  forward_env:\n    - HOME\n    - LANG\n", "  forward_env: [A, B]\n"},
		"a list as it is written":       {commented, "environment.forward_env", []string{"[A, B]"}, "  forward_env:\n    - HOME\n    - LANG\n", "  forward_env: [A, B]\n"},
		"a new section":                 {commented, "eval.workers", []string{"2"}, "  # the end\n", "  # the end\neval:\n  workers: 2\n"},
		"into nothing":                  {"", "agent.step_limit", []string{"5"}, "", "agent:\n  step_limit: 5\n"},
		"into comments":                 {"# mine", "agent.step_limit", []string{"5"}, "# mine", "# mine\nagent:\n  step_limit: 5\n"},
		"into an empty section":         {"agent:\nrun: {}\n", "agent.step_limit", []string{"5"}, "agent:\n", "agent:\n  step_limit: 5\n"},
		"in place of null":              {"agent:\n  step_limit: null # x\n  scrub: true\n", "agent.step_limit", []string{"5"}, "null", "5"},
		"a text that looks like none":   {"", "model.model_name", []string{"007"}, "", "model:\n  model_name: \"007\"\n"},
		"a prompt in place of its file": {"agent:\n  system_template: {file: a.md} # c\n", "agent.system_template", []string{"You."}, "{file: a.md}", "You."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := configs.OpenDocument("f", []byte(test.text))
			require.NoError(t, err)
			require.NoError(t, d.Set(test.key, test.values...))
			want := strings.Replace(test.text, test.old, test.new, 1)
			assert.Equal(t, want, string(d.Bytes()), "text")
			value, ok := d.Value(test.key)
			if !ok || value != test.values[0] && !strings.HasPrefix(value, `["A"`) {
				t.Errorf("the value is %q, %v", value, ok)
			}
		})
	}
}

// Set reformats a file in an unusual format, and keeps its comments.
func TestDocumentSetReformats(t *testing.T) {
	d, err := configs.OpenDocument("f", []byte("agent: {\n  step_limit: 4, # few\n}\n"))
	require.NoError(t, err)
	require.NoError(t, d.Set("agent.scrub", "true"))
	for key, want := range map[string]string{"agent.scrub": "true", "agent.step_limit": "4"} {
		if got, _ := d.Value(key); got != want {
			t.Errorf("%s: %q in %s", key, got, d.Bytes())
		}
	}
	assert.Contains(t, string(d.Bytes()), "# few", "no comment")
}

func TestDocumentUnset(t *testing.T) {
	tests := map[string]struct{ text, key, old, new string }{
		"a line":                    {commented, "agent.step_limit", "  # never more\n  step_limit: 40 # was 250\n", ""},
		"several lines":             {commented, "environment.forward_env", "  forward_env:\n    - HOME\n    - LANG\n", ""},
		"a section":                 {commented, "environment.env", "  env:\n    A: 'it''s' # quoted\n", ""},
		"the last one of a section": {commented, "environment.env.A", "  env:\n    A: 'it''s' # quoted\n", ""},
		"its comments go":           {commented, "run.env_startup_command", "run:\n  env_startup_command: |\n    # no comment\n    make\n\n    make install\n  # the end\n", ""},
		"all there is":              {"agent:\n  step_limit: 5\n", "agent.step_limit", "agent:\n  step_limit: 5\n", ""},
		"one nobody knows":          {"agent:\n  mode: yolo\n  scrub: true\n", "agent.mode", "  mode: yolo\n", ""},
		"out of a flow":             {"agent: {step_limit: 5, scrub: true} # x\n", "agent.scrub", ", scrub: true", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := configs.OpenDocument("f", []byte(test.text))
			require.NoError(t, err)
			if ok, err := d.Unset(test.key); !ok || err != nil {
				t.Fatal(ok, err)
			}
			want := strings.Replace(test.text, test.old, test.new, 1)
			assert.Equal(t, want, string(d.Bytes()), "text")
			if ok, err := d.Unset(test.key); ok || err != nil {
				t.Errorf("a second time: %v, %v", ok, err)
			}
		})
	}
}

func TestDocumentRefuses(t *testing.T) {
	tests := map[string]struct {
		text, key string
		values    []string
		want      string
	}{
		"a key nobody knows": {"", "agent.stp_limit", []string{"5"}, "set: unknown key agent.stp_limit; did you mean agent.step_limit?"},
		"another type":       {"", "agent.step_limit", []string{"many"}, `set: agent.step_limit: it must be a whole number, not "many"`},
		"a section":          {"", "agent", []string{"5"}, `set: agent: it must be a mapping, not "5"`},
		"several values":     {"", "agent.step_limit", []string{"5", "6"}, "set agent.step_limit: it takes one value, not 2; put it in quotes"},
		"no value":           {"", "agent.step_limit", nil, "set agent.step_limit: the value is missing"},
		"an empty part":      {"", "agent..x", []string{"5"}, "set: the key has an empty part; write key.sub=value"},
		"an alias":           {"agent: &a {step_limit: 5}\nrun: *a\n", "run.workers", []string{"5"}, "f:2: run is an alias, so a change would affect other settings; use mini config edit"},
		"a torn file":        {"agent:\n  step_limit: [5\n", "agent.step_limit", []string{"5"}, "f:"},
		"a list":             {"- a\n", "agent.step_limit", []string{"5"}, "f:1: it must be a mapping, not a list"},
		"two documents":      {"a: 1\n---\nb: 2\n", "agent.step_limit", []string{"5"}, "f: it contains a second document"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := configs.OpenDocument("f", []byte(test.text))
			if err == nil {
				err = d.Set(test.key, test.values...)
				assert.Equal(t, test.text, string(d.Bytes()), "the text")
			}
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// FuzzDocument checks that Set sets a key in any file, and that the file still has its
// other keys.
func FuzzDocument(f *testing.F) {
	for _, text := range []string{commented, "", "agent: {a: [1, 2], b: 'x}'}", "agent:\n- a\n- b\n", "a: &x 1\nagent:\n  b: *x\n", "? a\n: b\n", "agent: >\n  folded\n\n  text\nrun: 1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := configs.OpenDocument("f", []byte(text))
		if err != nil {
			return
		}
		before := d.Keys()
		if err := d.Set("agent.step_limit", "77"); err != nil {
			return
		}
		if got, ok := d.Value("agent.step_limit"); !ok || got != "77" {
			t.Fatalf("the value is %q in %q", got, d.Bytes())
		}
		after := strings.Join(d.Keys(), "\n") + "\n"
		for _, key := range before {
			if !strings.HasPrefix(key, "agent") && !strings.Contains(after, key+"\n") {
				t.Fatalf("%q was lost from %q: %q", key, text, d.Bytes())
			}
		}
	})
}
