// Package report shows what happens in a run: as plain lines while it goes on,
// and as a summary at its end. It consumes the runner's events and knows no
// terminal.
package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// Plain writes a line per event, for logs, pipes and people.
type Plain struct {
	// Width is how many cells a line may have now, 0 for as many as it needs:
	// a terminal breaks what is longer in the middle of words. Steps are cut,
	// everything else goes on in the next line. nil is 0 always.
	Width func() int
	// Patches is how many are to be judged; 0 where that is not known.
	Patches int

	w      io.Writer
	total  int
	done   int
	judged int
	width  int // of the instance column
	steps  *rate.Limiter
	busy   rate.Sometimes  // lines about the provider
	warned map[string]bool // by shape: what holds for all is said once
}

// Lines about steps come at this rate, and so many at once: with many workers
// most are left out, while starts and ends are always shown.
const (
	stepRate  = rate.Limit(10) // a second
	stepBurst = 10
)

// providerInterval is how often it is said that the provider is busy.
const providerInterval = 30 * time.Second

// maxShapes bounds how many different warnings are written.
const maxShapes = 1000

// maxShown bounds the command in a line, in characters.
const maxShown = 72

// NewPlain writes to w. The ids make the columns line up.
func NewPlain(w io.Writer, ids []string) *Plain {
	p := &Plain{w: w, warned: map[string]bool{}, steps: rate.NewLimiter(stepRate, stepBurst), busy: rate.Sometimes{First: 3, Interval: providerInterval}}
	for _, id := range ids {
		p.width = min(max(p.width, len(id)), 40)
	}
	return p
}

// Event shows one event. A writer that fails is not the run's concern.
func (p *Plain) Event(e runner.Event) {
	switch e.Type {
	case runner.RunStarted:
		p.total = e.Total - e.Skipped
		if e.Skipped > 0 {
			p.write("", 0, "%d of %d %s have a result already and are left as they are", e.Skipped, e.Total, tasksOf(e))
		}
	case runner.AttemptStarted:
		if e.Attempt > 1 && e.Sample == 0 { // among several, numbers say nothing
			p.about(e, "attempt %d", e.Attempt)
		}
	case runner.AttemptResumed:
		p.about(e, "goes on after step %d; %s to run again first", e.Step, Count(e.Total, "command"))
	case runner.Doing:
		p.doing(e)
	case runner.SandboxReady:
		p.about(e, "sandbox ready after %s", seconds(e.Elapsed))
		p.warn(e, e.Warnings...)
	case runner.Step:
		if p.steps.Allow() {
			p.short(e, "step %-3d %s  %s", e.Step, status(e), cut(e.Command))
		}
	case runner.FormatError:
		p.about(e, "step %-3d format error: %s", e.Step, cmp.Or(e.Text, "the reply is sent back"))
	case runner.Refused:
		p.short(e, "step %-3d refused  %s", e.Step, cut(e.Command))
	case runner.Pull:
		p.pull(e)
	case runner.Provider:
		p.provider(e)
	case runner.Controlled:
		p.controlled(e)
	case runner.Kept:
		p.about(e, "%s", e.Text)
	case runner.Warning:
		p.warn(e, e.Text)
	case runner.AttemptFinished:
		p.outcome(e)
		p.warn(e, e.Outcome.Warnings...)
	case runner.EvaluationAttempt:
		p.about(e, "%s", evaluating(e.Text))
	case runner.Verdict:
		p.verdict(e)
	}
}

// doing shows the phases that may last long before the first step.
func (p *Plain) doing(e runner.Event) {
	switch {
	case e.Phase == runner.Rebuilding && p.steps.Allow():
		p.short(e, "rebuilding %d of %d  %s", e.Done, e.Total, cut(e.Command))
	case e.Phase == runner.Scrubbing && e.Text != "":
		p.about(e, "scrubbing the repository, once for all attempts on %s", e.Text)
	case e.Phase == runner.Scrubbing:
		p.about(e, "scrubbing the repository")
	}
}

// outcome says how an attempt ended.
func (p *Plain) outcome(e runner.Event) {
	o := e.Outcome
	if !e.Again {
		p.done++
	}
	mark := "ok"
	if !o.Class.Counts() {
		mark = "FAIL"
	}
	if e.Again {
		mark = "again"
	}
	p.write("", 6, "[%d/%d] %s %-5s %s  %s  %s  %s%s", p.done, p.total, p.name(e), mark,
		o.ExitStatus, Count(o.Steps, "step"), Spent(o.Cost, o.Usage.Unpriced == 0), seconds(o.Took().Seconds()), patchNote(o))
	if o.Error != "" {
		p.about(e, "  %s", o.Error)
	}
	if o.Hint != "" && !e.Again {
		p.about(e, "  %s", o.Hint)
	}
}

// controlled says what somebody has told the run to do.
func (p *Plain) controlled(e runner.Event) {
	p.total = e.Total
	if e.Class != "" { // it had ended
		p.done--
	}
	p.about(e, "%s (%s)", e.Text, runner.Whose(e.By))
}

// provider says that the model's provider is busy, now and then; that it is less
// so again is for those who watch.
func (p *Plain) provider(e runner.Event) {
	if s := e.Provider; s != nil && (s.Pause > 0 || s.Waiting > 0) {
		p.busy.Do(func() { p.about(e, "provider: %s", Busy(*s)) })
	}
}

