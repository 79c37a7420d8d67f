package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/batch"
	"github.com/minibench/mini/trajectories"
)

var start = time.Date(2026, 1, 2, 13, 4, 5, 0, time.UTC)

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// story is a simulated run. Its methods send events, keys and messages to the model.
type story struct {
	m   model
	now time.Time
}

func newStory(workers, total int) *story {
	s := &story{m: model{board: newBoard(batch.New()), controller: &recordingController{}}, now: start}
	s.m.frame.title = Title{Dataset: "verified", Model: "gpt-5-mini", Folder: "runs/first\x1b[2J"}
	s.emit(0, runner.Event{Type: runner.RunStarted, Total: total + 12, Skipped: 12, Workers: workers})
	return s
}

func (s *story) emit(delay time.Duration, e runner.Event) {
	s.now = s.now.Add(delay)
	e.Time = s.now
	s.m.board.Update(e)
	s.m.board.handleEvent(e)
}

func (s *story) send(msg tea.Msg) tea.Cmd {
	next, cmd := s.m.Update(msg)
	s.m, _ = next.(model)
	return cmd
}

func (s *story) begin(id string, phase runner.Phase, step int, cost float64, command string) {
	s.emit(time.Second, runner.Event{Type: runner.AttemptStarted, Instance: id, Attempt: 1})
	if step > 1 {
		s.emit(0, runner.Event{Type: runner.PhaseChanged, Phase: runner.PhaseRunning, Instance: id, Step: step - 1, Command: command})
		s.emit(0, runner.Event{Type: runner.CommandFinished, Instance: id, Step: step - 1, Cost: cost, Command: command})
	}
	s.emit(time.Second, runner.Event{Type: runner.PhaseChanged, Phase: phase, Instance: id, Step: step, Cost: cost, Command: command})
}

func (s *story) end(id string, class trajectories.Class, status, text string, willRetry bool) {
	o := &trajectories.Outcome{
		Class: class, ExitStatus: status, Error: text, Steps: 17, Cost: 0.31, Start: s.now.Add(-time.Minute), End: s.now,
		Submission: []byte("diff"),
	}
	s.emit(time.Second, runner.Event{Type: runner.AttemptFinished, Instance: id, Attempt: 1, Outcome: o, WillRetry: willRetry, Cost: 0.31})
	if !willRetry {
		s.emit(0, runner.Event{Type: runner.PhaseChanged, Phase: runner.PhaseReleased, Instance: id})
	}
}

func (s *story) screen(w, h int) string {
	s.send(tea.WindowSizeMsg{Width: w, Height: h})
	providers, disk := s.m.controller.Resources()
	s.send(refreshMsg{s.now, resources{providers, disk}})
	return ansi.Strip(s.m.View().Content) + "\n"
}

