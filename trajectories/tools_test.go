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

// asking is a journal whose commands ask for tools.
func asking(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	asks := func(name string, args ...string) {
		add(t, j, trajectories.TypeTool, trajectories.ToolCall{Name: name, Args: args, Output: trajectories.Bytes(name + "\xff"), Details: json.RawMessage(`{"n":1}`)})
	}
	ran := func(command string, person bool) {
		add(t, j, trajectories.TypeExecution, trajectories.Execution{Command: command, Person: person})
	}
	say := func(role model.Role, c trajectories.Cause, actions ...string) {
		add(t, j, trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: role}, Cause: c, Actions: actions})
	}
	asks("setup")
	ran("mini-tool setup", false)
	say(model.Assistant, trajectories.CauseReply, "one", "two")
	asks("note", "add", "x")
	asks("notes")
	ran("one", false)
	say(model.User, trajectories.CauseObservation)
	ran("two", false)
	say(model.User, trajectories.CauseObservation)
	say(model.Assistant, trajectories.CauseReply, "three")
	asks("lost") // in mid-command
	add(t, j, trajectories.TypeResume, trajectories.Resume{Record: 11})
	asks("found")
	ran("three", false)
	say(model.User, trajectories.CauseObservation)
	asks("own")
	ran("! mini-tool own", true)
	say(model.User, trajectories.CauseCommand, "mini-tool own")
	asks("last")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// belongs says which calls belong to which command.
func belongs(tr *trajectories.Transcript) string {
	var all []string
	list := func(ran []trajectories.Ran) {
		for _, r := range ran {
			line := r.Command + ":"
			for _, c := range r.Tools {
				line += " " + strings.Join(append([]string{c.Name}, c.Args...), ",")
			}
			all = append(all, line)
		}
	}
	list(tr.Setup)
	for _, e := range tr.Entries {
		list(e.Ran)
	}
	for _, r := range tr.Others {
		all = append(all, "other: "+string(r.Type))
	}
	return strings.Join(all, "\n")
}

func TestGatherTools(t *testing.T) {
	tr, err := trajectories.Gather(trajectories.Read(asking(t)))
	if err != nil {
		t.Fatal(err)
	}
	commands := "mini-tool setup: setup\none: note,add,x notes\ntwo:\nthree: found\n! mini-tool own: own"
	if diff := cmp.Diff(commands+"\nother: tool\nother: resume\nother: tool", belongs(tr)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := trajectories.Gather(tr.Records())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(commands, belongs(again)); diff != "" {
		t.Errorf("made again (-want +got):\n%s", diff)
	}
	same := cmpopts.EquateEmpty()
	if diff := cmp.Diff(tr.Entries[0].Ran, again.Entries[0].Ran, same); diff != "" {
		t.Errorf("made again (-want +got):\n%s", diff)
	}
}

// TestDeriveTools has the calls in the extra of what the command printed, and
// nowhere else.
func TestDeriveTools(t *testing.T) {
	journal := asking(t)
	file := filepath.Join(t.TempDir(), "t")
	if err := trajectories.Derive(journal, file); err != nil {
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
	if _, err := load(file); err != nil {
		t.Error(err)
	}
}
