package browser

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// newTestBrowser returns a browser of an empty source. The test runs its commands with drive.
func newTestBrowser(t *testing.T, w, h int) *browser {
	t.Helper()
	m := &browser{list: newList(Options{Path: "somewhere"})}
	ctx, cancel := context.WithCancel(t.Context())
	m.ctx, m.send = ctx, func(msg tea.Msg) { m.Update(msg) }
	t.Cleanup(cancel)
	m.resize(w, h)
	return m
}

// press sends keys and runs the resulting commands.
func press(m *browser, keys ...string) {
	for _, key := range keys {
		_, cmd := m.Update(keyOf(key))
		drive(m, cmd)
	}
}

func keyOf(key string) tea.KeyPressMsg {
	switch key {
	case "enter":
		return tea.KeyPressMsg{Code: tea.KeyEnter}
	case "esc":
		return tea.KeyPressMsg{Code: tea.KeyEscape}
	case "tab":
		return tea.KeyPressMsg{Code: tea.KeyTab}
	case "right":
		return tea.KeyPressMsg{Code: tea.KeyRight}
	case "left":
		return tea.KeyPressMsg{Code: tea.KeyLeft}
	case "down":
		return tea.KeyPressMsg{Code: tea.KeyDown}
	}
	r := []rune(key)[0]
	return tea.KeyPressMsg{Code: r, Text: key}
}

// drive runs a command and the commands that follow from its messages.
func drive(m *browser, cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			drive(m, c)
		}
	default:
		_, next := m.Update(msg)
		drive(m, next)
	}
}

// journal writes the journal of an attempt with many kinds of records and returns its path.
func journal(t testing.TB, dir, id string, end bool) string {
	t.Helper()
	path := filepath.Join(dir, id, "attempts", "1", "journal.jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: id, Attempt: 1, ModelName: "m"})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	add := func(kind trajectories.Type, data any) {
		if _, err := j.Append(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	addMessage := func(role model.Role, cause trajectories.Cause, text, reasoning string, actions ...string) {
		m := trajectories.Message{Cause: cause, Actions: actions}
		m.Role, m.Content, m.Reasoning = role, text, reasoning
		add(trajectories.TypeMessage, m)
	}
	addStep := func(reply, reasoning, command, output string, code int) {
		add(trajectories.TypeCall, trajectories.Call{Cost: 0.25, Usage: model.Usage{Prompt: 1000, Completion: 50}, RequestCount: 1})
		addMessage(model.Assistant, trajectories.CauseReply, reply+"\n\n```bash\n"+command+"\n```", reasoning, command)
		add(trajectories.TypeExecution, trajectories.Execution{Command: command, Output: []byte(output), Bytes: int64(len(output)), ExitCode: code})
		addMessage(model.User, trajectories.CauseObservation, "<output>"+output+"</output>", "")
	}
	add(trajectories.TypeScrub, trajectories.Scrub{OK: true, Commits: 3})
	addMessage(model.System, trajectories.CausePrompt, "You fix things.", "")
	addMessage(model.User, trajectories.CausePrompt, "The needle is lost in "+id+".", "")
	addStep("I look.", "Where may it be?", "ls", "hay\nneedle\n\x1b[31mred\x1b[0m\n", 0)
	add(trajectories.TypeCall, trajectories.Call{Cost: 0.25, RequestCount: 1})
	addMessage(model.Assistant, trajectories.CauseReply, "no command", "")
	addMessage(model.User, trajectories.CauseFormatError, "Write one command.", "")
	addStep("I try.", "", "make test", "Traceback: Needle not found\n"+strings.Repeat("line\n", 100), 2)
	if end {
		add(trajectories.TypePatchCheck, trajectories.PatchCheck{Bytes: 40, Applies: true})
		patch := "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-hay\n+needle\n"
		add(trajectories.TypeDiff, trajectories.Diff{Patch: []byte(patch), Exact: true})
		add(trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Submitted, ExitStatus: "Submitted", Submission: []byte(patch), Steps: 3, Cost: 0.75})
	}
	return path
}

// run creates a run with verdicts and a log.
func run(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	journal(t, dir, "a-1", true)
	journal(t, dir, "a-2", true)
	journal(t, dir, "b-3", false)
	write(t, filepath.Join(dir, "run.json"), `{"format":"mini-1","sessions":[]}`)
	write(t, filepath.Join(dir, "results.json"), `{"format":"mini-1","instances":{
"a-1":{"class":"submitted","exit_status":"Submitted","attempt":1,"steps":3,"cost":0.75,"seconds":61,"patch_bytes":59,"verdict":"unresolved"},
"a-2":{"class":"submitted","exit_status":"Submitted","attempt":1,"steps":3,"cost":0.75,"seconds":5,"patch_bytes":59,"verdict":null}}}`)
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// browse returns a browser of a source that has been walked.
func browse(t *testing.T, path string, w, h int) *browser {
	t.Helper()
	m := newTestBrowser(t, w, h)
	m.list.Path = path
	drive(m, m.walk())
	return m
}

func (m *browser) text() string { return ansi.Strip(m.View().Content) }

func has(t *testing.T, m *browser, want ...string) {
	t.Helper()
	text := m.text()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not on the screen:\n%s", w, text)
		}
	}
}

