// Package report formats runs and evaluations: as lines while a run is active,
// and as summaries afterwards. It consumes the runner's events and writes text
// or JSON; it does not depend on a terminal.
package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/batch"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// PlainPrinter writes events as lines of text.
type PlainPrinter struct {
	// State is the state of the batch. Print and PrintProblem expect that it was
	// updated with the event.
	State *batch.State
	// Width returns the current width in cells, or 0 for unlimited lines. The
	// printer truncates lines about steps to this width and wraps other lines
	// between words. A nil Width means unlimited.
	Width func() int
	// Patches is the number of patches to evaluate; 0 if it is unknown.
	Patches int

	w             io.Writer
	width         int // width of the instance column
	steps         *rate.Limiter
	providerLines rate.Sometimes // limits the lines about the provider
	warnings      batch.Warnings
	queued        map[string]bool // printed reasons for waits, by queueKey
}

// Rate limits for lines about steps. With many workers, the printer drops most of
// these lines. Lines about starts and ends of attempts are not limited.
const (
	stepRate  = rate.Limit(10) // per second
	stepBurst = 10
)

// providerInterval is the minimum interval between lines about a busy provider.
const providerInterval = 30 * time.Second

// Limits of reasons for waits.
const (
	maxQueued = 10_000 // printed reasons
	maxReason = 300    // bytes of a printed reason, without the ellipsis
)

// maxCommand is the maximum length of a printed command, in characters.
const maxCommand = 72

// NewPlainPrinter returns a PlainPrinter that writes to w. ids determines the
// width of the instance column. The printer has a state of its own.
func NewPlainPrinter(w io.Writer, ids []string) *PlainPrinter {
	p := &PlainPrinter{
		State: batch.New(), w: w, warnings: batch.Warnings{}, queued: map[string]bool{}, steps: rate.NewLimiter(stepRate, stepBurst),
		providerLines: rate.Sometimes{First: 3, Interval: providerInterval},
	}
	for _, id := range ids {
		p.width = min(max(p.width, len(id)), 40)
	}
	return p
}

// Event updates the state with an event and prints the event.
func (p *PlainPrinter) Event(e runner.Event) {
	p.State.Update(e)
	p.Print(e)
}

// Print prints an event. It ignores write errors.
func (p *PlainPrinter) Print(e runner.Event) {
	switch e.Type {
	case runner.RunStarted:
		if e.Skipped > 0 {
			p.write("", 0, "skipping %d of %d %s, which %s a result", e.Skipped, e.Total, taskNoun(e), text.Verb(e.Skipped, "has", "have"))
		}
	case runner.AttemptStarted:
		if e.Attempt > 1 && e.Repetition == 0 { // the number does not tell retries from repetitions
			p.printf(e, "attempt %d", e.Attempt)
		}
	case runner.AttemptResumed:
		p.printf(e, "resuming after step %d; running %s again first", e.Step, text.Count(e.Total, "command"))
	case runner.PhaseChanged:
		p.phase(e)
	case runner.SandboxReady:
		p.printf(e, "sandbox ready after %s", unit.Seconds(e.Elapsed))
		p.warn(e)
	case runner.CommandFinished:
		if p.steps.Allow() {
			p.printShort(e, "step %-3d %s  %s", e.Step, exitText(e), truncateCommand(e.Command))
		}
	case runner.FormatError:
		p.printf(e, "step %-3d format error: %s", e.Step, cmp.Or(e.Text, "the reply is sent back"))
	case runner.CommandDenied:
		p.printShort(e, "step %-3d refused  %s", e.Step, truncateCommand(e.Command))
	case runner.PullProgress:
		p.pull(e)
	case runner.ProviderChanged:
		p.provider(e)
	case runner.ControlApplied:
		p.printf(e, "%s (%s)", e.Text, runner.SourceName(e.Source))
	case runner.SandboxKept:
		p.printf(e, "%s", e.Text)
	case runner.Warning:
		p.warn(e)
	case runner.AttemptFinished:
		p.outcome(e)
		p.warn(e)
	case runner.EvaluationRunStarted:
		p.printf(e, "%s", purposeText(e.Text))
	case runner.Verdict:
		p.verdict(e)
	}
}

