package trajectories_test

import (
	"testing"

	"github.com/minibench/mini/trajectories"
)

// TestChildrenByExecution has a set-up command and a command of a reply that start
// children.
func TestChildrenByExecution(t *testing.T) {
	newExecution := func(record int, journal string) trajectories.Execution {
		c := trajectories.ToolCall{Record: record - 1, Name: "delegate", Details: []byte(`{"children":[{"child":1,"journal":"` + journal + `"}]}`)}
		return trajectories.Execution{Record: record, ToolCalls: []trajectories.ToolCall{c}}
	}
	tr := trajectories.Attempt{
		SetupExecutions: []trajectories.Execution{newExecution(3, "a")},
		Entries:         []trajectories.Entry{{Executions: []trajectories.Execution{newExecution(7, "b")}}},
	}
	results := tr.ChildrenByExecution()
	if len(results[3]) != 1 || len(results[7]) != 1 || results[3][0].Journal != "a" || results[7][0].Journal != "b" {
		t.Errorf("%+v", results)
	}
}
