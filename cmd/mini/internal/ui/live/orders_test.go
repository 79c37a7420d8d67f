package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/control"
	"github.com/minibench/mini/trajectories"
)

// recordingController records its orders.
type recordingController struct {
	orders   []string
	err      error
	journals map[string]string // paths, by "instance attempt"
}

func (c *recordingController) Execute(o runner.ControlRequest) (string, error) {
	c.orders = append(c.orders, strings.TrimSpace(string(o.Action)+" "+o.TaskID)+" "+o.Source)
	return "said \x1b[2J" + o.TaskID, c.err
}

func (c *recordingController) Resources() ([]control.Provider, control.Disk) {
	run, engine, budget, used := int64(41e9), int64(1234e9), int64(80e9), int64(61.5e9)
	return []control.Provider{{Endpoint: "api", ProviderState: runner.ProviderState{Limit: 16, InFlight: 4, Waiting: 3, PauseSeconds: 12}}},
		control.Disk{RunFree: &run, EngineFree: &engine, ImageBudget: &budget, Images: &used}
}

func (c *recordingController) JournalPath(id string, attempt int) string {
	return c.journals[fmt.Sprint(id, " ", attempt)]
}

// newControlledStory returns a story with a controller.
func newControlledStory(workers, total int) (*story, *recordingController) {
	s, c := newStory(workers, total), &recordingController{journals: map[string]string{}}
	s.m.controller = c
	s.send(refreshMsg{now: s.now, resources: resources{}})
	return s, c
}

// press sends keys and the messages of their commands.
func (s *story) press(keys ...string) {
	for _, k := range keys {
		if cmd := s.send(keyNamed(k)); cmd != nil {
			if msg := cmd(); msg != nil {
				s.send(msg)
			}
		}
	}
}

func (c *recordingController) checkOrders(t *testing.T, want ...string) {
	t.Helper()
	if fmt.Sprint(c.orders) != fmt.Sprint(want) {
		t.Errorf("orders %q, want %q", c.orders, want)
	}
	c.orders = nil
}

func (s *story) controlled(a runner.Action, who string, class trajectories.Class, total int) {
	s.emit(0, runner.Event{Type: runner.ControlApplied, Action: a, Instance: who, Class: class, Total: total, Source: runner.SourceCtl, Text: "is told"})
}

func TestOrderKeys(t *testing.T) {
	s, c := newControlledStory(3, 9)
	s.screen(80, 24)
	s.press("K", "R", "f", "enter")
	c.checkOrders(t)
	if !strings.Contains(s.screen(80, 24), "select an instance first") {
		t.Errorf("no hint:\n%s", s.screen(80, 24))
	}
	s.begin("a", runner.PhaseThinking, 1, 0, "")
	s.begin("b", runner.PhaseRunning, 2, 0, "ls")
	s.press("p")
	s.controlled(runner.Pause, "", "", 9)
	s.press("p")
	s.controlled(runner.Resume, "", "", 9)
	s.press("D")
	s.controlled(runner.Drain, "", "", 9)
	s.press("p")
	c.checkOrders(t, "pause view", "resume view", "drain view", "resume view")

	s.send(refreshMsg{now: s.now})
	s.press("j", "R")
	c.checkOrders(t, "requeue a view")
	if screen := s.screen(80, 24); !strings.HasSuffix(screen, "\n said \ufffd[2Ja\n") || !strings.Contains(screen, "\n▸1  a") {
		t.Errorf("no result, or no selection marker:\n%s", screen)
	}
	s.send(refreshMsg{now: s.now.Add(hintDuration)})
	if screen := s.screen(80, 24); !strings.Contains(screen, "said") {
		t.Errorf("the result disappears too early:\n%s", screen)
	}
	s.send(refreshMsg{now: s.now.Add(hintDuration + time.Second)})
	if screen := s.screen(80, 24); strings.Contains(screen, "said") || !strings.Contains(screen, "? help") {
		t.Errorf("the result still replaces the key hints:\n%s", screen)
	}
	s.press("j", "j", "j", "K")
	c.checkOrders(t)
	if screen := s.screen(80, 24); !strings.Contains(screen, " kill b? [y/N]   y kills it, any other key does not") {
		t.Errorf("no kill question:\n%s", screen)
	}
	s.press("K") // does not confirm
	s.press("K", "esc")
	c.checkOrders(t)
	s.press("K", "enter")
	c.checkOrders(t)
	// The question ends with the attempt; it does not apply to the next instance in the row.
	s.press("K")
	s.end("b", trajectories.Submitted, "Submitted", "", false)
	s.begin("c", runner.PhaseThinking, 1, 0, "")
	s.send(refreshMsg{now: s.now})
	if screen := s.screen(80, 24); strings.Contains(screen, "kill b") || !strings.HasSuffix(screen, "\n b has ended\n") {
		t.Errorf("a kill question about an instance that has ended:\n%s", screen)
	}
	s.press("y", "K")
	c.checkOrders(t)
	if !strings.HasSuffix(s.screen(80, 24), "\n b has ended\n") {
		t.Errorf("a kill question about an instance that has ended:\n%s", s.screen(80, 24))
	}
	c.err = errors.New("b was refused")
	s.press("y", "R")
	if !strings.HasSuffix(s.screen(80, 24), "\n b was refused\n") {
		t.Errorf("no error:\n%s", s.screen(80, 24))
	}
	// The selected instance stays selected after it has moved to the log.
	if screen := s.screen(80, 24); !strings.Contains(screen, "\n▸✓ ") {
		t.Errorf("no selection marker in the log:\n%s", screen)
	}
	s.press("k", "R")
	c.checkOrders(t, "requeue b view", "requeue c view")
}

