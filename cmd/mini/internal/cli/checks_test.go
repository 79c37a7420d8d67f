package cli_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/cli"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
)

// TestConfigurationIsCheckedOnce checks that a command merges and checks one configuration for each
// run, and reads the .env files once. It is not parallel, because it sets configs.Trace.
func TestConfigurationIsCheckedOnce(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, home)
	}
	t.Setenv("OPENAI_API_KEY", "k")
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"rows.jsonl":   `{"instance_id": "a__b-1", "problem_statement": "Fix it."}` + "\n",
		"replies.yaml": "- |\n  done\n\n  ```bash\n  echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n  ```\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		command string
		checks  int
	}{
		{"config show", 1},
		{"config show task -m openrouter/a/b", 1},
		{"bench --subset rows.jsonl --environment-class local -m gpt-5 -o plan --dry-run", 1},
		{"bench --subset rows.jsonl --environment-class local -m gpt-5 -o plan --dry-run --vary agent.step_limit=1,2,3", 3},
		{"bench --subset rows.jsonl --environment-class local --model-class scripted --replies replies.yaml -o run", 1},
		{"bench --subset rows.jsonl --environment-class local --model-class scripted --replies replies.yaml -o sweep --vary agent.step_limit=1,2", 2},
		{"-t task -y --model-class scripted -c model.replies=replies.yaml --exit-immediately", 1},
		{"eval --subset rows.jsonl -p run", 1},
	} {
		events := map[string]int{}
		configs.Trace = func(event string) { events[event]++ }
		var out bytes.Buffer
		cli.Main(strings.Fields(test.command), cmdutil.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
		configs.Trace = nil
		if events["check"] != test.checks || events["dotenv"] != 1 {
			t.Errorf("mini %s: %v, want %d checks and one read of .env\n%s", test.command, events, test.checks, out.String())
		}
	}
}
