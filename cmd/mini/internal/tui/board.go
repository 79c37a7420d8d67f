package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// board is what a run looks like at this moment, folded from its events. It
// holds foreign text as it came; what is drawn is made printable then.
type board struct {
	start    time.Time // of the run
	total    int       // instances to run
	skipped  int       // had a result before
	done     int
	classes  map[trajectories.Class]int
	judged   map[verdicts.Class]int    // verdicts
	verdict  map[string]verdicts.Class // the newest of an instance
	judging  map[string]bool           // instances that are being evaluated
	again    int                       // attempts that failed and were, or will be, tried again
	cost     float64                   // of the attempts that ended, US dollars
	unpriced bool                      // some of it nobody knows
	workers  []worker
	at       map[string]int  // instance -> its worker
	ended    map[string]bool // instances that are not tried again
	pulls    []runner.PullState
	notes    []note // newest last
	warned   map[string]bool
	widest   int    // of the ids so far, in bytes
	said     string // mini's last words to the user, beside the events
	// halted is Pause or Drain while somebody holds the run back, else empty.
	halted runner.Action
}

// worker is a row.
type worker struct {
	instance string // with its sample, as the screen has it; empty while idle
	id       string // without
	attempt  int
	phase    runner.Phase
	since    time.Time // when the phase began
	image    string    // that is needed to start
	step     int
	cost     float64
	command  string // the current one, or the last
	current  bool   // says which
}

// note is something that ended, or a warning.
type note struct {
	at       time.Time
	instance string
	id       string // without its sample, where an attempt of it has ended
	attempt  int
	class    trajectories.Class // empty for a warning, and for a verdict
	verdict  verdicts.Class
	again    bool
	text     string
}

// Bounds of what is kept: a screen shows no more.
const (
	maxNotes    = 100
	maxWarnings = 1000
	maxText     = 400 // bytes of an error or warning
)

func newBoard() *board {
	return &board{
		classes: map[trajectories.Class]int{}, judged: map[verdicts.Class]int{}, judging: map[string]bool{}, verdict: map[string]verdicts.Class{},
		at: map[string]int{}, ended: map[string]bool{}, warned: map[string]bool{},
	}
}

// apply takes in one event.
func (b *board) apply(e runner.Event) {
	switch e.Type {
	case runner.RunStarted:
		b.start, b.total, b.skipped = e.Time, e.Total-e.Skipped, e.Skipped
		b.workers = make([]worker, max(0, min(e.Workers, b.total)))
	case runner.AttemptStarted:
		w := b.worker(e.Who())
		delete(b.ended, e.Who())
		*w = worker{instance: e.Who(), id: e.Instance, attempt: e.Attempt, phase: runner.Starting, since: e.Time}
		b.widest = max(b.widest, len(e.Who()))
	case runner.AttemptResumed:
		// What it cost before is no cost of this run, and is in its outcome.
		b.cost -= e.Cost
		w := b.worker(e.Who())
		w.step, w.cost = e.Step, e.Cost
	case runner.Doing:
		b.doing(e)
	case runner.SandboxReady:
		for _, text := range e.Warnings {
			b.warn(e, text)
		}
	case runner.Step:
		w := b.worker(e.Who())
		w.step, w.cost, w.current = e.Step, e.Cost, false
	case runner.FormatError:
		b.worker(e.Who()).cost = e.Cost
	case runner.Pull:
		b.pull(e)
	case runner.Warning:
		b.warn(e, e.Text)
	case runner.Controlled:
		b.controlled(e)
	case runner.Kept:
		b.note(note{at: e.Time, instance: e.Who(), text: bounded(e.Text)})
	case runner.AttemptFinished:
		b.finished(e)
	case runner.EvaluationAttempt:
		b.judging[e.Who()] = true
	case runner.Verdict:
		b.judge(e)
	}
}

// controlled takes in what somebody has told the run to do.
func (b *board) controlled(e runner.Event) {
	b.total = e.Total
	if e.Class != "" { // it had ended, and is begun anew
		b.done--
		b.classes[e.Class]--
		delete(b.ended, e.Who())
	}
	switch e.Action {
	case runner.Pause, runner.Drain:
		b.halted = e.Action
	case runner.Resume:
		b.halted = ""
	}
	b.note(note{at: e.Time, instance: e.Who(), text: fmt.Sprintf("%s (%s)", bounded(e.Text), runner.Whose(e.By))})
}

// worker is the row of an instance: the one it has, or the first idle one.
func (b *board) worker(instance string) *worker {
	if i, ok := b.at[instance]; ok {
		return &b.workers[i]
	}
	i := slices.IndexFunc(b.workers, func(w worker) bool { return w.instance == "" })
	if i < 0 {
		i = len(b.workers)
		b.workers = append(b.workers, worker{})
	}
	b.at[instance] = i
	b.workers[i] = worker{instance: instance}
	return &b.workers[i]
}

func (b *board) doing(e runner.Event) {
	if e.Phase == runner.Left {
		if i, ok := b.at[e.Who()]; ok {
			delete(b.at, e.Who())
			b.workers[i] = worker{}
		}
		return
	}
	for _, w := range b.rowsOf(e) {
		w.doing(e)
	}
}

