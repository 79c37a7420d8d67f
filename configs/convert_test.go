package configs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
)

// TestConvert converts the files with the constructs of mini-swe-agent's own. What the
// prompts render is compared by agent.GoTemplate.
func TestConvert(t *testing.T) {
	files, err := filepath.Glob("testdata/peer/*.yaml")
	if err != nil || len(files) != 8 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		data, notes, err := configs.Convert(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		before, err := resolve(path)
		if err != nil {
			t.Fatal(err)
		}
		converted := file(t, "converted.yaml", string(data))
		cfg, err := resolve(converted)
		if err != nil {
			t.Errorf("%s: %v\n%s", path, err, data)
			continue
		}
		text := strings.Join(notes, "\n")
		if cfg.Agent.TemplateEngine != nil || strings.Contains(text, "stays in Jinja") || len(cfg.Notes()) > 0 {
			t.Errorf("%s: engines %v, notes %s\n%v", path, cfg.Agent.TemplateEngine, text, cfg.Notes())
		}
		for _, unused := range before.Notes() {
			for part := range strings.SplitSeq(strings.TrimSuffix(strings.SplitN(unused, "no effect here: ", 2)[1], " (see "+configs.MigrationGuide+")"), "; ") {
				if !strings.Contains(text, part) {
					t.Errorf("%s: the notes lack %q:\n%s", path, part, text)
				}
			}
		}
		if _, err := agent.New(cfg.Agent); err != nil {
			t.Errorf("%s: %v", path, cfg.Locate(err))
		}
		a, b := before.Agent, cfg.Agent
		if a.Protocol != b.Protocol || a.StepLimit != b.StepLimit || a.CostLimit != b.CostLimit || a.Mode != b.Mode || before.Model.Name != cfg.Model.Name ||
			before.Model.Class != cfg.Model.Class || before.Environment.Dir != cfg.Environment.Dir || before.Environment.CPUs != cfg.Environment.CPUs {
			t.Errorf("%s: settings differ:\n%+v\n%+v", path, a, b)
		}
		again, notes, err := configs.Convert(converted)
		if err != nil || len(notes) > 0 || string(again) != string(data) {
			t.Errorf("%s: converted twice: %v %v\n%s", path, notes, err, again)
		}
	}
}

func TestConvertKeepsComments(t *testing.T) {
	path := file(t, "mine.yaml", `# mine
agent:
  step_limit: 30 # enough
  instance_template: |
    {{ task[:200] }}
  system_template: "{{system}}"
environment:
  env: {LANG: C, OPENAI_API_KEY: sk-1}
`)
	want := `# mine
agent:
  step_limit: 30 # enough
  instance_template: |
    {{ task[:200] }}
  system_template: '{{.system}}'
  template_engine:
    instance_template: jinja
environment:
  env: {LANG: C}
`
	data, notes, err := configs.Convert(path)
	if err != nil || string(data) != want {
		t.Errorf("%v\n%s", err, data)
	}
	wantNotes := "agent.instance_template stays in Jinja: line 1: a slice of task\n" +
		"left out: environment.env.OPENAI_API_KEY: keys belong in ~/.config/mini/.env; environment.forward_env passes a variable to the sandbox"
	if got := strings.Join(notes, "\n"); got != wantNotes {
		t.Errorf("%s", got)
	}
	if _, _, err := configs.Convert(filepath.Join(t.TempDir(), "none.yaml")); !os.IsNotExist(err) {
		t.Error(err)
	}
}
