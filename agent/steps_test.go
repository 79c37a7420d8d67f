package agent_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Tool calls of a resumed attempt are those on its branch, up to the point
// where it resumes.
func TestResumeToolCalls(t *testing.T) {
	rec := newRecorder()
	put := func(typ trajectories.Type, parent int, data any) int {
		r, err := rec.Append(typ, data)
		if err != nil {
			t.Fatal(err)
		}
		if parent > 0 {
			rec.records[r.ID-1].Parent = parent
		}
		return r.ID
	}
	addMessage := func(role model.Role, cause trajectories.Cause, text string) int {
		return put(trajectories.TypeMessage, 0, trajectories.Message{Message: model.Message{Role: role, Content: text}, Cause: cause})
	}
	step := func(name string, observed bool) int {
		put(trajectories.TypeCall, 0, trajectories.Call{})
		last := addMessage(model.Assistant, trajectories.CauseReply, bash(name))
		put(trajectories.TypeTool, 0, trajectories.ToolCall{Name: name})
		if observed {
			put(trajectories.TypeExecution, 0, trajectories.Execution{Command: name})
			last = addMessage(model.User, trajectories.CauseObservation, name)
		}
		return last
	}
	addMessage(model.System, trajectories.CausePrompt, "s")
	addMessage(model.User, trajectories.CausePrompt, "t")
	kept := step("one", true)
	step("left behind", true)
	put(trajectories.TypeResume, kept, trajectories.Resume{Record: kept})
	step("two", true)
	step("not over", false)
	state, err := agent.ReadResumeState(rec.all())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range state.ToolCalls() {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"one", "two"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
