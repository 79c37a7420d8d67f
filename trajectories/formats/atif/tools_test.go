package atif_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// TestToolRoundTrip checks that writing and reading a document does not change mini-tool
// requests.
func TestToolRoundTrip(t *testing.T) {
	b := &journalBuilder{t: t}
	addTool := func(name string, args ...string) {
		b.add(trajectories.TypeTool, trajectories.ToolCall{
			Name: name, Args: args, Input: trajectories.Bytes("in\xff"), Dir: "/testbed", Output: trajectories.Bytes("out"), Errors: trajectories.Bytes("err"),
			ExitCode: 2, Start: b.nextTime(), Duration: trajectories.Seconds(time.Second), Details: json.RawMessage(`{"id":1}`),
		})
	}
	b.start()
	b.addCall(1, 0.25)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nmini-tool note add x; mini-tool notes\n```"}, "mini-tool note add x; mini-tool notes")
	addTool("note", "add", "x")
	addTool("notes")
	b.addExecution("mini-tool note add x; mini-tool notes", "out", 0)
	b.message(trajectories.CauseObservation, model.Message{Role: model.User, Content: "<output>out</output>"})
	b.addCall(2, 0.25)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nmini-tool goal list\n```"}, "mini-tool goal list")
	addTool("goal", "list")
	b.addExecution("mini-tool goal list", "diff", 0)
	b.addOutcome()
	tr := b.attempt()
	data, lost := write(t, tr, "")
	if len(lost) > 0 {
		t.Errorf("lost: %q", lost)
	}
	_, reread := readAttempt(t, "t.json", data)
	numbers := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Record" }, cmp.Ignore())
	for i, e := range tr.Entries {
		if diff := cmp.Diff(e.Executions, reread.Entries[i].Executions, numbers, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("entry %d (-want +got):\n%s", i, diff)
		}
	}
	if n := len(reread.Entries[2].Executions[0].ToolCalls); n != 2 {
		t.Errorf("%d calls", n)
	}
}
