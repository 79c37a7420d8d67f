package tui

import (
	"encoding/json"
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

	llm "github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/control"
	"github.com/minibench/mini/trajectories"
)

// clerk is a desk that writes down what it is told.
type clerk struct {
	orders   []string
	err      error
	journals map[string]string // of "instance attempt"
}

func (c *clerk) Do(o runner.Order) (string, error) {
	c.orders = append(c.orders, strings.TrimSpace(string(o.Action)+" "+o.Who)+" "+o.By)
	return "said \x1b[2J" + o.Who, c.err
}

func (c *clerk) Around() ([]control.Provider, control.Disk) {
	run, engine, budget, taken := int64(41e9), int64(1234e9), int64(80e9), int64(61.5e9)
	return []control.Provider{{Endpoint: "api", ProviderState: runner.ProviderState{Limit: 16, InFlight: 4, Waiting: 3, Pause: 12}}},
		control.Disk{Run: &run, Engine: &engine, Budget: &budget, Images: &taken}
}

func (c *clerk) Journal(id string, attempt int) string {
	return c.journals[fmt.Sprint(id, " ", attempt)]
}

// steered is a story with a desk.
func steered(workers, total int) (*story, *clerk) {
	s, c := newStory(workers, total), &clerk{journals: map[string]string{}}
	s.m.desk = c
	s.send(refresh{now: s.now, around: around{}})
	return s, c
}

// press sends a key and, as Bubble Tea does, what its command leads to.
func (s *story) press(keys ...string) {
	for _, k := range keys {
		if cmd := s.send(press(k)); cmd != nil {
			if msg := cmd(); msg != nil {
				s.send(msg)
			}
		}
	}
}

func (c *clerk) told(t *testing.T, want ...string) {
	t.Helper()
	if fmt.Sprint(c.orders) != fmt.Sprint(want) {
		t.Errorf("orders %q, want %q", c.orders, want)
	}
	c.orders = nil
}

func (s *story) controlled(a runner.Action, who string, class trajectories.Class, total int) {
	s.tell(0, runner.Event{Type: runner.Controlled, Action: a, Instance: who, Class: class, Total: total, By: runner.ByCtl, Text: "is told"})
}

func TestKeysThatSteer(t *testing.T) {
	s, c := steered(3, 9)
	s.screen(80, 24)
	s.press("K", "R", "f", "enter")
	c.told(t)
	if !strings.Contains(s.screen(80, 24), "choose an instance first") {
		t.Errorf("no hint:\n%s", s.screen(80, 24))
	}
	s.begin("a", runner.Thinking, 1, 0, "")
	s.begin("b", runner.Running, 2, 0, "ls")
	s.press("p")
	s.controlled(runner.Pause, "", "", 9)
	s.press("p")
	s.controlled(runner.Resume, "", "", 9)
	s.press("D")
	s.controlled(runner.Drain, "", "", 9)
	s.press("p")
	c.told(t, "pause view", "resume view", "drain view", "resume view")

	s.send(refresh{now: s.now})
	s.press("j", "R")
	c.told(t, "requeue a view")
	if screen := s.screen(80, 24); !strings.HasSuffix(screen, "\n said \ufffd[2Ja\n") || !strings.Contains(screen, "\n▸1  a") {
		t.Errorf("no answer, or no mark:\n%s", screen)
	}
	s.send(refresh{now: s.now.Add(hintFor)})
	if screen := s.screen(80, 24); !strings.Contains(screen, "said") {
		t.Errorf("the answer is gone at once:\n%s", screen)
	}
	s.send(refresh{now: s.now.Add(hintFor + time.Second)})
	if screen := s.screen(80, 24); strings.Contains(screen, "said") || !strings.Contains(screen, "? help") {
		t.Errorf("the answer stays in the place of the keys:\n%s", screen)
	}
	s.press("j", "j", "j", "K")
	c.told(t)
	if screen := s.screen(80, 24); !strings.Contains(screen, " kill b? [y/N]   y kills it, any other key does not") {
		t.Errorf("it is not asked:\n%s", screen)
	}
	s.press("K") // is no yes
	s.press("K", "esc")
	c.told(t)
	s.press("K", "enter")
	c.told(t)
	// The question goes with the attempt; who has the row by then is not asked
	// about.
	s.press("K")
	s.end("b", trajectories.Submitted, "Submitted", "", false)
	s.begin("c", runner.Thinking, 1, 0, "")
	s.send(refresh{now: s.now})
	if screen := s.screen(80, 24); strings.Contains(screen, "kill b") || !strings.HasSuffix(screen, "\n b has ended\n") {
		t.Errorf("it is asked about what has ended:\n%s", screen)
	}
	s.press("y", "K")
	c.told(t)
	if !strings.HasSuffix(s.screen(80, 24), "\n b has ended\n") {
		t.Errorf("it is asked about what has ended:\n%s", s.screen(80, 24))
	}
	c.err = errors.New("b was refused")
	s.press("y", "R")
	if !strings.HasSuffix(s.screen(80, 24), "\n b was refused\n") {
		t.Errorf("no error:\n%s", s.screen(80, 24))
	}
	// Who was chosen is chosen where it is shown now: among those that ended.
	if screen := s.screen(80, 24); !strings.Contains(screen, "\n▸✓ ") {
		t.Errorf("no mark at what has ended:\n%s", screen)
	}
	s.press("k", "R")
	c.told(t, "requeue b view", "requeue c view")
}