func TestStatusLine(t *testing.T) {
	s, c := newControlledStory(2, 5)
	var r resources
	r.providers, r.disk = c.Resources()
	s.send(refreshMsg{now: s.now, resources: r})
	s.controlled(runner.Pause, "", "", 5)
	for w, want := range map[int]string{
		80:  " paused: p resumes   calls 4/16+3 wait   asked to wait 12s   disk 41 GB …",
		100: " paused: p resumes   calls 4/16+3 wait   asked to wait 12s   disk 41 GB   engine 1.23 TB …",
		40:  " paused: p resumes   calls 4/16+3 wait …",
	} {
		if got := ansi.Strip(s.m.board.statusLine(frame{width: w}, r)); got != want || ansi.StringWidth(got) > w {
			t.Errorf("%d: %q", w, got)
		}
	}
	s.controlled(runner.Resume, "", "", 5)
	r.providers[0].MinuteFullSeconds = 40
	if got := ansi.Strip(s.m.board.statusLine(frame{width: 80}, r)); !strings.Contains(got, "rate limit 40s") {
		t.Errorf("%q", got)
	}
	r.providers[0].PauseSeconds, r.providers[0].MinuteFullSeconds = 0, 0
	if got := ansi.Strip(s.m.board.statusLine(frame{width: 80}, r)); got != " calls 4/16+3 wait   disk 41 GB   engine 1.23 TB   images 61.5 GB of 80 GB" {
		t.Errorf("%q", got)
	}
}