func hasNot(t *testing.T, m *browser, bad string) {
	t.Helper()
	if text := m.text(); strings.Contains(text, bad) {
		t.Errorf("%q is on the screen:\n%s", bad, text)
	}
}

func TestListKeys(t *testing.T) {
	m := browse(t, run(t), 100, 24)
	has(t, m, "3 trajectories", "a-1", "unresolved", "$0.75", "1m01s", "not ended", "1/3")
	press(m, "j")
	has(t, m, "2/3")
	press(m, "s", "s", "s", "s") // id, status, verdict, steps, cost
	has(t, m, "COST↓")
	press(m, "S")
	has(t, m, "COST↑")
	enterText(m, "f", "verdict:un")
	has(t, m, "1 of 3 trajectories", "a-1", "filter: verdict:un")
	press(m, "esc")
	has(t, m, "3 trajectories")
	enterText(m, "f", "colour:x") // stays open because of the error
	has(t, m, "unknown filter")
	press(m, "esc", "?")
	has(t, m, "The list", "Reading")
	press(m, "j", "j", "j", "j")
	has(t, m, "Reading", "test log")
	press(m, "q")
	has(t, m, "3 trajectories")
}

// enterText opens a prompt with a key, enters a text and submits it.
func enterText(m *browser, key, text string) {
	press(m, key)
	m.input.SetValue(text)
	press(m, "enter")
}

// The cursor is visible after any key, and stays on its row of the screen during a reload.
func TestCursorIsVisible(t *testing.T) {
	m := newTestBrowser(t, 80, 20)
	for i := range 60 {
		m.list.found.entries = append(m.list.found.entries, &Entry{ID: fmt.Sprintf("x-%02d-", i), Selected: true, State: Ended, Steps: i % 7})
	}
	m.list.update()
	random := rand.New(rand.NewPCG(1, 2))
	keys := []string{"j", "k", "$", "0", " ", "s", "S", "j", "k", "resize", "set"}
	for i := range 200 {
		switch k := keys[random.IntN(len(keys))]; k {
		case "resize":
			m.resize(20+random.IntN(80), 5+random.IntN(30))
		case "set":
			m.list.setCursor(random.IntN(60))
		default:
			press(m, k)
		}
		before := m.text()
		m.list.update()
		if after := m.text(); after != before || !strings.Contains(after, m.list.current().ID) {
			t.Fatalf("%d: the cursor is on %s, before and after a reload:\n%s\n%s", i, m.list.current().ID, before, after)
		}
		m.list.cursorMoved = true
	}
}

func TestFilterByText(t *testing.T) {
	m := browse(t, run(t), 100, 24)
	enterText(m, "f", `text:"LOST in a-"`)
	has(t, m, "no match")
	enterText(m, "/", "lost in a-")
	has(t, m, "2 of 3 trajectories", "a-1", "a-2")
	hasNot(t, m, "b-3")
	drive(m, m.walk()) // unchanged files are not read again
	has(t, m, "2 of 3 trajectories")
	press(m, "enter") // the search text is kept
	press(m, "n")
	has(t, m, "The needle is lost in a-1.")
	press(m, "esc", "esc")
	has(t, m, "3 trajectories", "b-3")
}

func TestReaderKeys(t *testing.T) {
	m := browse(t, run(t), 100, 30)
	press(m, "enter")
	has(t, m, "prompts · 3 steps", "You fix things.", "scrub: the repository")
	press(m, "right")
	has(t, m, "step 1/3", "exit 0", "$0.25 so far", "I look.", "$ ls", "needle")
	hasNot(t, m, "Where may it be?")
	hasNot(t, m, "```")
	press(m, "r")
	has(t, m, "Where may it be?")
	press(m, "x")
	has(t, m, "step 2/3", "format error")
	press(m, "x")
	has(t, m, "step 3/3", "exit 2", "Traceback")
	press(m, "x")
	has(t, m, "no later step with an error")
	press(m, "j") // 15 lines down
	hasNot(t, m, "I try.")
	press(m, "$")
	has(t, m, "outcome: submitted")
	press(m, "h", "G")
	has(t, m, "check: the submission of 40 bytes applies")
	press(m, "$")
	press(m, "l") // stays on the last page
	has(t, m, "outcome: submitted")
	press(m, "0")
	has(t, m, "prompts")
	press(m, "h")
	has(t, m, "prompts")
	press(m, "g", "2", "enter")
	has(t, m, "step 2/3")
	enterText(m, "g", "9")
	has(t, m, `no step "9"`)
	press(m, "esc", "d")
	has(t, m, "the submission", "+needle")
	press(m, "d", "t")
	has(t, m, "no test log: the submission has not been evaluated; run mini eval -p")
	press(m, "esc", "L")
	has(t, m, "a-2", "2/3")
	press(m, "L", "L")
	has(t, m, "no next trajectory")
	press(m, "H")
	has(t, m, "2/3")
}

