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

// TestCalledRoundTrip has what commands asked for by mini-tool in the document, and
// again in the journal that is made of it.
func TestCalledRoundTrip(t *testing.T) {
	b := &book{t: t}
	asks := func(name string, args ...string) {
		b.add(trajectories.TypeTool, trajectories.ToolCall{
			Name: name, Args: args, Input: trajectories.Bytes("in\xff"), Dir: "/testbed", Output: trajectories.Bytes("out"), Errors: trajectories.Bytes("err"),
			ExitCode: 2, Start: b.now(), Duration: trajectories.Seconds(time.Second), Details: json.RawMessage(`{"id":1}`),
		})
	}
	b.begin()
	b.call(1, 0.25)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nmini-tool note add x; mini-tool notes\n```"}, "mini-tool note add x; mini-tool notes")
	asks("note", "add", "x")
	asks("notes")
	b.ran("mini-tool note add x; mini-tool notes", "out", 0)
	b.say(trajectories.CauseObservation, model.Message{Role: model.User, Content: "<output>out</output>"})
	b.call(2, 0.25)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nmini-tool goal list\n```"}, "mini-tool goal list")
	asks("goal", "list")
	b.ran("mini-tool goal list", "diff", 0)
	b.outcome()
	tr := b.transcript()
	data, lost := write(t, tr, "")
	if len(lost) > 0 {
		t.Errorf("lost: %q", lost)
	}
	_, again := gather(t, "t.json", data)
	numbers := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Record" }, cmp.Ignore())
	for i, e := range tr.Entries {
		if diff := cmp.Diff(e.Ran, again.Entries[i].Ran, numbers, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("entry %d (-want +got):\n%s", i, diff)
		}
	}
	if n := len(again.Entries[2].Ran[0].Tools); n != 2 {
		t.Errorf("%d calls", n)
	}
}
