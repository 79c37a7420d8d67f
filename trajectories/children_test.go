package trajectories_test

import (
	"testing"

	"github.com/minibench/mini/trajectories"
)

// Commands of the set-up are asked by, too.
func TestAsked(t *testing.T) {
	made := func(record int, journal string) trajectories.Ran {
		c := trajectories.ToolCall{Name: "delegate", Details: []byte(`{"children":[{"child":1,"journal":"` + journal + `"}]}`)}
		return trajectories.Ran{Record: record, Tools: []trajectories.Called{{Record: record - 1, ToolCall: c}}}
	}
	tr := trajectories.Transcript{
		Setup:   []trajectories.Ran{made(3, "a")},
		Entries: []trajectories.Entry{{Ran: []trajectories.Ran{made(7, "b")}}},
	}
	asked := tr.Asked()
	if len(asked[3]) != 1 || len(asked[7]) != 1 || asked[3][0].Journal != "a" || asked[7][0].Journal != "b" {
		t.Errorf("%+v", asked)
	}
}
