package atif_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/atif"
)

// spoken is an attempt that says one thing, runs one command, and ends.
func spoken(t *testing.T, h trajectories.Header, command string, calls ...trajectories.ToolCall) *trajectories.Transcript {
	t.Helper()
	b := &book{t: t}
	h.Format, h.InstanceID, h.Attempt = trajectories.Format, "a__b-1", 1
	b.add(trajectories.TypeHeader, h)
	b.say(trajectories.CausePrompt, model.Message{Role: model.System, Content: "system"})
	b.say(trajectories.CausePrompt, model.Message{Role: model.User, Content: "task"})
	b.call(1, 0.5)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "do"}, command)
	for _, c := range calls {
		b.add(trajectories.TypeTool, c)
	}
	b.ran(command, "out", 0)
	b.say(trajectories.CauseObservation, model.Message{Role: model.User, Content: "out"})
	b.outcome()
	return b.transcript()
}

func asked(children ...int) trajectories.ToolCall {
	var list []trajectories.Child
	for _, n := range children {
		list = append(list, trajectories.Child{Child: n, Task: "x", Class: trajectories.Submitted, ExitStatus: "Submitted"})
	}
	details, _ := json.Marshal(map[string]any{"children": list})
	return trajectories.ToolCall{Name: "delegate", Details: details}
}

func child(n, of int) trajectories.Header {
	return trajectories.Header{Parent: &trajectories.Parent{Child: n, Of: of, Depth: 1 + min(of, 1), Step: 1, Task: "x"}}
}

func TestChildren(t *testing.T) {
	tr := spoken(t, trajectories.Header{}, "mini-tool delegate x; mini-tool delegate y", asked(1), asked(3))
	tr.Children = []*trajectories.Transcript{
		spoken(t, child(3, 0), "c"), spoken(t, child(1, 0), "mini-tool delegate z", asked(2)), spoken(t, child(2, 1), "b"),
	}
	data, lost := write(t, tr, "")
	if len(lost) > 0 {
		t.Errorf("lost: %v", lost)
	}
	for _, edition := range []atif.Edition{atif.Edition7, atif.Edition8} {
		if problems := atif.Check(data, edition); len(problems) > 0 {
			t.Errorf("%v: %v", edition, problems)
		}
	}
	var doc atif.Trajectory
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	var got []string
	refs := func(doc atif.Trajectory) {
		for _, s := range doc.Steps {
			if s.Observation == nil {
				continue
			}
			for _, r := range s.Observation.Results {
				for _, ref := range r.Refs {
					got = append(got, *ref.TrajectoryID)
				}
			}
		}
	}
	refs(doc)
	for _, sub := range doc.Subagents {
		got = append(got, "in "+*sub.TrajectoryID)
		refs(sub)
		for _, inner := range sub.Subagents {
			got = append(got, "in "+*inner.TrajectoryID)
		}
	}
	if want := []string{"child-1", "child-3", "in child-1", "child-2", "in child-2", "in child-3"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	f, back := gather(t, "a.json", data)
	for _, c := range f.Children {
		one, err := trajectories.Gather(c.All())
		if err != nil {
			t.Fatal(err)
		}
		back.Children = append(back.Children, one)
	}
	again, _ := write(t, back, "")
	if !bytes.Equal(again, data) && len(f.Children) == 3 {
		// The import record is the only thing that is new.
		var a, b any
		_, _ = json.Unmarshal(data, &a), json.Unmarshal(again, &b)
		dropImport(a)
		dropImport(b)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Error(diff)
		}
	}
	if len(f.Children) != 3 {
		t.Errorf("%d children came back", len(f.Children))
	}
}

// dropImport leaves out what tells of the way through a document: the import
// record, and the numbers of records behind it.
func dropImport(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"import", "record", "execution", "records", "id", "parent_id"} {
			delete(v, key)
		}
		for _, one := range v {
			dropImport(one)
		}
	case []any:
		for _, one := range v {
			dropImport(one)
		}
	}
}