func TestSearch(t *testing.T) {
	m := browse(t, run(t), 100, 24)
	press(m, "enter", "/", "n", "e", "e", "d", "l", "e", "enter")
	has(t, m, "prompts", `"needle"`)
	press(m, "n")
	has(t, m, "step 1/3")
	press(m, "n") // ignoring case
	has(t, m, "step 3/3", "Needle not found")
	press(m, "n") // the first match again
	has(t, m, "prompts")
	press(m, "N")
	has(t, m, "step 3/3")
	enterText(m, "/", "may it be") // hidden text is shown
	has(t, m, "step 1/3", "Where may it be?")
}

// browseStep returns a browser that shows one step.
func browseStep(t *testing.T, w, h int, s *timeline.Step) *browser {
	t.Helper()
	m := newTestBrowser(t, w, h)
	e := &Entry{ID: "x", Path: "x", State: Ended}
	m.open(e)
	m.handleOpened(openedMsg{entry: e, trajectory: &Trajectory{Timeline: &timeline.Timeline{Steps: []*timeline.Step{s}}}})
	return m
}

// A search makes each match visible: below wrapped lines, and in wrapped or folded lines.
func TestMatchIsVisible(t *testing.T) {
	text := strings.Repeat(strings.Repeat("long ", 30)+"\n", 8) + "needle 1\nneedle 2\n" + strings.Repeat("short\n", 500) + strings.Repeat("x", 35) + " needle 3\n" + strings.Repeat("short\n", 500)
	m := browseStep(t, 40, 12, &timeline.Step{Items: []*timeline.Item{{Kind: timeline.Output, Text: text}}})
	press(m, "G", "home")
	if n := len(m.reader.lines); n > 500 {
		t.Errorf("a long output has %d lines", n)
	}
	enterText(m, "/", "needle")
	for _, want := range []string{"needle 1", "needle 2", "dle 3", "needle 1"} {
		has(t, m, want)
		press(m, "n")
	}
	press(m, "N", "N")
	has(t, m, "dle 3")
	press(m, "o")
	if n := len(m.reader.lines); n > 500 {
		t.Errorf("a folded output has %d lines", n)
	}
}

// A search applies to the visible patch or log.
func TestSearchInPatchAndLog(t *testing.T) {
	dir := run(t)
	writeVerdict(t, dir, submittedPatch)
	m := browse(t, dir, 100, 24)
	press(m, "enter", "d")
	enterText(m, "/", "+needle")
	has(t, m, "patch", `"+needle"`, "+++ b/x")
	enterText(m, "/", "lost in")
	has(t, m, "patch", `"lost in" not found in the patch`)
	press(m, "t")
	enterText(m, "/", "failed test_x")
	has(t, m, "test log", "FAILED test_x", `"failed test_x"`)
	press(m, "n") // the only match again
	has(t, m, "FAILED test_x", `"failed test_x"`)
	press(m, "esc", "n")
	has(t, m, "prompts", `"failed test_x" not found in this trajectory`)
}

// The reader handles a trajectory that has become shorter.
func TestShorterFile(t *testing.T) {
	m := browse(t, filepath.Join(run(t), "a-1"), 100, 24)
	enterText(m, "/", "patch")
	press(m, "N") // on the last page
	has(t, m, "end · ")
	short := &Trajectory{Timeline: timeline.New(&trajectories.Attempt{})}
	m.handleOpened(openedMsg{entry: m.reader.entry, trajectory: short})
	press(m, "n", "N", "$", "n")
	has(t, m, "prompts", "not found in this trajectory")
}

// After a reload the reader stays on its step, or at the end if the end was visible.
func TestReloadAndFollow(t *testing.T) {
	dir := run(t)
	m := browse(t, filepath.Join(dir, "b-3"), 100, 40)
	has(t, m, "b-3 · not ended") // a single instance is opened at once
	press(m, "$")
	has(t, m, "step 3/3")
	path := filepath.Join(dir, "b-3", "attempts", "1", "journal.jsonl")
	data, err := os.ReadFile(filepath.Join(dir, "a-1", "attempts", "1", "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 120}) // the end is visible
	press(m, "G")
	write(t, path, string(data))
	drive(m, m.readTrajectory(m.reader.entry, nil))
	has(t, m, "outcome: submitted")
	press(m, "g", "1", "enter", "R")
	has(t, m, "step 1/3")
}

func TestResize(t *testing.T) {
	m := browse(t, run(t), 160, 50)
	sizes := []tea.WindowSizeMsg{{Width: 160, Height: 50}, {Width: 80, Height: 24}, {Width: 20, Height: 5}, {Width: 1, Height: 1}, {Width: 80, Height: 24}}
	for _, keys := range [][]string{nil, {"enter", "l", "G"}, {"d"}, {"?"}} {
		press(m, keys...)
		for _, s := range sizes {
			m.Update(s)
			checkSanitized(t, m)
		}
	}
}
