package batch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/batch"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// stateAfter returns the state after events, with one second between them.
func stateAfter(events ...runner.Event) *batch.State {
	s := batch.New()
	for i, e := range events {
		e.Time = start.Add(time.Duration(i) * time.Second)
		s.Update(e)
	}
	return s
}

// finished returns the event of the end of an attempt.
func finished(id string, class trajectories.Class, cost float64, willRetry bool) runner.Event {
	o := &trajectories.Outcome{Class: class, Cost: model.Cost(cost)}
	return runner.Event{Type: runner.AttemptFinished, Instance: id, Attempt: 1, Outcome: o, WillRetry: willRetry}
}

func phase(p runner.Phase, id string, attempt int) runner.Event {
	return runner.Event{Type: runner.PhaseChanged, Phase: p, Instance: id, Repetition: attempt}
}

func TestCounts(t *testing.T) {
	type counts struct {
		Total, Skipped, Done, Retries, Evaluated int
		Classes                                  map[trajectories.Class]int
		Verdicts                                 map[verdicts.Class]int
		Ended, Evaluating                        map[string]bool
		Halted                                   runner.Action
	}
	started := runner.Event{Type: runner.RunStarted, Total: 7, Skipped: 2, Workers: 3}
	a := finished("a", trajectories.Submitted, 0, false)
	requeued := runner.Event{Type: runner.ControlApplied, Action: runner.Requeue, Instance: "a", Class: trajectories.Submitted, Total: 5}
	verdict := func(id, class string, willRetry bool) runner.Event {
		return runner.Event{Type: runner.Verdict, Instance: id, Verdict: class, WillRetry: willRetry}
	}
	tests := []struct {
		name   string
		events []runner.Event
		want   counts
	}{
		{"start", []runner.Event{started}, counts{Total: 5, Skipped: 2}},
		{"ends", []runner.Event{started, a, finished("b", trajectories.Provider, 0, true), finished("c", trajectories.Limit, 0, false)}, counts{
			Total: 5, Skipped: 2, Done: 2, Retries: 1, Classes: map[trajectories.Class]int{"submitted": 1, "limit": 1},
			Ended: map[string]bool{"a": true, "c": true},
		}},
		{"requeue", []runner.Event{started, a, requeued}, counts{Total: 5, Skipped: 2, Classes: map[trajectories.Class]int{"submitted": 0}}},
		{"requeue of a task that runs", []runner.Event{
			started, a, {Type: runner.ControlApplied, Action: runner.Requeue, Instance: "b", Total: 5},
		}, counts{Total: 5, Skipped: 2, Done: 1, Classes: map[trajectories.Class]int{"submitted": 1}, Ended: map[string]bool{"a": true}}},
		{"kill before the start", []runner.Event{
			started, {Type: runner.ControlApplied, Action: runner.Kill, Instance: "z", Total: 4},
		}, counts{Total: 4, Skipped: 2}},
		{"pause", []runner.Event{started, {Type: runner.ControlApplied, Action: runner.Pause, Total: 5}}, counts{Total: 5, Skipped: 2, Halted: runner.Pause}},
		{"drain, then resume", []runner.Event{
			started, {Type: runner.ControlApplied, Action: runner.Drain, Total: 5}, {Type: runner.ControlApplied, Action: runner.Resume, Total: 5},
		}, counts{Total: 5, Skipped: 2}},
		{"verdicts", []runner.Event{
			started,
			{Type: runner.EvaluationRunStarted, Instance: "a"},
			{Type: runner.EvaluationRunStarted, Instance: "b"},
			{Type: runner.EvaluationRunStarted, Instance: "c"},
			verdict("a", "resolved", false), verdict("b", "infrastructure", true),
		}, counts{
			Total: 5, Skipped: 2, Evaluated: 1, Verdicts: map[verdicts.Class]int{"resolved": 1},
			Evaluating: map[string]bool{"b": true, "c": true},
		}},
		{"verdict of a requeued task", []runner.Event{
			started, a, verdict("a", "unresolved", false), requeued, a, verdict("a", "resolved", false),
		}, counts{
			Total: 5, Skipped: 2, Done: 1, Evaluated: 2, Classes: map[trajectories.Class]int{"submitted": 1},
			Verdicts: map[verdicts.Class]int{"resolved": 1, "unresolved": 0}, Ended: map[string]bool{"a": true},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := stateAfter(tt.events...)
			got := counts{s.Total, s.Skipped, s.Done, s.Retries, s.Evaluated, s.Classes, s.Verdicts, s.Ended, s.Evaluating, s.Halted}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The spending of a batch includes running attempts, but not what earlier runs spent on
// resumed ones.
func TestSpent(t *testing.T) {
	begin := runner.Event{Type: runner.AttemptStarted, Instance: "a", Attempt: 1}
	step := func(cost float64) runner.Event {
		return runner.Event{Type: runner.CommandFinished, Instance: "a", Step: 1, Cost: cost}
	}
	resumed := runner.Event{Type: runner.AttemptResumed, Instance: "a", Step: 31, Cost: 0.5, Total: 30}
	for _, tt := range []struct {
		name   string
		events []runner.Event
		want   float64
	}{
		{"running", []runner.Event{begin, step(0.25), step(0.5)}, 0.5},
		{"format error", []runner.Event{begin, step(0.25), {Type: runner.FormatError, Instance: "a", Cost: 0.75}}, 0.75},
		{"ended", []runner.Event{begin, step(0.25), finished("a", trajectories.Submitted, 0.5, false)}, 0.5},
		{"ended without a start", []runner.Event{finished("a", trajectories.Internal, 0.5, false)}, 0.5},
		{"released without an end", []runner.Event{begin, step(0.25), phase(runner.PhaseReleased, "a", 0)}, 0.25},
		{"retried", []runner.Event{begin, step(0.25), finished("a", trajectories.Provider, 0.5, true), begin, step(0.25)}, 0.75},
		{"resumed", []runner.Event{begin, resumed, step(0.5)}, 0},
		{"resumed and ended", []runner.Event{begin, resumed, finished("a", trajectories.Submitted, 0.75, false)}, 0.25},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := stateAfter(tt.events...).Spent; got != tt.want {
				t.Errorf("spent $%v, want $%v", got, tt.want)
			}
		})
	}
}

// A worker keeps its task until the task is released; the next task gets the first idle
// worker.
func TestWorkers(t *testing.T) {
	begin := func(id string) runner.Event {
		return runner.Event{Type: runner.AttemptStarted, Instance: id, Attempt: 1}
	}
	events := []runner.Event{
		{Type: runner.RunStarted, Total: 9, Workers: 3},
		begin("a"), begin("b"), finished("a", trajectories.Provider, 0, true),
		phase(runner.PhaseWaiting, "a", 0), begin("a"), phase(runner.PhaseReleased, "a", 0), begin("c"),
		phase(runner.PhaseStarting, "elsewhere", 0), // of a sandbox of an evaluation
	}
	var got []string
	for _, w := range stateAfter(events...).Workers {
		if w == nil {
			got = append(got, "")
			continue
		}
		got = append(got, fmt.Sprint(w.ID, " ", w.Phase))
	}
	if diff := cmp.Diff([]string{"c starting", "b starting", ""}, got); diff != "" {
		t.Errorf("workers (-want +got):\n%s", diff)
	}
	if n := len(stateAfter(append(events, begin("d"), begin("e"))...).Workers); n != 4 {
		t.Errorf("%d workers for 4 tasks", n)
	}
}

func TestTask(t *testing.T) {
	begin := runner.Event{Type: runner.AttemptStarted, Instance: "a", Attempt: 1}
	running := runner.Event{Type: runner.PhaseChanged, Phase: runner.PhaseRunning, Instance: "a", Step: 2, Cost: 0.5, Command: "ls"}
	thinking := runner.Event{Type: runner.PhaseChanged, Phase: runner.PhaseThinking, Instance: "a", Step: 3, Cost: 0.5}
	queued := func(reason string) runner.Event {
		return runner.Event{Type: runner.PhaseChanged, Phase: runner.PhaseQueued, Instance: "a", Text: reason}
	}
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	tests := []struct {
		name   string
		events []runner.Event
		want   batch.Task
	}{
		{"starting", []runner.Event{begin, {Type: runner.PhaseChanged, Phase: runner.PhaseStarting, Instance: "a", Text: "img"}}, batch.Task{
			Phase: runner.PhaseStarting, PhaseStart: at(0), Image: "img",
		}},
		{"queued", []runner.Event{begin, queued("waiting for quota"), queued("waiting for a node")}, batch.Task{
			Phase: runner.PhaseQueued, PhaseStart: at(1), Reason: "waiting for a node",
		}},
		{"running", []runner.Event{begin, running, running}, batch.Task{
			Phase: runner.PhaseRunning, PhaseStart: at(2), Step: 2, Cost: 0.5, Command: "ls",
		}},
		{"thinking", []runner.Event{begin, running, thinking}, batch.Task{
			Phase: runner.PhaseThinking, PhaseStart: at(2), Step: 3, Cost: 0.5, Command: "ls",
		}},
		{"rebuilding", []runner.Event{
			begin, {Type: runner.PhaseChanged, Phase: runner.PhaseRebuilding, Instance: "a", Step: 31, Cost: 0.5, Done: 12, Total: 30, Command: "make"},
		}, batch.Task{Phase: runner.PhaseRebuilding, PhaseStart: at(1), Step: 31, Cost: 0.5, Command: "make", Rerun: 12, Reruns: 30}},
		// The event of the phase has no step and no cost.
		{"waiting for a retry", []runner.Event{begin, running, finished("a", trajectories.Provider, 0.75, true), phase(runner.PhaseWaiting, "a", 0)}, batch.Task{
			Phase: runner.PhaseWaiting, PhaseStart: at(3), Step: 2, Cost: 0.75, Command: "ls", Ended: true,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.ID, tt.want.Instance, tt.want.Attempt, tt.want.Started = "a", "a", 1, start
			if diff := cmp.Diff(&tt.want, stateAfter(tt.events...).Task("a")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Several attempts at an instance run side by side. Events about sandboxes do not tell
// the attempt; they are about those that have not begun their first step.
func TestAttempts(t *testing.T) {
	events := []runner.Event{{Type: runner.RunStarted, Total: 4, Workers: 4}}
	for n := 1; n <= 3; n++ {
		events = append(events, runner.Event{Type: runner.AttemptStarted, Instance: "a", Repetition: n, Attempt: n})
	}
	events = append(events,
		runner.Event{Type: runner.AttemptStarted, Instance: "ab", Repetition: 1, Attempt: 1},
		phase(runner.PhaseRunning, "a", 1),
		phase(runner.PhaseWaiting, "a", 2),
		phase(runner.PhaseScrubbing, "a", 0),
	)
	got := map[string]runner.Phase{}
	for _, w := range stateAfter(events...).Workers {
		got[w.ID] = w.Phase
	}
	want := map[string]runner.Phase{
		"a#1": runner.PhaseRunning, "a#2": runner.PhaseScrubbing, "a#3": runner.PhaseScrubbing, "ab#1": runner.PhaseStarting,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	s := stateAfter(append(events, phase(runner.PhaseReleased, "a", 2))...)
	if s.Task("a#2") != nil || s.Task("a#1") == nil || s.Task("a#3") == nil {
		t.Errorf("workers after a release: %+v", s.Workers)
	}
}

func TestPulls(t *testing.T) {
	pull := func(image string, layersDone int, done bool) runner.Event {
		return runner.Event{Type: runner.PullProgress, Pull: &runner.PullState{Image: image, LayersDone: layersDone, Done: done}}
	}
	s := stateAfter(pull("a", 0, false), pull("b", 1, false), pull("a", 2, false), pull("c", 0, true),
		runner.Event{Type: runner.PullProgress, Text: "a: retrying"}, pull("b", 3, true))
	if diff := cmp.Diff([]runner.PullState{{Image: "a", LayersDone: 2}}, s.Pulls); diff != "" {
		t.Errorf("pulls (-want +got):\n%s", diff)
	}
	if !s.IsPulling("a") || s.IsPulling("b") || s.IsPulling("") {
		t.Error("wrong images are being pulled")
	}
}

// An output shows the first warning of each kind, up to a limit.
func TestWarnings(t *testing.T) {
	w := batch.Warnings{}
	var got []string
	for _, e := range []runner.Event{
		{Type: runner.SandboxReady, Instance: "a__b-1", Warnings: []string{"nothing is in /tmp/x/a__b-1", "the image has no bash"}},
		{Type: runner.SandboxReady, Instance: "a__b-2", Warnings: []string{"nothing is in /tmp/x/a__b-2"}},
		{Type: runner.Warning, Text: "the image has no bash"},
		{Type: runner.AttemptFinished, Outcome: &trajectories.Outcome{Warnings: []string{"the diff is lost"}}},
		{Type: runner.RunFinished, Text: "no warning"},
	} {
		got = append(got, w.New(e)...)
	}
	if diff := cmp.Diff([]string{"nothing is in /tmp/x/a__b-1", "the image has no bash", "the diff is lost"}, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	for _, letter := range "abcdefghijklmnopqrstuvwxyz" {
		for _, second := range "abcdefghijklmnopqrstuvwxyz" {
			for _, third := range "xyz" {
				got = append(got, w.New(runner.Event{Type: runner.Warning, Text: string([]rune{letter, second, third})})...)
			}
		}
	}
	if len(got) != 1000 {
		t.Errorf("%d warnings are shown", len(got))
	}
}
