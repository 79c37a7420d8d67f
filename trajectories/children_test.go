package trajectories_test

import (
	"testing"

	"github.com/minibench/mini/trajectories"
)

// Set-up commands may start children too.
func TestChildrenByExecution(t *testing.T) {
	made := func(record int, journal string) trajectories.RecordedExecution {
		c := trajectories.ToolCall{Name: "delegate", Details: []byte(`{"children":[{"child":1,"journal":"` + journal + `"}]}`)}
		return trajectories.RecordedExecution{Record: record, ToolCalls: []trajectories.RecordedToolCall{{Record: record - 1, ToolCall: c}}}
	}
	tr := trajectories.Transcript{
		SetupExecutions: []trajectories.RecordedExecution{made(3, "a")},
		Entries:         []trajectories.Entry{{Executions: []trajectories.RecordedExecution{made(7, "b")}}},
	}
	asked := tr.ChildrenByExecution()
	if len(asked[3]) != 1 || len(asked[7]) != 1 || asked[3][0].Journal != "a" || asked[7][0].Journal != "b" {
		t.Errorf("%+v", asked)
	}
}