// The chosen row is on the screen, also where rows are scrolled.
func TestChoosingScrolls(t *testing.T) {
	s, _ := steered(30, 100)
	for i := range 30 {
		s.begin(fmt.Sprint("in-", i), runner.Thinking, 1, 0, "")
	}
	s.screen(80, 24)
	for i, step := range []struct{ key, want string }{
		{"j", "in-0"}, {"j", "in-1"}, {"k", "in-0"}, {"k", "in-0"}, {"pgdown", ""}, {"down", "in-9"}, {"up", "in-8"}, {"end", ""}, {"k", "in-20"},
	} {
		s.press(step.key)
		marked := ""
		for line := range strings.Lines(s.screen(80, 24)) {
			if strings.HasPrefix(line, marker) {
				marked = "in-" + strings.Fields(line[strings.Index(line, "in-")+3:])[0]
			}
		}
		if marked != step.want {
			t.Errorf("step %d: after %q %q is chosen, want %q", i, step.key, marked, step.want)
		}
	}
}

func TestCountsOfOrders(t *testing.T) {
	s, _ := steered(2, 5)
	b := s.m.shared.board
	s.begin("a", runner.Thinking, 1, 0, "")
	s.end("a", trajectories.Submitted, "Submitted", "", false)
	s.tell(0, runner.Event{Type: runner.Verdict, Instance: "a", Verdict: "unresolved"})
	s.controlled(runner.Requeue, "a", trajectories.Submitted, 5)
	s.controlled(runner.Kill, "z", "", 4)
	if b.done != 0 || b.total != 4 || b.classes[trajectories.Submitted] != 0 {
		t.Errorf("%d of %d, %v", b.done, b.total, b.classes)
	}
	s.begin("a", runner.Thinking, 1, 0, "")
	s.end("a", trajectories.Submitted, "Submitted", "", false)
	s.tell(0, runner.Event{Type: runner.Verdict, Instance: "a", Verdict: "resolved"})
	if b.done != 1 || b.judged["resolved"] != 1 || b.judged["unresolved"] != 0 {
		t.Errorf("%d done, %v", b.done, b.judged)
	}
}

// What is around the run fits into a line of 80 columns, and the most important of
// it into fewer.
// What is held back has no end in sight.
func TestNoEndWhileHeld(t *testing.T) {
	s, _ := steered(2, 5)
	s.begin("a", runner.Running, 1, 0, "ls")
	s.end("a", trajectories.Submitted, "Submitted", "", false)
	later := s.now.Add(time.Minute)
	if got := s.m.shared.board.left(later); got <= 0 {
		t.Errorf("no end in sight: %v", got)
	}
	s.controlled(runner.Pause, "", "", 5)
	if got := s.m.shared.board.left(later); got >= 0 {
		t.Errorf("a paused run ends in %v", got)
	}
}

