package trajectories

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/model"
)

// TestRecords checks that Fold restores an attempt from its records.
func TestRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := Create(path, Header{InstanceID: "a", ModelName: "m"})
	if err != nil {
		t.Fatal(err)
	}
	reply := Message{Message: model.Message{Role: model.Assistant, Content: "r"}, Cause: CauseReply, Actions: []string{"one", "two", "three"}}
	observation := Message{Message: model.Message{Role: model.User}, Cause: CauseObservation}
	for _, r := range []struct {
		t    Type
		data any
	}{
		{TypeExecution, Execution{Command: "setup"}},
		{TypeMessage, Message{Message: model.Message{Role: model.User, Content: "p"}, Cause: CausePrompt}},
		{TypeCall, Call{Cost: 1}},
		{TypeMessage, reply},
		{TypeExecution, Execution{Command: "one", ExitCode: 3}},
		{TypeMessage, observation},
		{TypeExecution, Execution{Command: "two"}},
		{TypeMessage, observation},
		{TypeExecution, Execution{Command: "three"}}, // not reported
		{TypeContext, PromptContext{Sent: []ContextPart{{From: 3, To: 3}}}},
		{TypeCall, Call{Cost: 2}},
		{TypeMessage, reply},
		{TypeCall, Call{Error: "503"}},
		{TypeDiff, Diff{Base: "b"}},
		{TypeOutcome, Outcome{Class: Submitted, Submission: Bytes("x")}},
	} {
		if _, err := j.Append(r.t, r.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := Fold(Read(path))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Fold(want.Records())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Attempt{}), cmpopts.IgnoreFields(Attempt{}, "Totals")); diff != "" {
		t.Errorf("attempt (-journal +again):\n%s", diff)
	}
}
