package browser

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// withUserActions writes the journal of an attempt with messages, commands and decisions of a
// user. It returns its path.
func withUserActions(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "talk", Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	add := func(kind trajectories.Type, data any) {
		if _, err := j.Append(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	addMessage := func(cause trajectories.Cause, text string, actions ...string) {
		m := trajectories.Message{Cause: cause, Actions: actions}
		m.Role, m.Content = model.User, text
		if cause == trajectories.CauseReply {
			m.Role = model.Assistant
			add(trajectories.TypeCall, trajectories.Call{RequestCount: 1})
		}
		add(trajectories.TypeMessage, m)
	}
	addDecision := func(command string, decision trajectories.Decision) {
		add(trajectories.TypeDecision, trajectories.CommandDecision{Command: command, Decision: decision})
	}
	addExecution := func(command, output string, byUser bool) {
		add(trajectories.TypeExecution, trajectories.Execution{
			Command: command, Output: trajectories.Bytes(output), Bytes: int64(len(output)), ByUser: byUser,
		})
	}
	addMessage(trajectories.CausePrompt, "Do it.")
	addMessage(trajectories.CauseReply, "I look.", "ls")
	addDecision("ls", trajectories.Decision{Action: trajectories.Allow, By: "user", Previous: []trajectories.Decision{
		{Action: trajectories.Ask, By: "rule", Rule: "lists\x1b]0;x\x07", Reason: "it lists"},
	}})
	addExecution("ls", "files\n", false)
	addMessage(trajectories.CauseObservation, "files")
	addExecution("make mine", "my needle\n", true)
	addMessage(trajectories.CauseUserCommand, "The user ran a command: make mine: my needle", "make mine")
	addMessage(trajectories.CauseSteer, "Rather look there.")
	addMessage(trajectories.CauseReply, "I look there.", "rm -r there")
	addDecision("rm -r there", trajectories.Decision{Action: trajectories.Deny, By: "user", Reason: "keep it"})
	addMessage(trajectories.CauseRejection, "The user did not let this command run.")
	addMessage(trajectories.CauseInterruption, "Wait a bit.")
	add(trajectories.TypeLimits, trajectories.Limits{Steps: 20})
	addMessage(trajectories.CauseReply, "I look again.", "cat there")
	addExecution("cat there", "last needle\n", false)
	addMessage(trajectories.CauseObservation, "last needle")
	addMessage(trajectories.CauseFollowUp, "Now the rest.")
	return path
}

// The user's messages, commands and decisions appear once, in order.
func TestUserActions(t *testing.T) {
	path := withUserActions(t)
	text := printText(t, Options{Path: path})
	at := 0
	for _, want := range []string{
		"=== step 1/3", "$ ls", "decision: allow, by user; after ask, by rule lists", ": it lists\n",
		"--- command run by the user", "$ make mine", "my needle",
		"--- user message", "Rather look there.",
		"=== step 2/3", "decision: deny, by user: keep it", "--- rejected", "--- user message after an interruption", "Wait a bit.",
		"limits: raised by the user: up to 20 steps, no cost limit",
		"=== step 3/3", "--- user message after the submission", "Now the rest.",
	} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("no %q after byte %d of\n%s", want, at, text)
		}
		at += i + len(want)
	}
	if strings.Contains(text, "The user ran a command") || strings.Contains(text, "\x1b") || strings.Contains(text, "\a") {
		t.Errorf("a user's command is shown twice, or the text is not sanitized:\n%s", text)
	}
	m := browse(t, path, 80, 24)
	press(m, "x")
	has(t, m, "step 2/3")
}
