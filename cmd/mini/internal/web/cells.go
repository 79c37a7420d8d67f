package web

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/web/chart"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// cell is the outcome of one repetition of an instance.
type cell struct {
	Attempt int
	Class   chart.Class
	Title   string
}

// Letter returns the letter of the class.
func (c cell) Letter() string { return string(c.Class) }

// Style returns the name of the class in the style sheet.
func (c cell) Style() string {
	if c.Class == chart.None {
		return "N"
	}
	return string(c.Class)
}

// newCell describes a result. A nil result is an attempt that has not ended.
func newCell(number int, r *runs.Result) cell {
	c := cell{Attempt: number, Class: chart.None, Title: "has not ended"}
	if r == nil {
		return c
	}
	verdict := verdicts.Class("")
	if r.Verdict != nil {
		verdict = verdicts.Class(*r.Verdict)
	}
	c.Title = cmp.Or(r.ExitStatus, string(r.Class))
	switch {
	case verdict != "" && r.Class == trajectories.Submitted:
		c.Title = words(string(verdict))
	case verdict != "":
		c.Title = words(string(verdict)) + ", " + c.Title
	}
	switch {
	case verdict == verdicts.Resolved:
		c.Class = chart.Resolved
	case r.Class == trajectories.Interrupted:
		c.Title = cmp.Or(r.ExitStatus, "interrupted")
	case !r.Class.IsResult() || verdict == verdicts.Infrastructure || verdict == verdicts.Error:
		c.Class = chart.Infrastructure
	case r.Class == trajectories.Limit:
		c.Class = chart.Limit
	case verdict != "":
		c.Class = chart.Unresolved
	default:
		c.Class = chart.Submitted
		c.Title += ", not evaluated"
	}
	return c
}

// words returns the name of a class as words.
func words(class string) string { return strings.ReplaceAll(class, "_", " ") }

// cellsOf returns the cells of the repetitions of an instance.
func cellsOf(in runs.Instance, repetitions int) []cell {
	for _, r := range in.Repetitions {
		repetitions = max(repetitions, r.Repetition)
	}
	cells := make([]cell, min(repetitions, runs.MaxRepetitions))
	for i := range cells {
		cells[i] = newCell(0, nil)
		for _, a := range in.Attempts {
			if a.Repetition == i+1 {
				cells[i].Attempt = a.Number // of the newest attempt
			}
		}
	}
	for i := range in.Repetitions {
		r := &in.Repetitions[i]
		cells[r.Repetition-1] = newCell(r.Attempt, r)
	}
	return cells
}

// reason says why an attempt is not resolved.
type reason struct {
	Text          string
	Failed, Tests int  // tests that the row names, as far as they were run
	Ours          bool // the machine, the provider or mini failed, not the agent
}

// newReason describes a result; v is the record of its verdict, or nil.
func newReason(r *runs.Result, v *verdicts.Verdict) reason {
	var why reason
	if v != nil {
		if run := v.VerdictRun(); run != nil {
			why.Failed, why.Tests = run.Failed, run.Failed+run.Passed
		}
	}
	if why.Text = outcomes[string(r.Class)]; why.Text != "" {
		why.Ours = true
		if detail := cmp.Or(r.ExitStatus, r.Error); detail != "" {
			why.Text += ": " + text.ClipRunes(text.OneLine(detail), 60)
		}
		return why
	}
	class := verdicts.Class("")
	if r.Verdict != nil {
		class = verdicts.Class(*r.Verdict)
	}
	switch {
	case class == verdicts.Resolved:
		return why
	case class == verdicts.Infrastructure || class == verdicts.Error:
		why.Ours = true
		why.Text = outcomes[string(class)]
	case class == verdicts.Unresolved && why.Failed > 0:
		why.Text = fmt.Sprintf("%d of %s failed", why.Failed, text.Count(why.Tests, "test"))
	case outcomes[string(class)] != "":
		why.Text = outcomes[string(class)]
	default:
		why.Text = words(string(class))
	}
	if r.Class == trajectories.Limit {
		why.Text += ", " + limitText(r.ExitStatus)
	}
	return why
}

// outcomes says what classes of outcomes and verdicts mean.
var outcomes = map[string]string{
	string(trajectories.Provider):    "no result, the model provider failed",
	string(trajectories.Environment): "no result, the sandbox failed",
	string(trajectories.Interrupted): "no result, interrupted",
	string(trajectories.Internal):    "no result, a bug in mini",
	string(verdicts.Unresolved):      "tests failed",
	string(verdicts.Infrastructure):  "no verdict, the machine failed",
	string(verdicts.Error):           "no verdict, the log parser failed",
	string(verdicts.ApplyFailed):     "the patch does not apply",
	string(verdicts.Empty):           "the patch is empty",
	string(verdicts.TimedOut):        "the tests took too long",
	string(verdicts.Unstable):        "the tests pass in some runs only",
	"":                               "not evaluated",
}

// limitText names the limit of an exit status.
func limitText(status string) string {
	switch status {
	case "LimitsExceeded":
		return "limit of steps or cost"
	case "TimeExceeded":
		return "limit of time"
	case "RepeatedFormatError":
		return "too many replies without a command"
	}
	return "limit"
}
