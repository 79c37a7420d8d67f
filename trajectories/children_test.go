package trajectories_test

import (
	"testing"

	"github.com/minibench/mini/trajectories"
)

// TestChildrenByExecution has a set-up command and a command of a reply that start
// children.
func TestChildrenByExecution(t *testing.T) {
	newExecution := func(record int, journal string) trajectories.RecordedExecution {
		c := trajectories.ToolCall{Name: "delegate", Details: []byte(`{"children":[{"child":1,"journal":"` + journal + `"}]}`)}
		return trajectories.RecordedExecution{Record: record, ToolCalls: []trajectories.RecordedToolCall{{Record: record - 1, ToolCall: c}}}
	}
	tr := trajectories.Transcript{
		SetupExecutions: []trajectories.RecordedExecution{newExecution(3, "a")},
		Entries:         []trajectories.Entry{{Executions: []trajectories.RecordedExecution{newExecution(7, "b")}}},
	}
	results := tr.ChildrenByExecution()
	if len(results[3]) != 1 || len(results[7]) != 1 || results[3][0].Journal != "a" || results[7][0].Journal != "b" {
		t.Errorf("%+v", results)
	}
}
