package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/savedlogs"
	"github.com/minibench/mini/runner/regrade"
)

// classWidth is the width of the longest class, in cells.
const classWidth = 14

// WriteVerdict writes the result of grading one saved log in one line, or in more
// if the note does not fit. It never truncates the path, so that users can copy it.
func WriteVerdict(w io.Writer, line savedlogs.Line, width int) error {
	head := fmt.Sprintf("%-*s%s%s", classWidth, line.Class, table.ColumnGap, text.Printable(line.Path))
	note := text.Printable(verdictNote(line))
	if note != "" && ansi.StringWidth(head)+len(table.ColumnGap)+ansi.StringWidth(note) <= width {
		head, note = head+table.ColumnGap+note, ""
	}
	if note != "" {
		head += "\n" + strings.TrimSuffix(table.Paragraph(note, width, classWidth+len(table.ColumnGap), 3), "\n")
	}
	_, err := fmt.Fprintln(w, head)
	return err
}

// verdictNote returns the note that explains a result.
func verdictNote(line savedlogs.Line) string {
	reason := ""
	if line.InfraReason != nil {
		reason = *line.InfraReason
	}
	switch line.Class {
	case savedlogs.Unresolved:
		if !line.Applied {
			return strings.TrimSuffix("no results in the log: "+reason, ": ")
		}
		var parts []string
		if c := line.Counts.FailToPass; c.Total > 0 {
			parts = append(parts, fmt.Sprintf("fixed %d of %d", c.Success, c.Total))
		}
		if c := line.Counts.PassToPass; c.Total > 0 {
			parts = append(parts, fmt.Sprintf("kept %d of %d", c.Success, c.Total))
		}
		return strings.Join(parts, ", ")
	case savedlogs.Empty:
		return "run without a patch"
	case savedlogs.Infrastructure:
		return reason
	case savedlogs.Errored:
		return *line.Error
	}
	return ""
}

// WriteTotals writes the totals of graded logs: the classes, and the rate of
// each set of predictions, or of all logs if there is one set.
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
	for _, set := range t.Sets {
		text := set.Name + ": no log could be graded"
		if set.Graded > 0 {
			text = set.Name + ": " + NewResolveRate(set.Resolved, set.Graded).text("resolved")
		}
		s.WriteString(table.Paragraph(text, width, 0, 4))
	}
	if graded := t.Graded(); graded > 0 && len(t.Sets) == 0 {
		rate := NewResolveRate(t.Classes[savedlogs.Resolved], graded)
		s.WriteString(table.Paragraph(fmt.Sprintf("%s (95%% interval %s to %s) of %s that could be graded",
			unit.Percent(rate.Rate), unit.Percent(rate.Low), unit.Percent(rate.High), text.Count(graded, "log")), width, 0, 2))
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

// maxChanges is the maximum number of listed changes, and of listed failures. The
// JSON form has all.
const maxChanges = 20

// WriteRegraded writes the changes of a regrading and the resulting score. dryRun
// selects the wording for a regrading that has not changed the run folder.
func WriteRegraded(w io.Writer, r regrade.Result, unreadable []string, scores []Score, dryRun bool, width int) error {
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
	for i, failure := range r.Failed {
		if i == maxChanges {
			fmt.Fprintf(&b, "... and %d more not regraded; --json shows all\n", len(r.Failed)-i)
			break
		}
		text := fmt.Sprintf("%s remains %s: %s", failure.Instance, withSpaces(string(failure.Class)), failure.Reason)
		b.WriteString(table.Paragraph(text, width, 0, 3))
	}
	b.WriteString(unreadableText(unreadable, width))
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
