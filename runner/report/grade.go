package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/saved"
	"github.com/minibench/mini/runner/regrade"
)

// classRoom is the width of the longest class, in cells.
const classRoom = 14

// Verdict writes what came of one saved log: a line, and more of them where
// there is more to say than fits. The path is never cut, so that it can be
// copied.
func Verdict(w io.Writer, l saved.Line, width int) error {
	head := fmt.Sprintf("%-*s%s%s", classRoom, l.Class, gap, Printable(l.Path))
	note := Printable(verdictNote(l))
	if note != "" && ansi.StringWidth(head)+len(gap)+ansi.StringWidth(note) <= width {
		head, note = head+gap+note, ""
	}
	if note != "" {
		head += "\n" + strings.TrimSuffix(paragraph(note, width, classRoom+len(gap), 3), "\n")
	}
	_, err := fmt.Fprintln(w, head)
	return err
}

// verdictNote says why it is so.
func verdictNote(l saved.Line) string {
	reason := ""
	if l.InfraReason != nil {
		reason = *l.InfraReason
	}
	switch l.Class {
	case saved.Unresolved:
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
	case saved.Empty:
		return "run without a patch"
	case saved.Infrastructure:
		return reason
	case saved.Failed:
		return *l.Error
	}
	return ""
}

// Verdicts writes how saved logs were judged in all: each class that occurs, and
// the rate of each set of predictions.
func Verdicts(w io.Writer, t saved.Tally, width int) error {
	digits := len(fmt.Sprint(t.Logs))
	var s strings.Builder
	for _, class := range saved.Classes() {
		n := t.Classes[class]
		if n == 0 && class != saved.Resolved && class != saved.Unresolved {
			continue
		}
		head := fmt.Sprintf("%-*s%s%*d", classRoom, class, gap, digits, n)
		if note := classNote(t, class); note != "" {
			indent := len(head) + len(gap)
			head += gap + strings.TrimLeft(paragraph(note, width, indent, 5), " ")
		} else {
			head += "\n"
		}
		s.WriteString(head)
	}
	for _, of := range t.Shares {
		text := of.Name + ": no log could be judged"
		if of.Judged > 0 {
			text = of.Name + ": " + share(of.Resolved, of.Judged).text("resolved")
		}
		s.WriteString(paragraph(text, width, 0, 4))
	}
	if judged := t.Judged(); judged > 0 && len(t.Shares) == 0 {
		rate := share(t.Classes[saved.Resolved], judged)
		s.WriteString(paragraph(fmt.Sprintf("%s (95%% interval %s to %s) of %s that could be judged",
			percent(rate.Rate), percent(rate.Low), percent(rate.High), Count(judged, "log")), width, 0, 2))
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func classNote(t saved.Tally, class saved.Class) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	switch class {
	case saved.Unresolved:
		add(t.Partial, "fixed in part")
		add(t.Silent, "without results in the log")
		for _, r := range grade.Reasons(grade.Ambiguous) { // of these
			add(t.Reasons[r], r)
		}
	case saved.Infrastructure:
		for _, r := range grade.Reasons(grade.Environment) {
			add(t.Reasons[r], r)
		}
	case saved.Failed:
		parts = append(parts, "the log cannot be read, or its parser crashed")
	case saved.Empty:
		parts = append(parts, "run without a patch: patch.diff is empty")
	}
	return strings.Join(parts, ", ")
}

// maxChanges bounds the verdicts that are named one by one; the JSON has all.
const maxChanges = 20

// Regraded writes what became of verdicts that were given anew, and how the
// evaluations stand now. With dry nothing has been written yet.
func Regraded(w io.Writer, r regrade.Result, unread []string, scores []Score, dry bool, width int) error {
	var b strings.Builder
	rows := [][]string{}
	for _, c := range r.Changed[:min(maxChanges, len(r.Changed))] {
		rows = append(rows, []string{c.Instance + ":", words(string(c.From)) + " -> " + words(string(c.To)), c.Model})
	}
	b.WriteString(Table(width, "ils", rows))
	if more := len(r.Changed) - maxChanges; more > 0 {
		fmt.Fprintf(&b, "... and %d more; --json has all\n", more)
	}
	for i, k := range r.Kept {
		if i == maxChanges {
			fmt.Fprintf(&b, "... and %d more stay as they were; --json has all\n", len(r.Kept)-i)
			break
		}
		b.WriteString(paragraph(fmt.Sprintf("%s stays %s: %s", k.Instance, words(string(k.Class)), k.Reason), width, 0, 3))
	}
	b.WriteString(unreadText(unread, width))
	b.WriteString(paragraph(regradedText(r, dry), width, 0, 2))
	if n := len(scores); n > 0 {
		b.WriteString("\n")
		if err := scores[n-1].Write(&b, width); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func regradedText(r regrade.Result, dry bool) string {
	text := fmt.Sprintf("%d of %s changed", len(r.Changed), Count(r.Verdicts, "verdict"))
	if dry {
		text = fmt.Sprintf("%d of %s would change", len(r.Changed), Count(r.Verdicts, "verdict"))
	}
	if r.Renewed > 0 {
		text += fmt.Sprintf(", %d renewed as they were", r.Renewed)
	}
	if n := len(r.Kept); n > 0 {
		text += fmt.Sprintf(", %d could not be regraded", n)
	}
	return text
}
