package atif_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// shortAttempt returns an attempt with one message and one command.
func shortAttempt(t *testing.T, h trajectories.Header, command string, calls ...trajectories.ToolCall) *trajectories.Attempt {
	t.Helper()
	b := &journalBuilder{t: t}
	h.Format, h.InstanceID, h.Attempt = trajectories.Format, "a__b-1", 1
	b.add(trajectories.TypeHeader, h)
	b.message(trajectories.CausePrompt, model.Message{Role: model.System, Content: "system"})
	b.message(trajectories.CausePrompt, model.Message{Role: model.User, Content: "task"})
	b.addCall(1, 0.5)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "do"}, command)
	for _, c := range calls {
		b.add(trajectories.TypeTool, c)
	}
	b.addExecution(command, "out", 0)
	b.message(trajectories.CauseObservation, model.Message{Role: model.User, Content: "out"})
	b.addOutcome()
	return b.attempt()
}

// childTool returns a tool call that started the given children.
func childTool(children ...int) trajectories.ToolCall {
	var list []trajectories.ChildResult
	for _, n := range children {
		list = append(list, trajectories.ChildResult{Child: n, Task: "x", Class: trajectories.Submitted, ExitStatus: "Submitted"})
	}
	details, _ := json.Marshal(map[string]any{"children": list})
	return trajectories.ToolCall{Name: "delegate", Details: details}
}

// childHeader returns the header of child n, which parentChild started.
func childHeader(n, parentChild int) trajectories.Header {
	return trajectories.Header{Parent: &trajectories.Parent{Child: n, ParentChild: parentChild, Depth: 1 + min(parentChild, 1), Step: 1, Task: "x"}}
}

func TestChildren(t *testing.T) {
	tr := shortAttempt(t, trajectories.Header{}, "mini-tool delegate x; mini-tool delegate y", childTool(1), childTool(3))
	tr.Children = []*trajectories.Attempt{
		shortAttempt(t, childHeader(3, 0), "c"), shortAttempt(t, childHeader(1, 0), "mini-tool delegate z", childTool(2)), shortAttempt(t, childHeader(2, 1), "b"),
	}
	data, losses := write(t, tr, "")
	if len(losses) > 0 {
		t.Errorf("lost: %v", losses)
	}
	if err := validate(t, data); err != nil {
		t.Error(err)
	}
	var doc validTrajectory
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	var got []string
	refs := func(doc validTrajectory) {
		for _, s := range doc.Steps {
			for _, r := range s.Observation.Results {
				for _, ref := range r.Refs {
					got = append(got, ref.ID)
				}
			}
		}
	}
	refs(doc)
	for _, sub := range doc.Subagents {
		got = append(got, "in "+sub.ID)
		refs(sub)
		for _, inner := range sub.Subagents {
			got = append(got, "in "+inner.ID)
		}
	}
	if want := []string{"child-1", "child-3", "in child-1", "child-2", "in child-2", "in child-3"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	f, restored := readAttempt(t, "a.json", data)
	for _, c := range f.Children {
		tr2, err := trajectories.Fold(c)
		if err != nil {
			t.Fatal(err)
		}
		restored.Children = append(restored.Children, tr2)
	}
	rewritten, _ := write(t, restored, "")
	if !bytes.Equal(rewritten, data) && len(f.Children) == 3 {
		// Reading may only add the import record.
		var a, b any
		_, _ = json.Unmarshal(data, &a), json.Unmarshal(rewritten, &b)
		dropImport(a)
		dropImport(b)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Error(diff)
		}
	}
	if len(f.Children) != 3 {
		t.Errorf("%d children after reading", len(f.Children))
	}
}

// dropImport removes the import record, and all record IDs, which it shifts.
func dropImport(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"import", "record", "execution", "records", "id", "parent_id"} {
			delete(v, key)
		}
		for _, element := range v {
			dropImport(element)
		}
	case []any:
		for _, element := range v {
			dropImport(element)
		}
	}
}
