package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/savedlogs"
	"github.com/minibench/mini/runner/regrade"
)

// classWidth is the width of the longest class, in cells.
const classWidth = 14

// WriteVerdict writes the result of grading one saved log: one line, or more if
// the note does not fit. The path is never truncated, so that it can be copied.
func WriteVerdict(w io.Writer, l savedlogs.Line, width int) error {
	head := fmt.Sprintf("%-*s%s%s", classWidth, l.Class, table.ColumnGap, text.Printable(l.Path))
	note := text.Printable(verdictNote(l))
	if note != "" && ansi.StringWidth(head)+len(table.ColumnGap)+ansi.StringWidth(note) <= width {
		head, note = head+table.ColumnGap+note, ""
	}
	if note != "" {
		head += "\n" + strings.TrimSuffix(table.Paragraph(note, width, classWidth+len(table.ColumnGap), 3), "\n")
	}
	_, err := fmt.Fprintln(w, head)
	return err
}

// verdictNote explains a result.
func verdictNote(l savedlogs.Line) string {
	reason := ""
	if l.InfraReason != nil {
		reason = *l.InfraReason
	}
	switch l.Class {
	case savedlogs.Unresolved:
		if !l.Applied {
			return strings.TrimSuffix("no results in the log: "+reason, ": ")
		}
		var parts []string
		if c := l.Counts.FailToPass; c.Total > 0 {
			parts = append(parts, fmt.Sprintf("fixed %d of %d", c.Success, c.Total))
		}
		if c := l.Counts.PassToPass; c.Total > 0 {
			parts = append(parts, fmt.Sprintf("kept %d of %d", c.Success, c.Total))
		}
		return strings.Join(parts, ", ")
	case savedlogs.Empty:
		return "run without a patch"
	case savedlogs.Infrastructure:
		return reason
	case savedlogs.Errored:
		return *l.Error
	}
	return ""
}

// WriteTotals writes the totals of graded logs: the classes, and the rate of
// each set of predictions.
func WriteTotals(w io.Writer, t savedlogs.Totals, width int) error {
	digits := len(fmt.Sprint(t.Logs))
	var s strings.Builder
	for _, class := range savedlogs.Classes() {
		n := t.Classes[class]
		if n == 0 && class != savedlogs.Resolved && class != savedlogs.Unresolved {
			continue
		}
		head := fmt.Sprintf("%-*s%s%*d", classWidth, class, table.ColumnGap, digits, n)
		if note := classNote(t, class); note != "" {
			indent := len(head) + len(table.ColumnGap)
			head += table.ColumnGap + strings.TrimLeft(table.Paragraph(note, width, indent, 5), " ")
		} else {
			head += "\n"
		}
		s.WriteString(head)
	}
	for _, of := range t.Sets {
		text := of.Name + ": no log could be graded"
		if of.Graded > 0 {
			text = of.Name + ": " + NewResolveRate(of.Resolved, of.Graded).text("resolved")
		}
		s.WriteString(table.Paragraph(text, width, 0, 4))
	}
	if graded := t.Graded(); graded > 0 && len(t.Sets) == 0 {
		rate := NewResolveRate(t.Classes[savedlogs.Resolved], graded)
		s.WriteString(table.Paragraph(fmt.Sprintf("%s (95%% interval %s to %s) of %s that could be graded",
			percent(rate.Rate), percent(rate.Low), percent(rate.High), text.Count(graded, "log")), width, 0, 2))
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func classNote(t savedlogs.Totals, class savedlogs.Class) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	switch class {
	case savedlogs.Unresolved:
		add(t.Partial, "partially resolved")
		add(t.WithoutResults, "without results in the log")
		for _, r := range grade.FailureReasons(grade.TierAmbiguous) {
			add(t.Reasons[r], r)
		}
	case savedlogs.Infrastructure:
		for _, r := range grade.FailureReasons(grade.TierEnvironment) {
			add(t.Reasons[r], r)
		}
	case savedlogs.Errored:
		parts = append(parts, "the log cannot be read, or its parser crashed")
	case savedlogs.Empty:
		parts = append(parts, "run without a patch: patch.diff is empty")
	}
	return strings.Join(parts, ", ")
}

// maxChanges is the maximum number of listed verdicts. The JSON form has all.
const maxChanges = 20

// WriteRegraded writes the changes of a regrading and the resulting score. With
// dryRun nothing has been written to the run folder.
func WriteRegraded(w io.Writer, r regrade.Result, unread []string, scores []Score, dryRun bool, width int) error {
	var b strings.Builder
	rows := [][]string{}
	for _, c := range r.Changed[:min(maxChanges, len(r.Changed))] {
		change := withSpaces(string(c.From)) + " -> " + withSpaces(string(c.To))
		rows = append(rows, []string{c.Instance + ":", change, c.Model})
	}
	b.WriteString(table.Table(width, "ils", rows))
	if more := len(r.Changed) - maxChanges; more > 0 {
		fmt.Fprintf(&b, "... and %d more; --json shows all\n", more)
	}
	for i, k := range r.Failed {
		if i == maxChanges {
			fmt.Fprintf(&b, "... and %d more not regraded; --json shows all\n", len(r.Failed)-i)
			break
		}
		text := fmt.Sprintf("%s remains %s: %s", k.Instance, withSpaces(string(k.Class)), k.Reason)
		b.WriteString(table.Paragraph(text, width, 0, 3))
	}
	b.WriteString(unreadableText(unread, width))
	b.WriteString(table.Paragraph(regradedText(r, dryRun), width, 0, 2))
	if n := len(scores); n > 0 {
		b.WriteString("\n")
		if err := scores[n-1].Write(&b, width); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func regradedText(r regrade.Result, dryRun bool) string {
	line := fmt.Sprintf("%d of %s changed", len(r.Changed), text.Count(r.Verdicts, "verdict"))
	if dryRun {
		line = fmt.Sprintf("%d of %s would change", len(r.Changed), text.Count(r.Verdicts, "verdict"))
	}
	if r.Updated > 0 {
		line += fmt.Sprintf(", %d updated with the same verdict", r.Updated)
	}
	if n := len(r.Failed); n > 0 {
		line += fmt.Sprintf(", %d could not be regraded", n)
	}
	return line
}
