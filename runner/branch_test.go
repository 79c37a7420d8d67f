package runner_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// threeSteps is the journal of an attempt that submits in its third step; each step
// costs one dollar.
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
		{"what handed in the work", trajectories.Submitted, false, 3, 0, "step 3 submitted the work"},
		{"the last of an attempt that met a limit", trajectories.Limit, true, 3, 14, ""},
		{"one that was stopped in its middle", trajectories.Interrupted, false, 3, 0, "step 3 is incomplete"},
		{"none", trajectories.Submitted, false, 0, 0, "no step 0"},
		{"beyond the last", trajectories.Submitted, false, 4, 0, "no step 4: the attempt has 3"},
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
