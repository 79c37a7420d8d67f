package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
)

// fileSnapshot is a Snapshot of a list of changed files.
type fileSnapshot struct {
	present []string   // changes since the last call of RecordStep or SkipChanges
	steps   [][]string // recorded changes
	skipped []string
	undone  []string
	err     error
}

func filesChanged(names ...string) Changes {
	if len(names) == 0 {
		return Changes{}
	}
	c := Changes{Patch: "patch of " + strings.Join(names, " "), Summary: fmt.Sprintf("%d files changed", len(names)), Count: len(names)}
	for i, name := range names {
		c.Files = append(c.Files, FileChange{ChangedFile: events.ChangedFile{Name: name, Added: 1, Removed: i}, IsNew: i == 1})
	}
	return c
}

func (f *fileSnapshot) Diff(context.Context) (Changes, error) {
	var all []string
	for _, step := range f.steps {
		all = append(all, step...)
	}
	return filesChanged(append(all, f.skipped...)...), f.err
}

func (f *fileSnapshot) Undo(context.Context, Changes) (string, error) {
	f.steps, f.skipped, f.undone = nil, nil, append(f.undone, "all")
	return "Undone: all.", f.err
}

func (f *fileSnapshot) RecordStep(_ context.Context, step int) (Changes, error) {
	c := filesChanged(f.present...)
	if c.Step = step; len(f.present) > 0 {
		f.steps, f.present = append(f.steps, f.present), nil
	}
	return c, f.err
}

func (f *fileSnapshot) SkipChanges(context.Context) error {
	f.skipped, f.present = append(f.skipped, f.present...), nil
	return f.err
}

func (f *fileSnapshot) LastStep(context.Context) (Changes, error) {
	if len(f.steps) == 0 {
		return Changes{}, f.err
	}
	c := filesChanged(f.steps[len(f.steps)-1]...)
	c.Step = len(f.steps)
	return c, f.err
}

func (f *fileSnapshot) UndoStep(context.Context) (string, error) {
	f.undone = append(f.undone, fmt.Sprint(len(f.steps)))
	f.steps = f.steps[:len(f.steps)-1]
	return "Undone: a step.", f.err
}

// TestUndo checks what /undo asks and undoes.
func TestUndo(t *testing.T) {
	two := [][]string{{"a.py", "b.py"}, {"c.py"}}
	for _, tt := range []struct {
		name    string
		steps   [][]string
		answers []string // the last one ends the session
		undone  string
		told    string // what the model is told
		notice  string
	}{
		{"the last step", two, []string{"/undo", "1", "y", ""}, "2", "changes that step 2 made in files: c.py +1.", "The last step that changed files is step 2: c.py +1"},
		{"all", two, []string{"/undo", "all", "y", ""}, "all", "put all files back", "  remove  b.py\n"},
		{"neither", two, []string{"/undo", "", ""}, "", "", "Nothing was undone."},
		{"another answer", two, []string{"/undo", "2", "n", ""}, "", "", "Please answer 1, all or n."},
		{"not after all", two, []string{"/undo", "1", "", ""}, "", "", "Nothing was undone."},
		{"said with the command", two, []string{"/undo 1", "y", "/UNDO ALL", "yes", ""}, "2 all", "put all files back", "  restore a.py\n"},
		{"step by step", two, []string{"/undo 1", "y", "/undo 1", "y", "/undo 1", ""}, "2 1", "step 1", "Nothing has changed"},
		{"one step is everything", two[:1], []string{"/undo", "y", ""}, "all", "put all files back", "when the session began"},
		{"no such step", two, []string{"/undo 3", ""}, "", "", "/undo takes 1, for the last step that changed files, or all."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			snapshot := &fileSnapshot{steps: tt.steps}
			frontend := &noticeFrontend{scriptedFrontend: scriptedFrontend{answers: tt.answers}}
			s := New(Config{Frontend: frontend, Snapshot: snapshot, ConfirmExit: true, Inbox: agent.NewInbox()})
			defer s.Close()
			if text, err := s.NextTask(t.Context(), nil); text != "" || err != nil || len(frontend.asked) != len(tt.answers) {
				t.Errorf("%q, %v after %d questions", text, err, len(frontend.asked))
			}
			if got := strings.Join(snapshot.undone, " "); got != tt.undone {
				t.Errorf("undone: %q, want %q", got, tt.undone)
			}
			if told := strings.Join(s.Inbox.TakePending(), "\n"); !strings.Contains(told, tt.told) || tt.told == "" && told != "" {
				t.Errorf("the model is told %q, want %q", told, tt.told)
			}
			if !strings.Contains(frontend.notices, tt.notice) {
				t.Errorf("notices %q lack %q", frontend.notices, tt.notice)
			}
		})
	}
}

// Changes before a question are those of a step, which an event shows; changes while it is open are
// the user's, unless subagents work.
func TestStepsAndQuestions(t *testing.T) { synctest.Test(t, testStepsAndQuestions) }

