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

// TestToolRoundTrip checks that mini-tool requests survive writing and reading a
// document.
func TestToolRoundTrip(t *testing.T) {
	b := &journalBuilder{t: t}
	asks := func(name string, args ...string) {
		b.add(trajectories.TypeTool, trajectories.ToolCall{
			Name: name, Args: args, Input: trajectories.Bytes("in\xff"), Dir: "/testbed", Output: trajectories.Bytes("out"), Errors: trajectories.Bytes("err"),
			ExitCode: 2, Start: b.nextTime(), Duration: trajectories.Seconds(time.Second), Details: json.RawMessage(`{"id":1}`),
		})
	}
	b.start()
	b.call(1, 0.25)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nmini-tool note add x; mini-tool notes\n```"}, "mini-tool note add x; mini-tool notes")
	asks("note", "add", "x")
	asks("notes")
	b.addExecution("mini-tool note add x; mini-tool notes", "out", 0)
	b.say(trajectories.CauseObservation, model.Message{Role: model.User, Content: "<output>out</output>"})
	b.call(2, 0.25)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nmini-tool goal list\n```"}, "mini-tool goal list")
	asks("goal", "list")
	b.addExecution("mini-tool goal list", "diff", 0)
	b.outcome()
	tr := b.transcript()
	data, lost := write(t, tr, "")
	if len(lost) > 0 {
		t.Errorf("lost: %q", lost)
	}
	_, again := transcriptOf(t, "t.json", data)
	numbers := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Record" }, cmp.Ignore())
	for i, e := range tr.Entries {
		if diff := cmp.Diff(e.Executions, again.Entries[i].Executions, numbers, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("entry %d (-want +got):\n%s", i, diff)
		}
	}
	if n := len(again.Entries[2].Executions[0].ToolCalls); n != 2 {
		t.Errorf("%d calls", n)
	}
}
