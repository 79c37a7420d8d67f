package timeline_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// attempt builds records. Its methods add records, numbered from 1, and return IDs.
type attempt struct {
	t       *testing.T
	records []trajectories.Record
}

func (a *attempt) timeline() *timeline.Timeline {
	a.t.Helper()
	tl, err := timeline.Build(func(yield func(trajectories.Record, error) bool) {
		for _, r := range a.records {
			if !yield(r, nil) {
				return
			}
		}
	})
	require.NoError(a.t, err)
	return tl
}

func (a *attempt) add(parent int, typ trajectories.Type, data any) int {
	a.t.Helper()
	text, err := json.Marshal(data)
	require.NoError(a.t, err)
	a.records = append(a.records, trajectories.Record{ID: len(a.records) + 1, Parent: parent, Type: typ, Data: text})
	return len(a.records)
}

func (a *attempt) addMessage(c trajectories.Cause, text string, actions ...string) int {
	a.t.Helper()
	m := trajectories.Message{Cause: c, Actions: actions}
	m.Role, m.Content = model.User, text
	if c == trajectories.CauseReply {
		m.Role = model.Assistant
		a.add(0, trajectories.TypeCall, trajectories.Call{Cost: 0.25, Usage: model.Usage{Prompt: 10}})
	}
	return a.add(0, trajectories.TypeMessage, m)
}

func (a *attempt) addExecution(x trajectories.Execution) int {
	a.t.Helper()
	return a.add(0, trajectories.TypeExecution, x)
}

