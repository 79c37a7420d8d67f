package external_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/external"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats/atif"
)

// TestSubagents runs an agent with two subagents at the same time. Their journals have what
// they did, and ATIF has their trajectories.
func TestSubagents(t *testing.T) {
	program, err := os.ReadFile("testdata/agent.py")
	if err != nil {
		t.Fatal(err)
	}
	const block = "```bash\\n%s\\n```"
	script, err := scripted.Parse("r", fmt.Appendf(nil, `
main-job:
  - {content: Both., tool_calls: [{name: task, arguments: {prompt: "Look at sub-a"}}, {name: task, arguments: {prompt: "Look at sub-b"}}]}
  - "`+block+`"
  - "`+block+`"
sub-a: ["`+block+`", "It says one."]
sub-b: ["`+block+`", "`+block+`", "It is short."]
`, "echo two >> a.txt", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "cat a.txt", "ls", "wc -l a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"chat plain", "responses plain", "messages stream", "gemini plain"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			a := newAttempt(t, fake.Config{Script: script})
			a.session.Task.Text = "Do the main-job"
			path, log := a.keepChildren(t), filepath.Join(t.TempDir(), "agent.json")
			out := a.run(t, agent.Config{}, external.Definition{
				Command: `python3 "$MINI_STATE/agent.py" ` + args, Env: map[string]string{"AGENT_LOG": log}, Files: map[string]string{"agent.py": string(program)},
			})
			if out.ExitStatus != "Submitted" || out.Steps != 8 || !bytes.Contains(out.Submission, []byte("+two")) {
				t.Fatalf("outcome %+v", out)
			}
			books := a.provider.Stats().Charged
			if out.Usage != books.Usage || books.Replies != 8 || out.Cost-books.Cost > 1e-12 || books.Cost-out.Cost > 1e-12 {
				t.Errorf("usage %+v, %v; charged %+v", out.Usage, out.Cost, books)
			}
			tr := readValid(t, path)
			if len(tr.Children) != 2 || countRefs(tr) != 2 {
				t.Fatalf("%d children, %d executions that started them", len(tr.Children), countRefs(tr))
			}
			for n, journal := range trajectories.ChildJournals(path) {
				own := log + ".1"
				if strings.Contains(tr.Children[n-1].Header.Parent.Task, "sub-b") {
					own = log + ".2"
				}
				var records []trajectories.Record
				for r, err := range trajectories.Read(journal) {
					if err != nil {
						t.Fatal(err)
					}
					records = append(records, r)
				}
				commands, observations, lastReply := readJournal(t, records, own)
				want := map[string]string{log + ".1": "cat a.txt: It says one.", log + ".2": "ls|wc -l a.txt: It is short."}[own]
				if got := strings.Join(commands, "|") + ": " + lastReply.Content; got != want || len(observations) != len(commands) {
					t.Errorf("child %d did %s, with %q; want %s", n, got, observations, want)
				}
			}
			checkATIF(t, tr)
		})
	}
}

// checkATIF checks the attempt's document, which has two subagents that a result names.
func checkATIF(t *testing.T, tr *trajectories.Attempt) {
	t.Helper()
	var b bytes.Buffer
	if _, err := atif.Write(&b, tr, ""); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Subagents []struct {
			ID string `json:"trajectory_id"`
		} `json:"subagent_trajectories"`
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil || len(doc.Subagents) != 2 {
		t.Fatalf("%d subagents, %v", len(doc.Subagents), err)
	}
	for _, s := range doc.Subagents {
		if n := bytes.Count(b.Bytes(), []byte(`"`+s.ID+`"`)); n < 2 {
			t.Errorf("%s is named %d times", s.ID, n)
		}
	}
}
