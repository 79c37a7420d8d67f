package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
)

// Maximum number of printed lines.
const (
	maxCommandLines = 6
	maxOutputLines  = 8
)

// Write writes the detail as text, in lines of at most width cells. It never
// truncates paths of files.
func (d Detail) Write(w io.Writer, width int) error {
	var s strings.Builder
	if d.hasVerdictsOnly() {
		s.WriteString(table.Paragraph(d.ID, width, 0, 2) + d.labelsText(width))
		for _, v := range d.Verdicts {
			s.WriteString(v.text(d.Run, width))
		}
		_, err := io.WriteString(w, s.String())
		return err
	}
	s.WriteString(table.Paragraph(d.ID+": "+d.outcomeText(), width, 0, 2))
	for _, text := range []string{d.Error, d.Hint} {
		if text != "" {
			s.WriteString(table.Paragraph(text, width, 2, 6))
		}
	}
	s.WriteString(d.labelsText(width))
	for _, text := range d.Warnings {
		s.WriteString(table.Paragraph("warning: "+text, width, 2, 3))
	}
	for _, v := range d.Verdicts {
		s.WriteString(v.text(d.Run, width))
	}
	if len(d.AttemptList) > 0 {
		s.WriteString("\n" + d.attemptsTable(width))
	}
	if text := phasesText(d.phaseTimes()); text != "" {
		s.WriteString(table.Paragraph(fmt.Sprintf("time of attempt %d: %s", d.ShownAttempt, text), width, 0, 2))
	}
	for _, a := range d.AttemptList {
		if a.Number == d.ShownAttempt && a.NetworkProof != "" {
			s.WriteString(table.Paragraph(fmt.Sprintf("network isolation of attempt %d: %s", a.Number, a.NetworkProof), width, 0, 1))
		}
	}
	if len(d.LastSteps) > 0 {
		fmt.Fprintf(&s, "\nlast steps of attempt %d\n", d.ShownAttempt)
	}
	for _, step := range d.LastSteps {
		s.WriteString("\n" + step.text(width))
	}
	s.WriteString("\n")
	for _, path := range d.Files {
		s.WriteString(text.Printable(path) + "\n")
	}
	if len(d.Files) == 0 {
		s.WriteString("the files of the attempts are missing; shown from results.json\n")
	}
	s.WriteString(unreadableText(d.Unreadable, width))
	_, err := io.WriteString(w, s.String())
	return err
}

func (d Detail) labelsText(width int) string {
	if len(d.Labels) == 0 {
		return ""
	}
	return table.Paragraph("labels: "+strings.Join(d.Labels, ", "), width, 2, 4)
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

func (d Detail) attemptsTable(width int) string {
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
	return table.Table(width, "rsrrrl", rows)
}

func (s LastStep) text(width int) string {
	var b strings.Builder
	switch {
	case s.CallError != "":
		fmt.Fprintf(&b, "step %d: the model call failed\n", s.Step)
		b.WriteString(table.Paragraph(s.CallError, width, 2, maxOutputLines))
		return b.String()
	case s.Command == "":
		fmt.Fprintf(&b, "step %d: no command; end of the reply:\n", s.Step)
		b.WriteString(clipLines(s.Reply, "  ", width, -maxOutputLines))
		return b.String()
	case s.Unfinished:
		fmt.Fprintf(&b, "step %d: the command has no result\n", s.Step)
	case s.TimedOut:
		fmt.Fprintf(&b, "step %d: timeout after %s\n", s.Step, unit.Seconds(s.Seconds))
	default:
		fmt.Fprintf(&b, "step %d: exit %d after %s\n", s.Step, s.ExitCode, unit.Seconds(s.Seconds))
	}
	b.WriteString(clipLines(s.Command, "  $ ", width, maxCommandLines))
	b.WriteString(clipLines(s.Output, "    ", width, -maxOutputLines))
	if s.Exception != "" {
		b.WriteString(table.Paragraph(s.Exception, width, 4, 2))
	}
	return b.String()
}

// clipLines returns the first limit lines of a text, or the last -limit lines if limit
// is negative, and a line for the omitted ones. It indents each line and truncates it
// to width.
func clipLines(content, indent string, width, limit int) string {
	content = strings.TrimRight(content, "\n ")
	if content == "" {
		return ""
	}
	lines := strings.Split(content, "\n")
	var s strings.Builder
	if n := len(lines); limit < 0 && n > -limit {
		lines = lines[n+limit:]
		s.WriteString(indent + "…\n")
	}
	for i, line := range lines {
		if limit > 0 && i == limit {
			fmt.Fprintf(&s, "%s… and %s\n", strings.Repeat(" ", len(indent)), text.Count(len(lines)-i, "more line"))
			break
		}
		if i > 0 {
			indent = strings.Repeat(" ", len(indent))
		}
		s.WriteString(strings.TrimRight(indent+ansi.Truncate(text.Printable(line), width-len(indent), "…"), " ") + "\n")
	}
	return s.String()
}