// phase prints those phases that can take long before the first step.
func (p *PlainPrinter) phase(e runner.Event) {
	switch {
	case e.Phase == runner.PhaseRebuilding && p.steps.Allow():
		p.printShort(e, "rebuilding %d of %d  %s", e.Done, e.Total, truncateCommand(e.Command))
	case e.Phase == runner.PhaseQueued:
		if key := queueKey(e); !p.queued[key] && len(p.queued) < maxQueued {
			p.queued[key] = true
			p.printShort(e, "%s", text.Clip(e.Text, maxReason))
		}
	case e.Phase == runner.PhaseScrubbing && e.Text != "":
		p.printf(e, "scrubbing the repository, once for all attempts on %s", e.Text)
	case e.Phase == runner.PhaseScrubbing:
		p.printf(e, "scrubbing the repository")
	}
}

// queueKey identifies the task and the kind of the reason in a PhaseQueued event. The kind
// is the text before a colon: "waiting for a node: 0/3 nodes are available".
func queueKey(e runner.Event) string {
	kind, _, _ := strings.Cut(e.Text, ":")
	return e.TaskID() + "\x00" + text.Clip(kind, maxReason)
}

// outcome prints the end of an attempt.
func (p *PlainPrinter) outcome(e runner.Event) {
	o := e.Outcome
	mark := "ok"
	if !o.Class.IsResult() {
		mark = "FAIL"
	}
	if e.WillRetry {
		mark = "retry"
	}
	p.write("", 6, "[%d/%d] %s %-5s %s  %s  %s  %s%s", p.State.Done, p.State.Total, p.name(e), mark,
		o.ExitStatus, text.Count(o.Steps, "step"), unit.Cost(float64(o.Cost), o.Usage.Unpriced == 0), unit.Seconds(o.ActiveDuration().Seconds()),
		patchNote(o))
	if o.Error != "" {
		p.printf(e, "  %s", o.Error)
	}
	if o.Hint != "" && !e.WillRetry {
		p.printf(e, "  %s", o.Hint)
	}
}

// provider prints the state of a busy model provider, at limited intervals.
func (p *PlainPrinter) provider(e runner.Event) {
	if s := e.Provider; s != nil && (s.PauseSeconds > 0 || s.Waiting > 0) {
		p.providerLines.Do(func() { p.printf(e, "provider: %s", ProviderText(*s)) })
	}
}

// ProviderText describes the state of a provider.
func ProviderText(s runner.ProviderState) string {
	var parts []string
	if s.PauseSeconds > 0 {
		parts = append(parts, "rate-limited for "+unit.Seconds(s.PauseSeconds))
	}
	if s.MinuteFullSeconds > 0 {
		parts = append(parts, "per-minute limit reached for "+unit.Seconds(s.MinuteFullSeconds))
	}
	if s.Limit > 0 {
		parts = append(parts, text.Count(s.Limit, "request")+" in parallel")
	}
	if s.Waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", s.Waiting))
	}
	return strings.Join(parts, ", ")
}

// warn prints the warnings of an event, unless a similar one was printed. events.jsonl
// has all warnings.
func (p *PlainPrinter) warn(e runner.Event) {
	for _, text := range p.warnings.New(e) {
		p.printf(e, "warning: %s", text)
	}
}

