package report

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/savedlogs"
)

// classWidth is the width of the longest class, in cells.
const classWidth = 14

// VerdictDoc returns the result of grading one saved log: its class, its path, which is never cut, and a note.
func VerdictDoc(line savedlogs.Line) *doc.Doc {
	d := &doc.Doc{}
	d.Table("llw", [][]string{{fmt.Sprintf("%-*s", classWidth, line.Class), line.Path, verdictNote(line)}})
	return d
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

// TotalsDoc returns the totals of graded logs: the classes, and the rate of
// each set of predictions, or of all logs if there is one set.
func TotalsDoc(t savedlogs.Totals) *doc.Doc {
	d, rows := &doc.Doc{}, [][]string{}
	for _, class := range savedlogs.Classes() {
		n := t.Classes[class]
		if n == 0 && class != savedlogs.Resolved && class != savedlogs.Unresolved {
			continue
		}
		rows = append(rows, []string{fmt.Sprintf("%-*s", classWidth, class), fmt.Sprint(n), classNote(t, class)})
	}
	d.Table("lrw", rows)
	for _, set := range t.Sets {
		text := set.Name + ": no log could be graded"
		if set.Graded > 0 {
			text = set.Name + ": " + NewResolveRate(set.Resolved, set.Graded).text("resolved")
		}
		d.Paragraph(text, 0, 4)
	}
	if graded := t.Graded(); graded > 0 && len(t.Sets) == 0 {
		rate := NewResolveRate(t.Classes[savedlogs.Resolved], graded)
		d.Paragraph(fmt.Sprintf("%s (95%% interval %s to %s) of %s that could be graded",
			unit.Percent(rate.Rate), unit.Percent(rate.Low), unit.Percent(rate.High), text.Count(graded, "log")), 0, 2)
	}
	return d
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

// RegradedDoc returns the changes of a regrading and the resulting score. dryRun
// selects the wording for a regrading that has not changed the run folder.
func RegradedDoc(r evaluate.Regraded, unreadable []string, scores []Score, dryRun bool) *doc.Doc {
	d := &doc.Doc{}
	rows := [][]string{}
	for _, c := range r.Changed[:min(maxChanges, len(r.Changed))] {
		change := withSpaces(string(c.From)) + " -> " + withSpaces(string(c.To))
		rows = append(rows, []string{c.Instance + ":", change, c.Model})
	}
	d.Table("ils", rows)
	if more := len(r.Changed) - maxChanges; more > 0 {
		d.Line(0, "... and %d more; --json shows all", more)
	}
	for i, failure := range r.Failed {
		if i == maxChanges {
			d.Line(0, "... and %d more not regraded; --json shows all", len(r.Failed)-i)
			break
		}
		text := fmt.Sprintf("%s remains %s: %s", failure.Instance, withSpaces(string(failure.Class)), failure.Reason)
		d.Paragraph(text, 0, 3)
	}
	addUnreadable(d, unreadable)
	d.Paragraph(regradedText(r, dryRun), 0, 2)
	if n := len(scores); n > 0 {
		d.Blank()
		d.Add(scores[n-1].Doc())
	}
	return d
}

func regradedText(r evaluate.Regraded, dryRun bool) string {
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