// Busy is the state of a provider in a few words.
func Busy(s runner.ProviderState) string {
	var parts []string
	if s.Pause > 0 {
		parts = append(parts, "asks all to wait "+seconds(s.Pause))
	}
	if s.Full > 0 {
		parts = append(parts, "its limit a minute lets nobody through for "+seconds(s.Full))
	}
	if s.Limit > 0 {
		parts = append(parts, Count(s.Limit, "request")+" at once")
	}
	if s.Waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", s.Waiting))
	}
	return strings.Join(parts, ", ")
}

// warn says a warning the first time, also where only names and numbers
// differ; the files of the run have every one.
func (p *Plain) warn(e runner.Event, texts ...string) {
	for _, text := range texts {
		shape := Shape(text, e.Instance)
		if !p.warned[shape] && len(p.warned) < maxShapes {
			p.warned[shape] = true
			p.about(e, "warning: %s", text)
		}
	}
}

func patchNote(o *trajectories.Outcome) string {
	switch {
	case o.Class.Counts() && len(o.Submission) == 0:
		return "  empty patch"
	case o.Autosubmitted, o.Source == trajectories.SourceWorktree:
		return fmt.Sprintf("  patch of %d bytes (the working diff)", len(o.Submission))
	case o.Class.Counts():
		return fmt.Sprintf("  patch of %d bytes", len(o.Submission))
	case len(o.PartialPatch) > 0:
		return fmt.Sprintf("  partial patch of %d bytes kept", len(o.PartialPatch))
	}
	return ""
}

// tasksOf is what a run counts.
func tasksOf(e runner.Event) string {
	if e.Sample > 1 {
		return "attempts"
	}
	return "instances"
}

func cut(command string) string {
	if r := []rune(command); len(r) > maxShown {
		return string(r[:maxShown]) + "…"
	}
	return command
}

func status(e runner.Event) string {
	switch {
	case e.TimedOut:
		return "timeout"
	case e.ExitCode != 0:
		return fmt.Sprintf("exit %-2d", e.ExitCode)
	}
	return "ok     "
}

func (p *Plain) name(e runner.Event) string { return fmt.Sprintf("%-*s", p.width, e.Who()) }

// Problem shows an event that a user should not miss: an instance that ends
// without a result, or cannot be judged, and warnings. It passes over the others.
func (p *Plain) Problem(e runner.Event) {
	switch e.Type {
	case runner.RunStarted:
		p.total = e.Total - e.Skipped
	case runner.SandboxReady:
		p.warn(e, e.Warnings...)
	case runner.Warning:
		p.warn(e, e.Text)
	case runner.AttemptFinished:
		switch {
		case e.Again, e.Outcome.Class == trajectories.Interrupted: // the user knows
			return
		case e.Outcome.Class.Counts():
			p.done++
		default:
			p.outcome(e)
		}
		p.warn(e, e.Outcome.Warnings...)
	case runner.Verdict:
		if e.Verdict == string(verdicts.Infrastructure) && !e.Again {
			p.verdict(e)
		}
	}
}

// verdict says how an evaluation ended. Beside a run, whose lines count
// instances, it is one of the lines about its instance.
func (p *Plain) verdict(e runner.Event) {
	if !e.Again {
		p.judged++
	}
	text := Judged(e)
	if p.Patches > 0 {
		p.write("", 6, "[%d/%d] %s  %s", p.judged, p.Patches, p.name(e), text)
	} else {
		p.about(e, "verdict: %s", text)
	}
}

// Judged is a verdict on a line: its class, how long it took, and why.
func Judged(e runner.Event) string {
	text := words(e.Verdict)
	if e.Again {
		text += ", tried again"
	}
	text = fmt.Sprintf("%-14s", text)
	if how := tookVerdict(e); how != "" {
		text += fmt.Sprintf("  %-6s", how)
	}
	if e.Text != "" && e.Verdict != string(verdicts.Resolved) {
		text += "  " + e.Text
	}
	return strings.TrimRight(text, " ")
}

// tookVerdict is how long an evaluation took, or that nothing had to be run.
func tookVerdict(e runner.Event) string {
	switch {
	case e.Elapsed > 0:
		return seconds(e.Elapsed)
	case verdicts.Class(e.Verdict).Final() && e.Verdict != string(verdicts.Empty):
		return "reused"
	}
	return ""
}

// evaluating says what a sandbox is made for.
func evaluating(purpose string) string {
	switch verdicts.Purpose(purpose) {
	case verdicts.ForStability:
		return "evaluating it again, since it failed"
	case verdicts.WithoutSuspect:
		return "evaluating it without what is suspicious"
	}
	return "evaluating"
}

// Lines writes each event as the line that events.jsonl has of it, for a
// program that follows a run.
type Lines struct{ w io.Writer }

// NewLines writes to w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// Event writes one event. A writer that fails is not the run's concern.
func (l *Lines) Event(e runner.Event) {
	if e.Transient() {
		return
	}
	if line, err := e.Line(); err == nil {
		_, _ = l.w.Write(line)
	}
}