// goldenStory is the run of the golden files. Its names and texts are hostile.
func goldenStory() *story {
	s := newStory(16, 500)
	for i := range 40 {
		id := fmt.Sprintf("django__django-%d", 10000+i)
		s.begin(id, runner.PhaseThinking, 17, 0.31, "ls")
		s.end(id, trajectories.Submitted, "Submitted", "", false)
	}
	for i, end := range []struct {
		class        trajectories.Class
		status, text string
		again        bool
	}{
		{trajectories.Limit, "TimeExceeded", "", false},
		{trajectories.Provider, "RateLimited", "the server \x1b[31msays\x07 no\nand no", true},
		{trajectories.Environment, "ImageNotFound", "pull image nope: \u202eImageNotFound", false},
		{trajectories.Internal, "InternalError", strings.Repeat("surprise ", 40), false},
	} {
		id := fmt.Sprintf("scikit-learn__scikit-learn-%d", 25570+i)
		s.begin(id, runner.PhaseRunning, 3, 0.02, "pytest -x")
		s.end(id, end.class, end.status, end.text, end.again)
		if end.again {
			s.emit(0, runner.Event{Type: runner.PhaseChanged, Phase: runner.PhaseWaiting, Instance: id, Attempt: 1, Elapsed: 1})
		}
	}
	s.begin("astropy__astropy-12907", runner.PhaseRunning, 12, 0.3123, "python -m pytest -x -q astropy/modeling/tests/test_separable.py")
	s.begin("日本語の名前__とても長い名前-1234", runner.PhaseThinking, 4, 0.004, "grep -rn '検索' . | head")
	s.begin("evil\x1b]0;title\x07\x1b[2J__\u202erow\u0301\u0301-1", runner.PhaseRunning, 1, 0, "printf '\x1b[?1049l'\r\nrm -rf /")
	s.begin("😀👩‍👩‍👧‍👦🏽️__emoji-7", runner.PhaseClosing, 250, 12.5, strings.Repeat("long ", 60))
	s.begin(strings.Repeat("z\u0336\u0337\u0336\u0337\u0338", 300), runner.PhaseThinking, 2, 0, "true")
	s.begin("sympy__sympy-1", runner.PhaseStarting, 0, 0, "")
	s.emit(0, runner.Event{Type: runner.PhaseChanged, Phase: runner.PhaseStarting, Instance: "sympy__sympy-1", Text: "swebench/sweb.eval.x86_64.sympy_1776_sympy-1:latest"})
	s.begin("sphinx-doc__sphinx-2", runner.PhaseStarting, 0, 0, "")
	s.emit(0, runner.Event{Type: runner.PhaseChanged, Phase: runner.PhaseStarting, Instance: "sphinx-doc__sphinx-2", Text: "local/image:1"})
	s.begin("matplotlib__matplotlib-3", runner.PhaseQueued, 0, 0, "")
	s.emit(0, runner.Event{Type: runner.PhaseChanged, Phase: runner.PhaseQueued, Instance: "matplotlib__matplotlib-3", Text: "waiting for a node: \x1b[31m0/3 nodes\nare available: 3 Insufficient cpu."})
	pull := runner.PullState{Image: "swebench/sweb.eval.x86_64.sympy_1776_sympy-1:latest", Layers: 12, LayersDone: 5, Bytes: 310e6, Total: 1250e6}
	s.emit(0, runner.Event{Type: runner.PullProgress, Pull: &pull})
	s.emit(0, runner.Event{Type: runner.PullProgress, Pull: &runner.PullState{Image: "gone", Done: true}})
	s.emit(0, runner.Event{Type: runner.Warning, Text: "the disk is \x1b[5mnearly full"})
	for _, id := range []string{"a-1", "b-2"} { // one kind of warning
		s.emit(0, runner.Event{Type: runner.SandboxReady, Instance: id, Warnings: []string{"nothing in /tmp/" + id}})
	}
	s.emit(125*time.Second, runner.Event{Type: runner.FormatError, Instance: "sympy__sympy-1"})
	return s
}

func TestScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {160, 50}, {40, 8}, {60, 16}, {20, 4}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			golden(t, fmt.Sprintf("screen-%dx%d.txt", size[0], size[1]), goldenStory().screen(size[0], size[1]))
		})
	}
	t.Run("help", func(t *testing.T) {
		s := goldenStory()
		s.send(tea.KeyPressMsg{Code: '?', Text: "?"})
		golden(t, "help.txt", s.screen(80, 24))
	})
	t.Run("begin", func(t *testing.T) {
		golden(t, "begin.txt", newStory(3, 5).screen(80, 16))
	})
	t.Run("verdicts", func(t *testing.T) {
		s := goldenStory()
		s.m.frame.title.HasVerdicts = true
		golden(t, "verdicts-none.txt", s.screen(80, 16))
		for _, e := range []runner.Event{
			{Type: runner.EvaluationRunStarted, Instance: "django__django-10000"},
			{Type: runner.EvaluationRunStarted, Instance: "django__django-10001"},
			{Type: runner.Verdict, Instance: "django__django-10000", Verdict: "resolved", Elapsed: 61},
			{Type: runner.Verdict, Instance: "django__django-10002", Verdict: "unresolved", Text: "2 of 13 \x1b[31mtests failed", Elapsed: 8.4},
			{Type: runner.EvaluationRunStarted, Instance: "django__django-10003"},
			{Type: runner.Verdict, Instance: "django__django-10003", Verdict: "infrastructure", Text: "the sandbox was lost", Elapsed: 3, WillRetry: true},
			{Type: runner.Verdict, Instance: "django__django-10004", Verdict: "apply_failed", Text: "no way to apply the patch works", Elapsed: 1},
			{Type: runner.Verdict, Instance: "django__django-10005", Verdict: "infrastructure", Text: "the image cannot be pulled"},
		} {
			s.emit(time.Second, e)
		}
		golden(t, "verdicts.txt", s.screen(80, 30))
	})
	t.Run("message", func(t *testing.T) {
		s := goldenStory()
		s.m.board.setMessage("mini: stopping; once more to kill\x1b[2J\n")
		screen := s.screen(80, 24)
		if !strings.HasSuffix(screen, "\n stopping; once more to kill\ufffd[2J\n") {
			t.Errorf("the message is not in the last line:\n%s", screen)
		}
	})
}