// writeJournal writes the journal of an attempt with hostile texts and returns its path.
func writeJournal(t *testing.T, dir string, ended bool) string {
	t.Helper()
	path := filepath.Join(dir, "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	add := func(typ trajectories.Type, data any) {
		if _, err := j.Append(typ, data); err != nil {
			t.Fatal(err)
		}
	}
	add(trajectories.TypeMessage, trajectories.Message{Cause: trajectories.CausePrompt})
	reply := trajectories.Message{Cause: trajectories.CauseReply, Actions: []string{"ls"}}
	reply.Content = "I look \x1b]0;title\x07around\r\nfirst.\n\u202ereversed"
	add(trajectories.TypeCall, trajectories.Call{})
	add(trajectories.TypeMessage, reply)
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("\x1b[31mline\t%d\x1b[0m", i))
	}
	add(trajectories.TypeExecution, trajectories.Execution{
		Command: "ls \x1b[2J\nand more", Output: trajectories.Bytes(strings.Join(lines, "\n") + "\n10%\r100%\x1b[?1049l\n"),
		ExitCode: 3, Duration: trajectories.Seconds(65 * time.Second),
	})
	if ended {
		add(trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Interrupted, ExitStatus: "Interrupted", Error: "killed (live view)"})
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPane(t *testing.T) {
	s, c := newControlledStory(2, 5)
	c.journals["a 1"] = writeJournal(t, t.TempDir(), false)
	s.begin("a", runner.PhaseRunning, 1, 0.5, "sleep 9")
	s.screen(80, 30)
	s.press("j", "enter")
	times := regexp.MustCompile(`\d\d:\d\d:\d\d`)
	golden(t, "follow.txt", times.ReplaceAllString(s.screen(80, 30), "13:04:05"))
	for w := 1; w <= 170; w += 1 + w/20 {
		for h := 1; h <= 60; h += 1 + h/10 {
			s.send(tea.WindowSizeMsg{Width: w, Height: h})
			if err := wellFormed(s.m.View().Content, w, h); err != nil {
				t.Fatalf("%dx%d: %v", w, h, err)
			}
		}
	}
	// When scrolled up, the visible lines stay as steps are appended.
	s.screen(80, 10)
	s.press("g")
	top := strings.Split(s.screen(80, 10), "\n")[1]
	appendLine(t, c.journals["a 1"], `{"id":6,"parent_id":5,"type":"call","data":{"error":"no"}}`)
	s.send(s.m.pane.readAfter(0)())
	if got := strings.Split(s.screen(80, 10), "\n")[1]; got != top || !strings.Contains(top, "prompts") {
		t.Errorf("%q, then %q", top, got)
	}
	s.press("G")
	if !strings.Contains(s.screen(80, 10), "model call failed: no") {
		t.Errorf("not the end:\n%s", s.screen(80, 10))
	}
	// Keys apply to the instance of the pane.
	s.press("R", "K", "y", "p")
	c.checkOrders(t, "requeue a view", "kill a view", "pause view")
	s.press("?")
	if !strings.Contains(s.screen(80, 24), "Keys") {
		t.Error("no help")
	}
	s.press("esc")
	if s.m.pane == nil || s.m.help {
		t.Error("Esc leaves more than the help")
	}
	s.press("esc")
	if s.m.pane != nil {
		t.Error("Esc does not leave the pane")
	}
}

func appendLine(t *testing.T, path, line string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// The pane of a finished attempt shows its outcome. When the instance has a new attempt, the
// pane switches to it.
func TestPaneToTheEnd(t *testing.T) {
	s, c := newControlledStory(1, 5)
	c.journals["a 1"] = writeJournal(t, t.TempDir(), true)
	second := t.TempDir()
	c.journals["a 2"] = writeJournal(t, second, false)
	s.emit(0, runner.Event{Type: runner.AttemptStarted, Instance: "a", Attempt: 1})
	s.emit(0, runner.Event{Type: runner.AttemptFinished, Instance: "a", Attempt: 1, Outcome: &trajectories.Outcome{Class: trajectories.Interrupted}})
	s.emit(0, runner.Event{Type: runner.PhaseChanged, Phase: runner.PhaseReleased, Instance: "a"})
	s.screen(80, 24)
	s.press("j", "f")
	screen := s.screen(80, 24)
	for _, want := range []string{"a · attempt 1", "not running", "end · 0 steps", "outcome: interrupted, Interrupted", "killed (live view)"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q:\n%s", want, screen)
		}
	}
	s.emit(0, runner.Event{Type: runner.AttemptStarted, Instance: "a", Attempt: 2})
	g := journalMsg{number: s.m.pane.number}
	msg := s.send(g)()
	s.send(msg)
	if screen := s.screen(80, 24); !strings.Contains(screen, "a · attempt 2") || strings.Contains(screen, "outcome") {
		t.Errorf("the newer attempt is not followed:\n%s", screen)
	}
	if cmd := s.send(journalMsg{number: s.m.pane.number - 1}); cmd != nil {
		t.Error("the result for an earlier pane schedules another read")
	}
}
