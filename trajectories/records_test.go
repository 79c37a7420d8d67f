package trajectories

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
)

// TestRecords checks that Fold restores an attempt from its records.
func TestRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := Create(path, Header{InstanceID: "a", ModelName: "m"})
	require.NoError(t, err)
	reply := Message{Message: model.Message{Role: model.Assistant, Content: "r"}, Cause: CauseReply, Actions: []string{"one", "two", "three"}}
	full := Execution{
		Command: "one", Output: Bytes("caf\xe9\x00 <text>"), Head: 3, Truncated: true, Bytes: 70, Chars: 60, ExitCode: 4, Signal: 5,
		Start: time.Now().UTC().Truncate(time.Millisecond), Duration: Seconds(time.Second), TimedOut: true, Killed: 6, Survivors: 7,
		KilledEarlierCommands: true, Background: []Process{{PID: 8, Name: "n"}}, OOMKilled: 9, Exception: "e",
	}
	observation := Message{Message: model.Message{Role: model.User}, Cause: CauseObservation}
	for _, r := range []struct {
		t    Type
		data any
	}{
		{TypeExecution, Execution{Command: "setup"}},
		{TypeMessage, Message{Message: model.Message{Role: model.User, Content: "p"}, Cause: CausePrompt}},
		{TypeCall, Call{Cost: 1}},
		{TypeMessage, reply},
		{TypeExecution, full},
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
		_, err := j.Append(r.t, r.data)
		require.NoError(t, err)
	}
	require.NoError(t, j.Close())
	want, err := Fold(Read(path))
	require.NoError(t, err)
	read := want.Entries[1].Executions[0]
	read.Record, read.ObservationEntry = 0, 0
	assert.Equal(t, full, read, "an execution")
	got, err := Fold(want.Records())
	require.NoError(t, err)
	assert.NoDiff(t, cmp.Diff(want, got, cmpopts.IgnoreUnexported(Attempt{}), cmpopts.IgnoreFields(Attempt{}, "Totals")), "attempt (-journal +again)")
}