// At every size the screen has the right height, no line is too wide, and colours are the only
// escape sequences.
func TestEverySize(t *testing.T) {
	s, empty := goldenStory(), newStory(0, 0)
	empty.m.frame.title.HasVerdicts = true
	for w := 1; w <= 170; w += 1 + w/20 {
		for h := 1; h <= 60; h += 1 + h/10 {
			for _, st := range []*story{s, empty} {
				st.send(tea.WindowSizeMsg{Width: w, Height: h})
				if err := wellFormed(st.m.View().Content, w, h); err != nil {
					t.Fatalf("%dx%d: %v", w, h, err)
				}
			}
			for _, top := range []int{0, 3, 100} {
				if err := wellFormed(helpScreen(w, h, top), w, h); err != nil {
					t.Fatalf("help at %dx%d from %d: %v", w, h, top, err)
				}
			}
		}
	}
}

func wellFormed(screen string, w, h int) error {
	lines := strings.Split(screen, "\n")
	if len(lines) != h {
		return fmt.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		plain := ansi.Strip(l)
		if ansi.StringWidthWc(plain) > w || ansi.StringWidth(plain) > w {
			return fmt.Errorf("%q is %d wide", plain, ansi.StringWidthWc(plain))
		}
		for i := 0; i < len(l); i++ {
			if rest := l[i:]; l[i] == 0x1b {
				end := strings.IndexByte(rest, 'm')
				if end < 0 || strings.Trim(rest[1:end], "[0123456789;") != "" {
					return fmt.Errorf("%q has a sequence that is no colour", l)
				}
			} else if l[i] < ' ' || l[i] == 0x7f {
				return fmt.Errorf("%q has a control character", l)
			}
		}
	}
	return nil
}

func TestScrolling(t *testing.T) {
	s := newStory(30, 100)
	rows := func() string {
		screen := s.screen(80, 24)
		if i := strings.Index(screen, "↑↓ "); i >= 0 {
			return strings.Fields(screen[i:])[1]
		}
		return "all"
	}
	for i, step := range []struct{ key, want string }{
		{"", "1-10"},
		{"up", "1-10"},
		{"down", "2-11"},
		{"j", "3-12"},
		{"k", "2-11"},
		{"pgdown", "11-20"},
		{"space", "20-29"},
		{"pgdown", "21-30"},
		{"home", "1-10"},
		{"G", "21-30"},
		{"pgup", "12-21"},
		{"g", "1-10"},
		{"end", "21-30"},
		{"q", "all"}, // the hint replaces the row numbers
		{"down", "21-30"},
	} {
		if step.key != "" {
			s.send(keyNamed(step.key))
		}
		if got := rows(); got != step.want {
			t.Errorf("step %d: after %q rows %s, want %s", i, step.key, got, step.want)
		}
	}
	s.send(keyNamed("end"))
	s.screen(80, 50) // if all rows fit, the first one is visible
	if got := rows(); got != "21-30" {
		t.Errorf("after a larger screen and back: rows %s", got)
	}
}

// keyNamed returns the key with the given name.
func keyNamed(name string) tea.KeyPressMsg {
	special := map[string]rune{
		"up": tea.KeyUp, "down": tea.KeyDown, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
		"home": tea.KeyHome, "end": tea.KeyEnd, "esc": tea.KeyEscape, "space": tea.KeySpace,
	}
	if code, ok := special[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	if letter, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: rune(name[0]), Text: name}
}

