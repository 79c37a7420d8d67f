package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// threeSteps is the journal of an attempt whose third step hands in the work; each
// step costs a dollar.
func threeSteps(t *testing.T, class trajectories.Class, told bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "x", Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	add := func(kind trajectories.Type, data any) {
		t.Helper()
		if _, err := j.Append(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	say := func(role model.Role, cause trajectories.Cause) {
		t.Helper()
		add(trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: role, Content: "x"}, Cause: cause})
	}
	say(model.User, trajectories.CausePrompt)
	for step := 1; step <= 3; step++ {
		add(trajectories.TypeCall, trajectories.Call{Cost: 1})
		say(model.Assistant, trajectories.CauseReply)
		add(trajectories.TypeExecution, trajectories.Execution{Command: "true"})
		if step < 3 || told {
			say(model.User, trajectories.CauseObservation)
		}
	}
	add(trajectories.TypeOutcome, trajectories.Outcome{Class: class, Steps: 3, Cost: 3})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNewParent(t *testing.T) {
	for _, c := range []struct {
		name   string
		class  trajectories.Class
		told   bool
		step   int
		record int
		err    string
	}{
		{"the first step", trajectories.Submitted, false, 1, 6, ""},
		{"the one before the last", trajectories.Submitted, false, 2, 10, ""},
		{"what handed in the work", trajectories.Submitted, false, 3, 0, "step 3 handed in the work"},
		{"the last of an attempt that met a limit", trajectories.Limit, true, 3, 14, ""},
		{"one that was stopped in its middle", trajectories.Interrupted, false, 3, 0, "step 3 was not brought to its end"},
		{"none", trajectories.Submitted, false, 0, 0, "there is no step 0"},
		{"beyond the last", trajectories.Submitted, false, 4, 0, "there is no step 4: it has 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := threeSteps(t, c.class, c.told)
			p, err := runner.NewParent(trajectories.Origin{Step: c.step}, trajectories.Read(path))
			switch {
			case c.err != "":
				if err == nil || !strings.HasPrefix(err.Error(), c.err) {
					t.Errorf("error %v, want %s", err, c.err)
				}
			case err != nil || p.Origin.Record != c.record:
				t.Errorf("record %d, %v; want %d", p.Origin.Record, err, c.record)
			}
		})
	}
}

// TestInheritedCosts is about who pays: a branch inherits steps, and no bill.
func TestInheritedCosts(t *testing.T) {
	p, err := runner.NewParent(trajectories.Origin{Step: 2, SHA256: "ab"}, trajectories.Read(threeSteps(t, trajectories.Submitted, false)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fork.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	j, err := trajectories.ForkIn(f, trajectories.Header{Origin: &p.Origin}, p.Records)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	past, err := agent.Recall(trajectories.Read(path))
	if err != nil {
		t.Fatal(err)
	}
	if past.Steps != 2 || past.Cost != 0 || past.Record != 10 || len(past.Executions) != 2 {
		t.Errorf("%d steps, cost %v, up to record %d, %d executions", past.Steps, past.Cost, past.Record, len(past.Executions))
	}
	if past.Idle.Seconds() > 60 {
		t.Errorf("idle for %v before it began", past.Idle)
	}
}