func testStepsAndQuestions(t *testing.T) {
	snapshot, bus := &fileSnapshot{present: []string{"a.py"}}, events.NewBus()
	sub := bus.Subscribe(0)
	frontend := &editingFrontend{snapshot: snapshot}
	s := New(Config{Frontend: frontend, Snapshot: snapshot, Events: bus, Mode: Confirm, Inbox: agent.NewInbox()})
	defer s.Close()
	go s.Watch(t.Context(), bus.Subscribe(0))
	decide := func(fromChild bool) {
		t.Helper()
		if d, err := s.Decide(t.Context(), agent.ApprovalRequest{Command: "ls", FromChild: fromChild}); err != nil || d.Action != agent.Allow {
			t.Fatal(d, err)
		}
	}
	decide(false)
	snapshot.present = []string{"b.py", "c.py"}
	if text, err := s.NextCommand(t.Context()); text != "" || err != nil {
		t.Fatal(text, err)
	}
	decide(true)
	if _, err := s.NextCommand(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	bus.Close()
	var shown []string
	for e := range sub.All(t.Context()) {
		if e, ok := e.Event.(events.FilesChanged); ok {
			shown = append(shown, e.Text()+" ("+e.Patch+")")
		}
	}
	want := "a.py +1 (patch of a.py); b.py +1, c.py +1 -1 (patch of b.py c.py); edited 2 +1 (patch of edited 2)"
	if got := strings.Join(shown, "; "); got != want || strings.Join(snapshot.skipped, " ") != "edited 1" {
		t.Errorf("shown %q, want %q; skipped %q", got, want, snapshot.skipped)
	}
}

// The model is called while the changes of a step are found. They are shown before its reply, and no
// command runs before they are known.
func TestSlowStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frontend, bus := &eventFrontend{}, events.NewBus()
		s := New(Config{Frontend: frontend, Snapshot: slowSnapshot{}, Events: bus, Mode: Yolo})
		defer s.Close()
		sub := bus.Subscribe(0)
		go s.Watch(t.Context(), sub)
		start := time.Now()
		bus.Publish(events.OutputChunk{Data: []byte("output")})
		if _, err := s.NextCommand(t.Context()); err != nil || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		bus.Publish(events.TextDelta{Text: "reply"})
		if d, err := s.Decide(t.Context(), agent.ApprovalRequest{Command: "ls"}); err != nil || d.Action != agent.Allow || time.Since(start) != time.Second {
			t.Errorf("%+v, %v after %v", d, err, time.Since(start))
		}
		bus.Close()
		synctest.Wait()
		if got := strings.Join(frontend.shown, " "); got != "output_chunk files_changed text_delta" {
			t.Errorf("shown: %s", got)
		}
	})
}

// Also if the display is late, the changes of each step are shown after the step.
func TestLateDisplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frontend, bus := &eventFrontend{}, events.NewBus()
		s := New(Config{Frontend: frontend, Snapshot: slowSnapshot{}, Events: bus, Mode: Yolo})
		defer s.Close()
		sub := bus.Subscribe(0)
		for range 2 {
			bus.Publish(events.OutputChunk{Data: []byte("output")})
			if _, err := s.NextCommand(t.Context()); err != nil {
				t.Fatal(err)
			}
			bus.Publish(events.TextDelta{Text: "reply"})
			s.WaitForStep(t.Context())
		}
		bus.Close()
		s.Watch(t.Context(), sub)
		step := "output_chunk files_changed text_delta"
		if got := strings.Join(frontend.shown, " "); got != step+" "+step {
			t.Errorf("shown: %s", got)
		}
	})
}

// slowSnapshot needs a second for the changes of a step.
type slowSnapshot struct{ fixedSnapshot }

func (slowSnapshot) RecordStep(context.Context, int) (Changes, error) {
	time.Sleep(time.Second)
	return Changes{Patch: "patch"}, nil
}

// eventFrontend records the kinds of the events that it shows.
type eventFrontend struct {
	noticeFrontend
	shown []string
}

func (f *eventFrontend) ShowEvent(e events.Envelope) {
	f.shown = append(f.shown, string(e.Event.Kind()))
}

// editingFrontend changes a file at each question, and answers yes.
type editingFrontend struct {
	noticeFrontend
	snapshot *fileSnapshot
	count    int
}

func (f *editingFrontend) Ask(context.Context, Question) (string, error) {
	f.count++
	f.snapshot.present = append(f.snapshot.present, fmt.Sprintf("edited %d", f.count))
	return "y", nil
}

// A failure ends the recording of steps, and is said once.
func TestStepsFail(t *testing.T) {
	frontend := &noticeFrontend{scriptedFrontend: scriptedFrontend{answers: []string{"y", "y"}}}
	s := New(Config{Frontend: frontend, Snapshot: &fileSnapshot{err: errors.New("disk full")}, Mode: Confirm})
	defer s.Close()
	for range 2 {
		if d, err := s.Decide(t.Context(), agent.ApprovalRequest{Command: "ls"}); err != nil || d.Action != agent.Allow {
			t.Error(d, err)
		}
	}
	if want := "The changes of each step are not shown from now on: disk full. /d shows all changes.\n"; frontend.notices != want {
		t.Errorf("%q, want %q", frontend.notices, want)
	}
}