// Only Ctrl-C ends a run, by calling Interrupt.
func TestKeysDoNotQuit(t *testing.T) {
	s := newStory(3, 5)
	stopped := errors.New("stopped")
	var got error
	s.m.interrupt = func() { got = stopped }
	for _, key := range []string{"q", "esc", "ctrl+d", "x", "?", "ctrl+l"} {
		cmd := s.send(keyNamed(key))
		if cmd == nil {
			continue
		}
		if _, quits := cmd().(tea.QuitMsg); quits || got != nil {
			t.Errorf("%s ends the run", key)
		}
	}
	s.send(keyNamed("ctrl+c"))()
	if !errors.Is(got, stopped) {
		t.Error("ctrl+c does not stop the run")
	}
}

// A resumed attempt shows the progress of rebuilding its sandbox.
func TestRebuilding(t *testing.T) {
	s := newStory(1, 1)
	b := s.m.board
	s.emit(0, runner.Event{Type: runner.AttemptStarted, Instance: "a", Attempt: 1})
	s.emit(0, runner.Event{Type: runner.AttemptResumed, Instance: "a", Attempt: 1, Step: 31, Cost: 0.5, Total: 30})
	s.emit(0, runner.Event{Type: runner.PhaseChanged, Phase: runner.PhaseRebuilding, Instance: "a", Attempt: 1, Step: 31, Cost: 0.5, Done: 12, Total: 30, Command: "make test"})
	f := frame{width: 120, now: start}
	row := ansi.Strip(b.rowLine(0, b.columns(f.width), f))
	for _, want := range []string{"rebuild", " 31 ", "12 of 30  make test"} {
		if !strings.Contains(row, want) {
			t.Errorf("row %q lacks %q", row, want)
		}
	}
}

// A row shows for what the start of a sandbox waits, also after a failed attempt.
func TestQueued(t *testing.T) {
	s := newStory(1, 1)
	b := s.m.board
	s.emit(0, runner.Event{Type: runner.AttemptStarted, Instance: "a", Repetition: 1, Attempt: 2})
	queued := func(delay time.Duration, reason string) {
		s.emit(delay, runner.Event{Type: runner.PhaseChanged, Phase: runner.PhaseQueued, Instance: "a", Text: reason})
	}
	queued(time.Second, "waiting for quota")
	queued(time.Second, "waiting for a node: 0/3 nodes \x1b[2Jare\navailable")
	s.now = s.now.Add(time.Minute)
	row := func() string {
		f := frame{width: 120, now: s.now}
		return ansi.Strip(b.rowLine(0, b.columns(f.width), f))
	}
	for _, want := range []string{"a#1", "queued", " 1m01s ", "waiting for a node: 0/3 nodes \ufffd[2Jare available"} {
		if !strings.Contains(row(), want) {
			t.Errorf("row %q lacks %q", row(), want)
		}
	}
	if len(b.Workers) != 1 {
		t.Errorf("%d rows", len(b.Workers))
	}
	s.emit(0, runner.Event{Type: runner.PhaseChanged, Phase: runner.PhaseStarting, Instance: "a", Text: "img"})
	if strings.Contains(row(), "queued") || strings.Contains(row(), "node") {
		t.Errorf("row %q of a sandbox that starts", row())
	}
}

// An unknown cost is not shown as zero.
func TestUnknownCost(t *testing.T) {
	for want, out := range map[string]*trajectories.Outcome{" ? ": {}, " $1.50+? ": {Cost: 1.5}} {
		s := newStory(2, 5)
		out.Class = trajectories.Submitted
		out.Usage.Unpriced = 3
		s.emit(0, runner.Event{Type: runner.AttemptFinished, Instance: "a", Outcome: out})
		if line := ansi.Strip(s.m.board.progressLine(frame{width: 100, now: start.Add(time.Minute)})) + " "; !strings.Contains(line, want) {
			t.Errorf("%q, want %q", line, want)
		}
	}
}
