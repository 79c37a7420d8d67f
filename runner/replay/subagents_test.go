package replay_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/trajectories"
)

// child writes the journal of a subagent with commands and their outputs.
func child(t *testing.T, ran ...trajectories.Execution) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "x", Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range ran {
		x.Bytes = int64(len(x.Output))
		for _, r := range []struct {
			t    trajectories.Type
			data any
		}{
			{trajectories.TypeCall, trajectories.Call{}},
			{trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: model.Assistant}, Cause: trajectories.CauseReply, Actions: []string{x.Command}}},
			{trajectories.TypeExecution, x},
			{trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: model.User}, Cause: trajectories.CauseObservation}},
		} {
			if _, err := j.Append(r.t, r.data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func did(command, output string) trajectories.Execution {
	return trajectories.Execution{Command: command, Output: trajectories.Bytes(output)}
}

// TestSubagentReplayer reruns the commands of subagents and reports differences.
func TestSubagentReplayer(t *testing.T) {
	sandbox, _ := inMemory(t)
	children := replay.SubagentReplayer{Command: command, Journals: map[int]string{
		1: child(t, did("echo new > b", ""), did("cat a.txt", "one\n")),
		2: child(t, did("echo other; test -e c", "another\n")),
		3: filepath.Join(t.TempDir(), "gone"),
	}}
	for name, c := range map[string]struct{ details, want string }{
		"as it was":   {`{"children":[{"child":1}]}`, ""},
		"none":        {`{"id":7}`, ""},
		"otherwise":   {`{"children":[{"child":1},{"child":2}]}`, "subagent 2: step 1 diverged"},
		"not there":   {`{"children":[{"child":9}]}`, "no journal of subagent 9"},
		"not to read": {`{"children":[{"child":3}]}`, "read subagent 3"},
	} {
		err := children.Rerun(t.Context(), trajectories.ToolCall{Details: []byte(c.details)}, env.ToolRequest{Nested: sandbox})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if res, err := sandbox.Execute(t.Context(), command("cat b")); err != nil || string(res.Output) != "new\n" {
		t.Errorf("the child's file has %q, %v", res.Output, err)
	}
}
