package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Lines of a command, and of the end of an output, that are shown.
const (
	maxCommandLines = 6
	maxOutputLines  = 8
)

// Write shows one instance to people, in lines of at most width characters;
// only the paths of its files are never cut.
func (d Detail) Write(w io.Writer, width int) error {
	var s strings.Builder
	if d.judgedOnly() {
		s.WriteString(paragraph(d.ID, width, 0, 2))
		for _, j := range d.Verdicts {
			s.WriteString(j.text(d.Run, width))
		}
		_, err := io.WriteString(w, s.String())
		return err
	}
	s.WriteString(paragraph(d.ID+": "+d.ending(), width, 0, 2))
	for _, text := range []string{d.Error, d.Hint} {
		if text != "" {
			s.WriteString(paragraph(text, width, 2, 6))
		}
	}
	for _, text := range d.Warnings {
		s.WriteString(paragraph("warning: "+text, width, 2, 3))
	}
	for _, j := range d.Verdicts {
		s.WriteString(j.text(d.Run, width))
	}
	if len(d.Tries) > 0 {
		s.WriteString("\n" + d.attempts(width))
	}
	if text := phasesText(d.took()); text != "" {
		s.WriteString(paragraph(fmt.Sprintf("time of attempt %d: %s", d.Shown, text), width, 0, 2))
	}
	if len(d.LastSteps) > 0 {
		fmt.Fprintf(&s, "\nthe last steps of attempt %d\n", d.Shown)
	}
	for _, step := range d.LastSteps {
		s.WriteString("\n" + step.text(width))
	}
	s.WriteString("\n")
	for _, path := range d.Files {
		s.WriteString(Printable(path) + "\n")
	}
	if len(d.Files) == 0 {
		s.WriteString("its files are not there; this is what results.json says\n")
	}
	s.WriteString(unreadText(d.Unread, width))
	_, err := io.WriteString(w, s.String())
	return err
}

// took is where the time of the shown attempt went.
func (d Detail) took() (all []took) {
	for _, a := range d.Tries {
		if a.Number == d.Shown {
			all = spentIn(a.Times)
		}
	}
	for _, j := range slices.Backward(d.Verdicts) {
		if j.took && len(all) > 0 {
			return append(all, took{evaluation, j.Seconds})
		}
	}
	return all
}

func (d Detail) judgedOnly() bool {
	return d.Class == "" && len(d.Tries)+len(d.Files) == 0 && len(d.Verdicts) > 0
}

func (d Detail) ending() string {
	switch {
	case d.Class == "":
		return "no attempt has ended yet"
	case !d.Class.Counts():
		return fmt.Sprintf("%s (%s), no result", d.Status, d.Class)
	}
	text := fmt.Sprintf("%s after %s, %s", d.Status, Count(d.Steps, "step"), patchOf(d.Row))
	return text
}

func (d Detail) attempts(width int) string {
	rows := [][]string{{"attempt", "outcome", "steps", "cost", "time", "began"}}
	for _, a := range d.Tries {
		outcome := a.Status
		if a.Class == "" {
			outcome = "not finished"
		}
		began := "-"
		if !a.Start.IsZero() {
			began = a.Start.Local().Format("2006-01-02 15:04")
		}
		number := fmt.Sprint(a.Number)
		if a.Sample > 0 {
			number += fmt.Sprintf(" (#%d)", a.Sample)
		}
		rows = append(rows, []string{number, outcome, fmt.Sprint(a.Steps), Spent(a.Cost, a.Unpriced == 0), span(a.Seconds), began})
	}
	return Table(width, "rsrrrl", rows)
}

func (s LastStep) text(width int) string {
	var b strings.Builder
	switch {
	case s.CallError != "":
		fmt.Fprintf(&b, "step %d: the model gave no reply\n", s.Step)
		b.WriteString(paragraph(s.CallError, width, 2, maxOutputLines))
		return b.String()
	case s.Command == "":
		fmt.Fprintf(&b, "step %d: no command was run; the reply ends\n", s.Step)
		b.WriteString(block(s.Reply, "  ", width, -maxOutputLines))
		return b.String()
	case s.Unfinished:
		fmt.Fprintf(&b, "step %d: nothing has come of its command\n", s.Step)
	case s.TimedOut:
		fmt.Fprintf(&b, "step %d: timeout after %s\n", s.Step, span(s.Seconds))
	default:
		fmt.Fprintf(&b, "step %d: exit %d after %s\n", s.Step, s.ExitCode, span(s.Seconds))
	}
	b.WriteString(block(s.Command, "  $ ", width, maxCommandLines))
	b.WriteString(block(s.Output, "    ", width, -maxOutputLines))
	if s.Exception != "" {
		b.WriteString(paragraph(s.Exception, width, 4, 2))
	}
	return b.String()
}

// block shows the first lines of a text, or with a negative limit the last
// ones, each cut to the width.
func block(text, indent string, width, limit int) string {
	text = strings.TrimRight(text, "\n ")
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	var s strings.Builder
	if n := len(lines); limit < 0 && n > -limit {
		lines = lines[n+limit:]
		s.WriteString(indent + "…\n")
	}
	for i, line := range lines {
		if limit > 0 && i == limit {
			fmt.Fprintf(&s, "%s… and %s\n", strings.Repeat(" ", len(indent)), Count(len(lines)-i, "more line"))
			break
		}
		if i > 0 {
			indent = strings.Repeat(" ", len(indent))
		}
		s.WriteString(strings.TrimRight(indent+ansi.Truncate(Printable(line), width-len(indent), "…"), " ") + "\n")
	}
	return s.String()
}
