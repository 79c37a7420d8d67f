package agent_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/trajectories"
)

// A command that the user changed at the question runs in place of the model's, which is told so.
func TestEditedCommand(t *testing.T) {
	a, err := agent.New(config())
	if err != nil {
		t.Fatal(err)
	}
	repo, rec, s := agenttest.NewRepository(t), &testRecorder{}, replies(bash("echo theirs"), bash(submit))
	out := a.Run(t.Context(), agent.Session{
		Model: s, Environment: repo.Sandbox, Repository: repo, Recorder: rec, Task: agent.Task{Text: "task"},
		Approver: approverFunc(func(p agent.ApprovalRequest) agent.Decision {
			d := agent.Decision{Action: agent.Allow, By: agent.ByUser}
			if strings.Contains(p.Command, "theirs") {
				d.Edited = "echo mine"
			}
			return d
		}),
	})
	if out.ExitStatus != "Submitted" {
		t.Fatalf("%+v", out)
	}
	last := s.prompts[1][len(s.prompts[1])-1].Content
	if want := "The user changed the command before it ran. This ran instead:\n```bash\necho mine\n```\n[0] mine\n"; last != want {
		t.Errorf("the model is sent %q, want %q", last, want)
	}
	for _, r := range rec.records {
		if r.Type == trajectories.TypeExecution && strings.Contains(string(r.Data), "theirs") {
			t.Errorf("%s ran", r.Data)
		}
	}
}
