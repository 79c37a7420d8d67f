package trajectories_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

func TestFold(t *testing.T) {
	tr, err := trajectories.Fold(trajectories.Read(writeSample(t)))
	if err != nil {
		t.Fatal(err)
	}
	var causes []trajectories.Cause
	for _, e := range tr.Entries {
		causes = append(causes, e.Cause)
	}
	want := []trajectories.Cause{"prompt", "prompt", "reply", "format_error", "reply", "observation"}
	if diff := cmp.Diff(want, causes); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if got := tr.Header.InstanceID; got != "demo__a-1" {
		t.Errorf("instance %q", got)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if diff := cmp.Diff([]int{1, 2, -1}, entries); diff != "" {
		t.Errorf("observations of commands (-want +got):\n%s", diff)
	}
}

// TestContexts checks that a context is stored with the reply of its call, and
// that the context of a failed call is in Notes.
func TestContexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "a"})
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
