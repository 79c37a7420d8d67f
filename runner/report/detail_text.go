package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
)

// Maximum number of printed lines.
const (
	maxCommandLines = 6
	maxOutputLines  = 8
)

// Doc returns the detail for readers.
func (d Detail) Doc() *doc.Doc {
	t := &doc.Doc{}
	if d.hasVerdictsOnly() {
		t.Paragraph(d.ID, 0, 2)
		t.Paragraph(d.labelsText(), 2, 4)
		for _, v := range d.Verdicts {
			v.add(t, d.Run)
		}
		return t
	}
	t.Paragraph(d.ID+": "+d.outcomeText(), 0, 2)
	t.Paragraph(d.Error, 2, 6)
	t.Paragraph(d.Hint, 2, 6)
	t.Paragraph(d.labelsText(), 2, 4)
	for _, text := range d.Warnings {
		t.Paragraph("warning: "+text, 2, 3)
	}
	for _, v := range d.Verdicts {
		v.add(t, d.Run)
	}
	if len(d.AttemptList) > 0 {
		t.Blank()
		d.addAttempts(t)
	}
	if text := phasesText(d.phaseTimes()); text != "" {
		t.Paragraph(fmt.Sprintf("time of attempt %d: %s", d.ShownAttempt, text), 0, 2)
	}
	for _, a := range d.AttemptList {
		if a.Number == d.ShownAttempt && a.NetworkProof != "" {
			t.Paragraph(fmt.Sprintf("network isolation of attempt %d: %s", a.Number, a.NetworkProof), 0, 1)
		}
	}
	if len(d.LastSteps) > 0 {
		t.Blank()
		t.Heading(fmt.Sprintf("last steps of attempt %d", d.ShownAttempt))
	}
	for _, step := range d.LastSteps {
		t.Blank()
		step.add(t)
	}
	t.Blank()
	for _, path := range d.Files {
		t.Line(0, "%s", path)
	}
	if len(d.Files) == 0 {
		t.Line(0, "the files of the attempts are missing; shown from results.json")
	}
	addUnreadable(t, d.Unreadable)
	return t
}

func (d Detail) labelsText() string {
	if len(d.Labels) == 0 {
		return ""
	}
	return "labels: " + strings.Join(d.Labels, ", ")
}

// phaseTimes returns the time that the shown attempt spent in each phase, and the
// time of its evaluation.
func (d Detail) phaseTimes() (times []phaseTime) {
	for _, a := range d.AttemptList {
		if a.Number == d.ShownAttempt {
			times = phaseTimesOf(a.Times)
		}
	}
	for _, v := range slices.Backward(d.Verdicts) {
		if v.countsTime && len(times) > 0 {
			return append(times, phaseTime{evaluationPhase, v.Seconds})
		}
	}
	return times
}

// hasVerdictsOnly reports whether the instance has verdicts but no attempt.
func (d Detail) hasVerdictsOnly() bool {
	return d.Class == "" && len(d.AttemptList)+len(d.Files) == 0 && len(d.Verdicts) > 0
}

func (d Detail) outcomeText() string {
	switch {
	case d.Class == "":
		return "no attempt has ended yet"
	case !d.Class.IsResult():
		return fmt.Sprintf("%s (%s), no result", d.Status, d.Class)
	}
	text := fmt.Sprintf("%s after %s, %s", d.Status, text.Count(d.Steps, "step"), patchText(d.Row))
	return text
}

func (d Detail) addAttempts(t *doc.Doc) {
	rows := [][]string{{"attempt", "outcome", "steps", "cost", "time", "began"}}
	var amounts []float64
	for _, a := range d.AttemptList {
		amounts = append(amounts, float64(a.Cost))
	}
	cost := unit.CostColumn(amounts...)
	for _, a := range d.AttemptList {
		outcome := a.Status
		if a.Class == "" {
			outcome = "not finished"
		}
		began := "-"
		if !a.Start.IsZero() {
			began = a.Start.Local().Format("2006-01-02 15:04")
		}
		number := fmt.Sprint(a.Number)
		if a.Repetition > 0 {
			number += fmt.Sprintf(" (#%d)", a.Repetition)
		}
		rows = append(rows, []string{
			number, outcome, fmt.Sprint(a.Steps), cost(float64(a.Cost), a.Unpriced == 0), unit.Seconds(a.Seconds), began,
		})
	}
	t.Table("rsrrrl", rows)
}

func (s LastStep) add(t *doc.Doc) {
	switch {
	case s.CallError != "":
		t.Line(0, "step %d: the model call failed", s.Step)
		t.Paragraph(s.CallError, 2, maxOutputLines)
		return
	case s.Command == "":
		t.Line(0, "step %d: no command; end of the reply:", s.Step)
		t.Excerpt(s.Reply, "  ", -maxOutputLines)
		return
	case s.Unfinished:
		t.Line(0, "step %d: the command has no result", s.Step)
	case s.TimedOut:
		t.Line(0, "step %d: timeout after %s", s.Step, unit.Seconds(s.Seconds))
	default:
		t.Line(0, "step %d: exit %d after %s", s.Step, s.ExitCode, unit.Seconds(s.Seconds))
	}
	t.Excerpt(s.Command, "  $ ", maxCommandLines)
	t.Excerpt(s.Output, "    ", -maxOutputLines)
	t.Paragraph(s.Exception, 4, 2)
}