func TestStanding(t *testing.T) {
	s, c := steered(2, 5)
	var a around
	a.providers, a.disk = c.Around()
	s.send(refresh{now: s.now, around: a})
	s.controlled(runner.Pause, "", "", 5)
	for w, want := range map[int]string{
		80:  " paused: p goes on   calls 4/16+3 wait   asked to wait 0:12   disk 41 GB …",
		100: " paused: p goes on   calls 4/16+3 wait   asked to wait 0:12   disk 41 GB   engine 1234 GB …",
		40:  " paused: p goes on   calls 4/16+3 wait …",
	} {
		if got := ansi.Strip(s.m.shared.board.standing(frame{width: w}, a)); got != want || ansi.StringWidth(got) > w {
			t.Errorf("%d: %q", w, got)
		}
	}
	s.controlled(runner.Resume, "", "", 5)
	a.providers[0].Full = 40
	if got := ansi.Strip(s.m.shared.board.standing(frame{width: 80}, a)); !strings.Contains(got, "minute full 0:40") {
		t.Errorf("%q", got)
	}
	a.providers[0].Pause, a.providers[0].Full = 0, 0
	if got := ansi.Strip(s.m.shared.board.standing(frame{width: 80}, a)); got != " calls 4/16+3 wait   disk 41 GB   engine 1234 GB   images 62/80 GB" {
		t.Errorf("%q", got)
	}
}

// attemptOf writes a journal with hostile texts and returns its path.
func attemptOf(t *testing.T, dir string, ended bool) string {
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
	say := trajectories.Message{Cause: trajectories.CauseReply, Actions: []string{"ls"}}
	say.Content = "I look \x1b]0;title\x07around\r\nfirst.\n\u202ereversed"
	add(trajectories.TypeCall, trajectories.Call{})
	add(trajectories.TypeMessage, say)
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

func TestFollow(t *testing.T) {
	s, c := steered(2, 5)
	c.journals["a 1"] = attemptOf(t, t.TempDir(), false)
	s.begin("a", runner.Running, 1, 0.5, "sleep 9")
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
	// Scrolled up, what is looked at stays while more comes.
	s.screen(80, 10)
	s.press("g")
	top := strings.Split(s.screen(80, 10), "\n")[1]
	tell := func(typ trajectories.Type, data any) {
		s.m.follow.grow(grown{records: []trajectories.Record{recordOf(t, typ, data)}})
	}
	tell(trajectories.TypeCall, trajectories.Call{Error: "no"})
	if got := strings.Split(s.screen(80, 10), "\n")[1]; got != top || !strings.Contains(top, "prompts") {
		t.Errorf("%q, then %q", top, got)
	}
	s.press("G")
	if !strings.Contains(s.screen(80, 10), "a call of the model failed: no") {
		t.Errorf("not the end:\n%s", s.screen(80, 10))
	}
	// What people said, ran and did not allow is shown once.
	tell(trajectories.TypeDecision, trajectories.Decision{Command: "ls", Ruling: trajectories.Ruling{Action: trajectories.Allow, By: "mode"}})
	tell(trajectories.TypeDecision, trajectories.Decision{Command: "rm x", Ruling: trajectories.Ruling{Action: trajectories.Deny, By: "rule", Rule: "rm\x1b[2J"}})
	tell(trajectories.TypeExecution, trajectories.Execution{Command: "make mine", Person: true})
	tell(trajectories.TypeMessage, trajectories.Message{Cause: trajectories.CauseCommand, Message: llm.Message{Content: "The user ran a command"}})
	tell(trajectories.TypeMessage, trajectories.Message{Cause: trajectories.CauseSteer, Message: llm.Message{Content: "Rather there."}})
	tell(trajectories.TypeLimits, trajectories.Limits{Steps: 9})
	screen := s.screen(80, 40)
	for _, want := range []string{"decision: deny, by rule rm", "command that the user ran", "$ make mine", "told by the user, who steers", "Rather there.", "the user has raised them"} {
		if strings.Count(screen, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, screen)
		}
	}
	if strings.Contains(screen, "ran a command") {
		t.Errorf("too much is shown:\n%s", screen)
	}
	// The keys are about it.
	s.press("R", "K", "y", "p")
	c.told(t, "requeue a view", "kill a view", "pause view")
	s.press("?")
	if !strings.Contains(s.screen(80, 24), "Keys") {
		t.Error("no help")
	}
	s.press("esc")
	if s.m.follow == nil || s.m.help {
		t.Error("Esc leaves more than the help")
	}
	s.press("esc")
	if s.m.follow != nil {
		t.Error("Esc does not leave the pane")
	}
}

