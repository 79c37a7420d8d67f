package trajectories_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

func TestFold(t *testing.T) {
	tr, err := trajectories.Fold(trajectories.Read(writeSample(t)))
	require.NoError(t, err)
	var causes []trajectories.Cause
	for _, e := range tr.Entries {
		causes = append(causes, e.Cause)
	}
	want := []trajectories.Cause{"prompt", "prompt", "reply", "format_error", "reply", "observation"}
	assert.Equal(t, want, causes, "entries")
	assert.Equal(t, "demo__a-1", tr.Header.InstanceID, "instance")
	bad, good := tr.Entries[2], tr.Entries[4]
	if bad.Call == nil || bad.Call.Cost != 0.25 || bad.Executions != nil {
		t.Errorf("the reply with the format error: %+v", bad)
	}
	if good.Call == nil || good.Call.Cost != 0.5 || len(good.Executions) != 1 || good.Executions[0].ObservationEntry != 5 || good.Executions[0].Command != "cat data" {
		t.Errorf("the reply with a command: %+v", good)
	}
	if tr.Outcome == nil || tr.Outcome.ExitStatus != "Submitted" {
		t.Errorf("outcome %+v", tr.Outcome)
	}
}

// TestExecutions tests replies with several calls, a failed call, and a resumed
// attempt.
func TestExecutions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "a"})
	require.NoError(t, err)
	reply := trajectories.Message{
		Message: model.Message{Role: model.Assistant}, Cause: trajectories.CauseReply, Actions: []string{"one", "two", "three"},
	}
	observation := trajectories.Message{Message: model.Message{Role: model.Tool}, Cause: trajectories.CauseObservation}
	add(t, j, trajectories.TypeExecution, trajectories.Execution{Command: "pip install"})
	add(t, j, trajectories.TypeCall, trajectories.Call{Error: "429"})
	add(t, j, trajectories.TypeCall, trajectories.Call{Cost: 1})
	add(t, j, trajectories.TypeMessage, reply)
	for _, command := range []string{"one", "two"} {
		add(t, j, trajectories.TypeExecution, trajectories.Execution{Command: command})
		add(t, j, trajectories.TypeMessage, observation)
	}
	add(t, j, trajectories.TypeDiff, trajectories.Diff{Patch: trajectories.Bytes("early")})
	add(t, j, trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Interrupted})
	add(t, j, trajectories.TypeResume, trajectories.Resume{Record: 8})
	add(t, j, trajectories.TypeExecution, trajectories.Execution{Command: "three"})
	tr, err := trajectories.Fold(trajectories.Read(path))
	require.NoError(t, err)
	if len(tr.SetupExecutions) != 1 || tr.SetupExecutions[0].Command != "pip install" || tr.SetupExecutions[0].ObservationEntry != -1 {
		t.Errorf("set-up %+v", tr.SetupExecutions)
	}
	if len(tr.FailedCalls) != 1 || tr.FailedCalls[0].Error != "429" {
		t.Errorf("failed calls %+v", tr.FailedCalls)
	}
	if tr.Outcome != nil || tr.Diff != nil {
		t.Errorf("an end that was none: %+v %+v", tr.Outcome, tr.Diff)
	}
	var entries []int
	for _, ran := range tr.Entries[0].Executions {
		entries = append(entries, ran.ObservationEntry)
	}
	assert.Equal(t, []int{1, 2, -1}, entries, "observations of commands")
}

// TestContexts checks that a context is stored with the reply of its call, and
// that the context of a failed call is in Notes.
func TestContexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "a"})
	require.NoError(t, err)
	sent := func(record int) trajectories.PromptContext {
		return trajectories.PromptContext{Sent: []trajectories.ContextPart{{From: record, To: record}}}
	}
	reply := trajectories.Message{Message: model.Message{Role: model.Assistant}, Cause: trajectories.CauseReply}
	add(t, j, trajectories.TypeScrub, trajectories.Scrub{OK: true})
	add(t, j, trajectories.TypeContext, sent(1))
	add(t, j, trajectories.TypeCall, trajectories.Call{Error: "500"})
	add(t, j, trajectories.TypeContext, sent(2))
	add(t, j, trajectories.TypeCall, trajectories.Call{Cost: 1})
	add(t, j, trajectories.TypeMessage, reply)
	add(t, j, trajectories.TypeCall, trajectories.Call{Cost: 2})
	add(t, j, trajectories.TypeMessage, reply)
	tr, err := trajectories.Fold(trajectories.Read(path))
	require.NoError(t, err)
	if c := tr.Entries[0].Context; c == nil || c.Sent[0].From != 2 || tr.Entries[1].Context != nil {
		t.Errorf("contexts %v, %v", c, tr.Entries[1].Context)
	}
	var others []int
	for _, r := range tr.Notes {
		others = append(others, r.ID)
	}
	if diff := cmp.Diff([]int{2, 3}, others); diff != "" || len(tr.FailedCalls) != 1 {
		t.Errorf("others (-want +got):\n%s", diff)
	}
}

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