// rowsOf are the rows that an event is about. Sandboxes know instances only: what
// they say holds for all of its samples that are being started.
func (b *board) rowsOf(e runner.Event) []*worker {
	if _, ok := b.at[e.Who()]; ok || e.Sample != 0 {
		return []*worker{b.worker(e.Who())}
	}
	var rows []*worker
	for i := range b.workers {
		w := &b.workers[i]
		if strings.HasPrefix(w.instance, e.Instance+"#") && (w.phase == runner.Starting || w.phase == runner.Scrubbing || w.phase == runner.Waiting) {
			rows = append(rows, w)
		}
	}
	if rows == nil {
		rows = append(rows, b.worker(e.Who()))
	}
	return rows
}

// doing says what a worker is in the middle of.
func (w *worker) doing(e runner.Event) {
	if w.phase != e.Phase || e.Phase == runner.Running {
		w.since = e.Time
	}
	w.phase, w.current = e.Phase, false
	switch e.Phase {
	case runner.Starting:
		w.image = e.Text
	case runner.Running:
		w.command, w.current = e.Command, true
	case runner.Rebuilding:
		w.command, w.current = fmt.Sprintf("%d of %d  %s", e.Done, e.Total, e.Command), true
	}
	if e.Phase != runner.Starting && e.Phase != runner.Scrubbing && e.Phase != runner.Waiting {
		w.step, w.cost = e.Step, e.Cost
	}
}

// pull keeps the pulls that go on, in the order in which they began.
func (b *board) pull(e runner.Event) {
	if e.Pull == nil {
		return
	}
	i := slices.IndexFunc(b.pulls, func(p runner.PullState) bool { return p.Image == e.Pull.Image })
	switch {
	case e.Pull.Done && i >= 0:
		b.pulls = slices.Delete(b.pulls, i, i+1)
	case e.Pull.Done:
	case i >= 0:
		b.pulls[i] = *e.Pull
	default:
		b.pulls = append(b.pulls, *e.Pull)
	}
}

// pulling says whether an image is on its way.
func (b *board) pulling(image string) bool {
	return image != "" && slices.ContainsFunc(b.pulls, func(p runner.PullState) bool { return p.Image == image })
}

// warn notes a warning the first time: what holds for all is said once, with
// the first instance as an example.
func (b *board) warn(e runner.Event, text string) {
	text = bounded(text)
	shape := report.Shape(text, e.Instance)
	if b.warned[shape] || len(b.warned) >= maxWarnings {
		return
	}
	b.warned[shape] = true
	b.note(note{at: e.Time, instance: e.Who(), text: text})
}

func (b *board) finished(e runner.Event) {
	o := e.Outcome
	if o == nil {
		return
	}
	b.cost += float64(o.Cost)
	b.unpriced = b.unpriced || o.Usage.Unpriced > 0
	b.worker(e.Who()).cost = 0
	if e.Again {
		b.again++
	} else {
		b.done++
		b.classes[o.Class]++
		b.ended[e.Who()] = true
	}
	b.note(note{at: e.Time, instance: e.Who(), id: e.Instance, attempt: e.Attempt, class: o.Class, again: e.Again, text: ending(o)})
}

// judge takes in how an evaluation ended, which goes on beside the workers. One of
// an instance that was begun anew takes the place of the one before.
func (b *board) judge(e runner.Event) {
	if !e.Again {
		delete(b.judging, e.Who())
		b.judged[b.verdict[e.Who()]]--
		b.verdict[e.Who()] = verdicts.Class(e.Verdict)
		b.judged[verdicts.Class(e.Verdict)]++
	}
	b.note(note{at: e.Time, instance: e.Who(), verdict: verdicts.Class(e.Verdict), again: e.Again, text: bounded(report.Judged(e))})
}

func (b *board) note(n note) {
	if len(b.notes) == maxNotes {
		b.notes = slices.Delete(b.notes, 0, 1)
	}
	b.notes = append(b.notes, n)
}

// say keeps mini's own words until the next.
func (b *board) say(text string) {
	b.said = strings.TrimPrefix(strings.TrimSpace(bounded(text)), "mini: ")
}

// spent is the cost so far, with that of the attempts at work.
func (b *board) spent() float64 {
	sum := b.cost
	for _, w := range b.workers {
		sum += w.cost
	}
	return sum
}

// perHour is how many instances end in an hour, at the rate so far.
func (b *board) perHour(now time.Time) float64 {
	if took := now.Sub(b.start); b.done > 0 && took > 0 {
		return float64(b.done) / took.Hours()
	}
	return 0
}

// left is how long the rest will take at the rate so far; negative when that
// cannot be told, as while somebody holds the run back.
func (b *board) left(now time.Time) time.Duration {
	rate := b.perHour(now)
	if rate == 0 || b.done >= b.total || b.halted != "" {
		return -1
	}
	return time.Duration(float64(b.total-b.done) / rate * float64(time.Hour))
}

// bounded is the beginning of a text.
func bounded(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