func recordOf(t *testing.T, typ trajectories.Type, data any) trajectories.Record {
	t.Helper()
	text, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return trajectories.Record{ID: 9, Type: typ, Data: text}
}

// What has ended shows its end; what begins anew is followed on.
func TestFollowToTheEnd(t *testing.T) {
	s, c := steered(1, 5)
	c.journals["a 1"] = attemptOf(t, t.TempDir(), true)
	second := t.TempDir()
	c.journals["a 2"] = attemptOf(t, second, false)
	s.tell(0, runner.Event{Type: runner.AttemptStarted, Instance: "a", Attempt: 1})
	s.tell(0, runner.Event{Type: runner.AttemptFinished, Instance: "a", Attempt: 1, Outcome: &trajectories.Outcome{Class: trajectories.Interrupted}})
	s.tell(0, runner.Event{Type: runner.Doing, Phase: runner.Left, Instance: "a"})
	s.screen(80, 24)
	s.press("j", "f")
	screen := s.screen(80, 24)
	for _, want := range []string{"a · attempt 1", "not running", "end · 0 steps", "outcome: interrupted, Interrupted", "killed (live view)"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q:\n%s", want, screen)
		}
	}
	s.tell(0, runner.Event{Type: runner.AttemptStarted, Instance: "a", Attempt: 2})
	g := grown{number: s.m.follow.number, tail: s.m.follow.tail}
	msg := s.send(g)()
	s.send(msg)
	if screen := s.screen(80, 24); !strings.Contains(screen, "a · attempt 2") || strings.Contains(screen, "outcome") {
		t.Errorf("the newer attempt is not followed:\n%s", screen)
	}
	if cmd := s.send(grown{number: s.m.follow.number - 1}); cmd != nil {
		t.Error("what was read for an earlier pane leads to more")
	}
}

// A journal is read as it grows, whatever is in it.
func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	tl := tail{path: path}
	read := func(want int, more bool) {
		t.Helper()
		records, m, err := tl.read()
		if err != nil || len(records) != want || m != more {
			t.Fatalf("%d records, more %v, %v; want %d, %v", len(records), m, err, want, more)
		}
	}
	put := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := tl.read(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	line := `{"id":2,"parent_id":1,"type":"call","time":"2026-01-01T00:00:00Z","data":{}}` + "\n"
	put(line + "no record\n" + line[:20])
	read(1, false)
	read(0, false)
	put(line[20:])
	read(1, false)
	put(line[:30])
	read(0, false)
	if err := os.Truncate(path, tl.offset); err != nil { // a torn line is cut off
		t.Fatal(err)
	}
	put(line)
	read(1, false)
	put(strings.Repeat("x", maxChunk+100)) // longer than is read at once
	read(0, true)
	put("\n" + line)
	read(1, false)

	late := tail{path: path}
	tl = late
	read(1, false) // the end of what is large
	tl = tail{path: t.TempDir()}
	if _, _, err := tl.read(); err == nil || !strings.Contains(err.Error(), "not a plain file") {
		t.Errorf("%v", err)
	}
}