func patchNote(o *trajectories.Outcome) string {
	switch {
	case o.Class.IsResult() && len(o.Submission) == 0:
		return "  empty patch"
	case o.Autosubmitted, o.Source == trajectories.SourceWorktree:
		return fmt.Sprintf("  patch of %d bytes (the working diff)", len(o.Submission))
	case o.Class.IsResult():
		return fmt.Sprintf("  patch of %d bytes", len(o.Submission))
	case len(o.PartialPatch) > 0:
		return fmt.Sprintf("  partial patch of %d bytes kept", len(o.PartialPatch))
	}
	return ""
}

// taskNoun returns the name of the tasks that a run counts.
func taskNoun(e runner.Event) string {
	if e.Repetition > 1 {
		return "attempts"
	}
	return "instances"
}

func truncateCommand(command string) string {
	if r := []rune(command); len(r) > maxCommand {
		return string(r[:maxCommand]) + "…"
	}
	return command
}

func exitText(e runner.Event) string {
	switch {
	case e.TimedOut:
		return "timeout"
	case e.ExitCode != 0:
		return fmt.Sprintf("exit %-2d", e.ExitCode)
	}
	return "ok     "
}

func (p *PlainPrinter) name(e runner.Event) string { return fmt.Sprintf("%-*s", p.width, e.TaskID()) }

// PrintProblem prints an event only if it is a problem: the end of an attempt
// without a result (unless it was interrupted or will be retried), a final
// infrastructure failure of an evaluation, or a warning.
func (p *PlainPrinter) PrintProblem(e runner.Event) {
	switch e.Type {
	case runner.SandboxReady, runner.Warning:
		p.warn(e)
	case runner.AttemptFinished:
		if e.WillRetry || e.Outcome.Class == trajectories.Interrupted { // interrupted by the user
			return
		}
		if !e.Outcome.Class.IsResult() {
			p.outcome(e)
		}
		p.warn(e)
	case runner.Verdict:
		if e.Verdict == string(verdicts.Infrastructure) && !e.WillRetry {
			p.verdict(e)
		}
	}
}

// verdict prints a verdict. The line is numbered if the printer knows the number of
// patches. During a run the line of a verdict is not numbered, because the numbers
// of other lines count attempts.
func (p *PlainPrinter) verdict(e runner.Event) {
	text := VerdictText(e)
	if p.Patches > 0 {
		p.write("", 6, "[%d/%d] %s  %s", p.State.Evaluated, p.Patches, p.name(e), text)
	} else {
		p.printf(e, "verdict: %s", text)
	}
}

// VerdictText formats a verdict: its class, duration and reason.
func VerdictText(e runner.Event) string {
	text := withSpaces(e.Verdict)
	if e.WillRetry {
		text += ", retrying"
	}
	text = fmt.Sprintf("%-14s", text)
	if duration := evaluationTime(e); duration != "" {
		text += fmt.Sprintf("  %-6s", duration)
	}
	if e.Text != "" && e.Verdict != string(verdicts.Resolved) {
		text += "  " + e.Text
	}
	return strings.TrimRight(text, " ")
}

// evaluationTime formats the duration of an evaluation, or "reused".
func evaluationTime(e runner.Event) string {
	switch {
	case e.Elapsed > 0:
		return unit.Seconds(e.Elapsed)
	case verdicts.Class(e.Verdict).IsFinal() && e.Verdict != string(verdicts.Empty):
		return "reused"
	}
	return ""
}

// purposeText describes the purpose of a test run.
func purposeText(purpose string) string {
	switch verdicts.Purpose(purpose) {
	case verdicts.ForRerun:
		return "evaluating again after a failure"
	case verdicts.WithoutSuspect:
		return "evaluating without the flagged hunks"
	}
	return "evaluating"
}

// NewJSONPrinter returns a function that writes events to w as the lines of
// events.jsonl, for programs that follow a run. It ignores write errors.
func NewJSONPrinter(w io.Writer) func(runner.Event) {
	return func(e runner.Event) {
		if e.IsTransient() {
			return
		}
		if line, err := e.Line(); err == nil {
			_, _ = w.Write(line)
		}
	}
}
