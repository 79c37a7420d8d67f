package trajectories_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// writeToolJournal writes a journal with tool requests.
func writeToolJournal(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	addTool := func(name string, args ...string) {
		add(t, j, trajectories.TypeTool, trajectories.ToolCall{Name: name, Args: args, Output: trajectories.Bytes(name + "\xff"), Details: json.RawMessage(`{"n":1}`)})
	}
	addExecution := func(command string, byUser bool) {
		add(t, j, trajectories.TypeExecution, trajectories.Execution{Command: command, ByUser: byUser})
	}
	addMessage := func(role model.Role, c trajectories.Cause, actions ...string) {
		add(t, j, trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: role}, Cause: c, Actions: actions})
	}
	addTool("setup")
	addExecution("mini-tool setup", false)
	addMessage(model.Assistant, trajectories.CauseReply, "one", "two")
	addTool("note", "add", "x")
	addTool("notes")
	addExecution("one", false)
	addMessage(model.User, trajectories.CauseObservation)
	addExecution("two", false)
	addMessage(model.User, trajectories.CauseObservation)
	addMessage(model.Assistant, trajectories.CauseReply, "three")
	addTool("lost") // interrupted
	add(t, j, trajectories.TypeResume, trajectories.Resume{Record: 11})
	addTool("found")
	addExecution("three", false)
	addMessage(model.User, trajectories.CauseObservation)
	addTool("own")
	addExecution("! mini-tool own", true)
	addMessage(model.User, trajectories.CauseUserCommand, "mini-tool own")
	addTool("last")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// toolsByCommand returns a line per command with its requests, and a line per other record.
func toolsByCommand(tr *trajectories.Attempt) string {
	var all []string
	describe := func(executions []trajectories.Execution) {
		for _, r := range executions {
			line := r.Command + ":"
			for _, c := range r.ToolCalls {
				line += " " + strings.Join(append([]string{c.Name}, c.Args...), ",")
			}
			all = append(all, line)
		}
	}
	describe(tr.SetupExecutions)
	for _, e := range tr.Entries {
		describe(e.Executions)
	}
	for _, r := range tr.Notes {
		all = append(all, "other: "+string(r.Type))
	}
	return strings.Join(all, "\n")
}

func TestToolCalls(t *testing.T) {
	tr, err := trajectories.Fold(trajectories.Read(writeToolJournal(t)))
	if err != nil {
		t.Fatal(err)
	}
	commands := "mini-tool setup: setup\none: note,add,x notes\ntwo:\nthree: found\n! mini-tool own: own\nother: tool\nother: resume\nother: tool"
	if diff := cmp.Diff(commands, toolsByCommand(tr)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := trajectories.Fold(tr.Records())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(commands, toolsByCommand(again)); diff != "" {
		t.Errorf("made again (-want +got):\n%s", diff)
	}
	same := cmpopts.EquateEmpty()
	if diff := cmp.Diff(tr.Entries[0].Executions, again.Entries[0].Executions, same); diff != "" {
		t.Errorf("made again (-want +got):\n%s", diff)
	}
}

// TestTrajTools checks that requests are in the extra of the observation only.
func TestTrajTools(t *testing.T) {
	journal := writeToolJournal(t)
	file := filepath.Join(t.TempDir(), "t")
	if err := trajectories.WriteTrajFile(journal, file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var traj struct {
		Messages []struct {
			Extra struct {
				Tools []trajectories.ToolCall `json:"tools"`
			} `json:"extra"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(data, &traj); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range traj.Messages {
		line := ""
		for _, c := range m.Extra.Tools {
			line += " " + c.Name
		}
		got = append(got, line)
	}
	if diff := cmp.Diff([]string{"", " note notes", "", "", " found", " own"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := loadTraj(file); err != nil {
		t.Error(err)
	}
}
