package runner_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// threeSteps writes the journal of an attempt with three steps of one dollar each. The
// third step has an observation if lastObserved is set.
func threeSteps(t *testing.T, class trajectories.Class, lastObserved bool) string {
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
	addMessage := func(role model.Role, cause trajectories.Cause) {
		t.Helper()
		add(trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: role, Content: "x"}, Cause: cause})
	}
	addMessage(model.User, trajectories.CausePrompt)
	for step := 1; step <= 3; step++ {
		add(trajectories.TypeCall, trajectories.Call{Cost: 1})
		addMessage(model.Assistant, trajectories.CauseReply)
		add(trajectories.TypeExecution, trajectories.Execution{Command: "true"})
		if step < 3 || lastObserved {
			addMessage(model.User, trajectories.CauseObservation)
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
		name         string
		class        trajectories.Class
		lastObserved bool
		step         int
		record       int
		err          string
	}{
		{"the first step", trajectories.Submitted, false, 1, 6, ""},
		{"the step before the last", trajectories.Submitted, false, 2, 10, ""},
		{"the step that submitted", trajectories.Submitted, false, 3, 0, "step 3 submitted the work"},
		{"the last step of an attempt at a limit", trajectories.Limit, true, 3, 14, ""},
		{"an interrupted step", trajectories.Interrupted, false, 3, 0, "step 3 is incomplete"},
		{"none", trajectories.Submitted, false, 0, 0, "no step 0"},
		{"beyond the last", trajectories.Submitted, false, 4, 0, "no step 4: the attempt has 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := threeSteps(t, c.class, c.lastObserved)
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