// text returns the steps and their items, one per line.
func (a *attempt) text() string {
	tl := a.timeline()
	var b strings.Builder
	for _, s := range tl.AllSteps() {
		b.WriteString(strings.Join(append([]string{"=", s.Name}, tl.StepStats(s)...), " ") + "\n")
		for item := range s.AllItems() {
			line := strings.TrimSpace(item.Label + " | " + item.Text)
			if item.Kind == timeline.Command && item.Execution == nil {
				line += " (no result)"
			}
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// checkText checks that got consists of lines.
func checkText(t *testing.T, got string, lines ...string) {
	t.Helper()
	if text := strings.Join(lines, "\n") + "\n"; got != text {
		t.Errorf("got\n%swant\n%s", got, text)
	}
}

// TestCommands checks that results belong to the commands of a reply in order, that tool
// requests are shown with their command, and that observations are not shown again.
func TestCommands(t *testing.T) {
	a := &attempt{t: t}
	a.addExecution(trajectories.Execution{Command: "conda activate"})
	a.addMessage(trajectories.CausePrompt, "Do it.")
	a.addMessage(trajectories.CauseReply, "I look.", "ls", "cat x", "rm x")
	a.add(0, trajectories.TypeTool, trajectories.ToolCall{Name: "note", Args: []string{"a"}, ExitCode: 2, Errors: []byte("no")})
	a.addExecution(trajectories.Execution{Command: "ls", Output: []byte("x\n")})
	a.addMessage(trajectories.CauseObservation, "x")
	a.addExecution(trajectories.Execution{Command: "mine", ByUser: true})
	a.addExecution(trajectories.Execution{Command: "cat x", Output: []byte("headtail"), Head: 4, Truncated: true, Bytes: 1008, ExitCode: 1, TimedOut: true})
	a.addMessage(trajectories.CauseUserCommand, "The user ran mine.")
	a.addMessage(trajectories.CauseObservation, "headtail")
	a.addMessage(trajectories.CauseObservation, "of another command")
	checkText(t, a.text(), "= prompts", "start-up command | conda activate", "| exit 0, no output", "user prompt | Do it.",
		"=  exit 0, exit 1, exit 0 $0.25 so far 10 tokens so far 10 in, 0 out", "| I look.",
		"| ls", "| exit 0, 2 bytes", "| x", "request: mini-tool note a | exit 2, 0s, 0 bytes", "| no",
		"| cat x", "| exit 1, timed out, 8 bytes of 1008, the middle left out", "| head", "| ... 1000 bytes left out ...", "| tail",
		"| rm x (no result)", "command run by the user | mine", "| exit 0, no output", "observation | of another command")
	if tl := a.timeline(); !tl.Steps[1].Failed || tl.Steps[0].Failed {
		t.Error("the step with an error is not marked as failed")
	}
}

// TestResume checks that abandoned records are removed, except for problems and costs.
func TestResume(t *testing.T) {
	a := &attempt{t: t}
	a.addMessage(trajectories.CausePrompt, "Do it.")
	a.addMessage(trajectories.CauseReply, "one", "ls")
	a.addExecution(trajectories.Execution{Command: "ls", Output: []byte("old")})
	first := a.addMessage(trajectories.CauseObservation, "old")
	a.addMessage(trajectories.CauseReply, "two", "cat")
	a.addExecution(trajectories.Execution{Command: "cat", Output: []byte("old")})
	a.add(0, trajectories.TypeCall, trajectories.Call{Error: "unreachable"})
	a.add(0, trajectories.TypeTool, trajectories.ToolCall{Name: "late"})
	a.add(0, trajectories.TypeDiff, trajectories.Diff{Patch: []byte("x")})
	a.add(0, trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Provider})
	a.add(first, trajectories.TypeResume, trajectories.Resume{})
	if tl := a.timeline(); tl.Outcome != nil || tl.End != nil || tl.ReplyCount() != 1 {
		t.Errorf("the end is kept: %s", a.text())
	}
	a.addMessage(trajectories.CauseReply, "three", "cat")
	a.add(0, trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Submitted, ExitStatus: "Submitted", Steps: 3, Cost: 0.75, Submission: []byte("diff")})
	checkText(t, a.text(), "= prompts", "user prompt | Do it.",
		"=  exit 0 $0.25 so far 10 tokens so far 10 in, 0 out", "| one", "| ls", "| exit 0, 3 bytes", "| old",
		"| model call failed: unreachable", "| the attempt was interrupted and resumed",
		"=  $0.75 so far 30 tokens so far 10 in, 0 out", "| three", "| cat (no result)",
		"= end 3 steps $0.75", "| outcome: submitted, Submitted", "| a patch of 4 bytes")

	// If the result of a command was abandoned, its new result replaces it.
	b := &attempt{t: t}
	b.addMessage(trajectories.CausePrompt, "Do it.")
	reply := b.addMessage(trajectories.CauseReply, "one", "ls")
	b.addExecution(trajectories.Execution{Command: "ls", Output: []byte("old")})
	b.addMessage(trajectories.CauseObservation, "old")
	b.add(reply, trajectories.TypeResume, trajectories.Resume{})
	b.addExecution(trajectories.Execution{Command: "ls", Output: []byte("new")})
	b.addMessage(trajectories.CauseObservation, "new")
	if text := b.text(); strings.Contains(text, "old") || strings.Count(text, "new") != 1 {
		t.Errorf("it is\n%s", text)
	}
}

// TestUnfinished checks that an attempt without an outcome shows what no later record
// belongs to, and that resuming it keeps a command of the user.
func TestUnfinished(t *testing.T) {
	a := &attempt{t: t}
	a.addMessage(trajectories.CausePrompt, "Do it.")
	a.addExecution(trajectories.Execution{Command: "mine", ByUser: true})
	last := a.add(0, trajectories.TypeCompaction, trajectories.Compaction{Policy: "elide"})
	a.add(0, trajectories.TypeCall, trajectories.Call{Error: "unreachable", Cost: 1})
	lines := []string{
		"= prompts", "user prompt | Do it.", "command run by the user | mine", "| exit 0, no output",
		"| compaction (elide): the model is now shown 0 messages instead of 0, about 0 tokens instead of 0",
		"| model call failed: unreachable",
	}
	checkText(t, a.text(), lines...)
	a.add(last, trajectories.TypeResume, trajectories.Resume{})
	checkText(t, a.text(), append(lines, "| the attempt was interrupted and resumed")...)
	assert.Equal(t, 1, a.timeline().Cost, "the cost")
}

func TestPatch(t *testing.T) {
	patch := []byte("diff")
	for want, a := range map[string]trajectories.Attempt{
		"the submission": {Outcome: &trajectories.Outcome{Submission: patch, Source: trajectories.SourceSubmitted}},
		"the submission: the working tree diff, taken by mini at the end":                        {Outcome: &trajectories.Outcome{Submission: patch, Autosubmitted: true}},
		"the submission: the working tree diff, since the agent submitted no patch that applies": {Outcome: &trajectories.Outcome{Submission: patch, Source: trajectories.SourceWorktree}},
		"the working tree diff of an attempt that does not count":                                {Outcome: &trajectories.Outcome{PartialPatch: patch}},
		"the working tree diff; nothing was submitted":                                           {Diff: &trajectories.Diff{Patch: patch}},
		"no patch yet: the attempt has not ended":                                                {},
		"no patch: the attempt ended without one":                                                {Outcome: &trajectories.Outcome{}},
	} {
		if text, got := timeline.New(&a).Patch(); got != want || (text == "") != strings.HasPrefix(want, "no patch") {
			t.Errorf("%q, %q, want %q", text, got, want)
		}
	}
}

// TestDamaged checks that the timeline ends with an error at a record that cannot be
// decoded.
func TestDamaged(t *testing.T) {
	good := trajectories.Record{ID: 1, Type: trajectories.TypeMessage, Data: []byte(`{"role":"user","content":"hi"}`)}
	bad := trajectories.Record{ID: 2, Type: trajectories.TypeExecution, Data: []byte(`{"command":1}`)}
	tl, err := timeline.Build(func(yield func(trajectories.Record, error) bool) { _ = yield(good, nil) && yield(bad, nil) })
	if err == nil || tl.IsEmpty() || !tl.End.Contains(func(s string) bool { return strings.HasPrefix(s, "the rest of the file is damaged") }) {
		t.Errorf("%v, %v", tl.End, err)
	}
	broken := errors.New("broken")
	tl, err = timeline.Build(func(yield func(trajectories.Record, error) bool) { yield(trajectories.Record{}, broken) })
	if !errors.Is(err, broken) || !tl.IsEmpty() {
		t.Errorf("%+v, %v", tl, err)
	}
}

func TestEvents(t *testing.T) {
	a := &attempt{t: t}
	a.add(0, trajectories.TypeHeader, trajectories.Header{Origin: &trajectories.Origin{InstanceID: "a", Attempt: 2, Run: "r", Step: 3}})
	a.add(0, trajectories.TypeScrub, trajectories.Scrub{Error: "no git"})
	a.add(0, trajectories.TypeReplay, trajectories.Replay{Match: "diverged", Difference: "exit 1"})
	a.add(0, trajectories.TypePatchCheck, trajectories.PatchCheck{Bytes: 1, GitError: "corrupt"})
	a.add(0, trajectories.TypeSummary, trajectories.Summary{Error: "too long"})
	a.add(0, trajectories.TypeCompaction, trajectories.Compaction{Policy: "elide", MessagesBefore: 9, MessagesAfter: 1, TokensBefore: 20_000, TokensAfter: 500})
	a.add(0, trajectories.TypeLimits, trajectories.Limits{Cost: 2})
	a.add(0, trajectories.TypeStartState, trajectories.StartState{})
	got := a.text()
	for _, line := range []string{
		"forked from attempt 2 of a (run r) after step 3", "scrub: the repository may contain more than HEAD and its history: no git",
		"a replayed command had a different result: exit 1", "check: the submission of 1 byte does not apply: corrupt",
		"summary: the model call failed: too long",
		"compaction (elide): the model is now shown 1 message instead of 9, about 500 tokens instead of 20k",
		"limits: raised by the user: no step limit, up to $2.00",
	} {
		if !slices.Contains(strings.Split(got, "\n"), "| "+line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
}
