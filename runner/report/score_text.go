package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/verdicts"
)

// Limits of the text form. The JSON form has everything.
const (
	maxReasonsPerClass = 2 // distinct reasons for each class
	maxListedItems     = 20
	maxShownModels     = 3
)

// Write writes the score as text, in lines of at most width cells.
func (s Score) Write(w io.Writer, width int) error {
	var b strings.Builder
	b.WriteString(table.Paragraph(s.headline(), width, 0, 3))
	s.write(&b, width)
	_, err := io.WriteString(w, b.String())
	return err
}

// write writes the score without its headline.
func (s Score) write(b *strings.Builder, width int) {
	if s.WithoutQuarantined != nil {
		b.WriteString(table.Paragraph(s.WithoutQuarantined.text("without quarantined instances"), width, 0, 2))
	}
	if s.WithoutAutosubmitted != nil {
		b.WriteString(table.Paragraph(s.WithoutAutosubmitted.text("without autosubmitted patches"), width, 0, 2))
	}
	if t := s.Rewards.text(); t != "" {
		b.WriteString(table.Paragraph(t, width, 0, 2))
	}
	b.WriteString(table.Paragraph(s.detailsText(), width, 0, 6)) // enough lines for the whole path
	b.WriteString("\n" + s.classTable(width))
	b.WriteString(s.remarks(width))
}

func (s Score) headline() string {
	if s.Baseline != "" {
		return s.baselineText()
	}
	if s.Rate == nil {
		return s.NoRate
	}
	label := text.Plural(s.Rate.Of, "instance") + " resolved"
	if s.PerInstance > 1 {
		label += fmt.Sprintf(" by the first of %d attempts", s.PerInstance)
	}
	line := s.Rate.text(label)
	if n := s.Instances - s.verdictCount(); n > 0 {
		line += fmt.Sprintf("; %d without a verdict %s as not resolved", n, text.Verb(n, "counts", "count"))
	}
	return line
}

// baselineText compares a baseline of this machine with the expected result.
func (s Score) baselineText() string {
	resolved, graded := s.Count(verdicts.Resolved), s.verdictCount()
	text, wrong := fmt.Sprintf("gold: %d of %d pass with the gold patch", resolved, s.Instances), graded-resolved
	if s.Baseline == evaluate.NoopModel {
		text, wrong = fmt.Sprintf("noop: %d of %d pass without a patch", resolved, s.Instances), resolved
	}
	unknown := s.Instances - graded
	switch {
	case wrong > 0:
		text += fmt.Sprintf("; %d cannot be evaluated on this machine", wrong)
	case graded > 0 && unknown == 0:
		text += ", as expected"
	}
	if unknown > 0 {
		text += fmt.Sprintf("; %d without a verdict", unknown)
	}
	return text
}

// verdictCount returns the number of instances whose class is neither
// infrastructure nor error.
func (s Score) verdictCount() int {
	n := 0
	for _, c := range s.Classes {
		if c.Class.IsVerdict() {
			n += c.Count
		}
	}
	return n
}

// noRateText says why there is no rate.
func (s Score) noRateText() string {
	var reasons []string
	for _, c := range []struct {
		count int
		what  string
	}{
		{s.Count(verdicts.Infrastructure), "infrastructure"},
		{s.Count(verdicts.Error), "error"},
		{len(s.NotEvaluated), "not evaluated"},
		{s.NoResult, "no submission"},
	} {
		if c.count > 0 {
			reasons = append(reasons, fmt.Sprintf("%d %s", c.count, c.what))
		}
	}
	line := "no rate, because no instance has a verdict"
	if len(reasons) > 0 {
		line += " (" + strings.Join(reasons, ", ") + ")"
	}
	return line
}

// text formats the rate.
func (r ResolveRate) text(label string) string {
	return fmt.Sprintf("%d of %d %s: %s, 95%% interval %s to %s",
		r.Resolved, r.Of, label, unit.Percent(r.Rate), unit.Percent(r.Low), unit.Percent(r.High))
}

// detailsText lists the models, the run id and the path of the official summary.
func (s Score) detailsText() string {
	models := s.Models
	if len(models) > maxShownModels {
		models = append(models[:maxShownModels:maxShownModels], fmt.Sprintf("%d more", len(s.Models)-maxShownModels))
	}
	var parts []string
	for _, m := range models {
		if m != s.Baseline { // the headline has the baseline
			parts = append(parts, truncate(m, 60))
		}
	}
	parts = append(parts, "evaluation "+truncate(s.RunID, 60))
	text := strings.Join(parts, ", ")
	if s.Official != "" {
		text += "; official summary in " + s.Official
	}
	return text
}

// classTable returns the table of classes. If the run is known, the table has the
// total cost of the agent and its mean steps and time per instance or, if an
// instance has several attempts, per attempt. classTable drops the rightmost columns, except the first two, until the table fits into width.
func (s Score) classTable(width int) string {
	rows := [][]string{s.classTableHead()}
	var amounts []float64
	for _, c := range s.Classes {
		amounts = append(amounts, float64(c.Cost))
	}
	cost := unit.CostColumn(amounts...)
	for _, c := range s.Classes {
		row := []string{withSpaces(string(c.Class)), fmt.Sprint(c.Count)}
		if s.WithoutAutosubmitted != nil {
			row = append(row, orDash(fmt.Sprint(c.Autosubmitted), c.Autosubmitted > 0))
		}
		if s.hasSeveralAttempts() {
			row = append(row, orDash(fmt.Sprint(c.Attempts), c.Attempts > 0))
		}
		if s.HasRun {
			n := c.Count
			if s.hasSeveralAttempts() {
				n = c.Attempts
			}
			row = append(row, cost(float64(c.Cost), c.Cost > 0 || s.CostUnknown == 0 || c.Count == 0),
				orDash(fmt.Sprintf("%.0f", mean(float64(c.Steps), n)), c.Steps > 0),
				orDash(unit.Seconds(mean(c.Seconds, n)), c.Seconds > 0))
		}
		rows = append(rows, append(row, orDash(unit.Seconds(mean(c.Evaluation, c.Count)), c.Evaluation > 0)))
	}
	for _, extra := range []struct {
		name  string
		count int
	}{{"not evaluated", len(s.NotEvaluated)}, {"no submission", s.NoResult}} {
		if extra.count > 0 {
			row := make([]string, len(rows[0]))
			row[0], row[1] = extra.name, fmt.Sprint(extra.count)
			rows = append(rows, row)
		}
	}
	columns := "s" + strings.Repeat("r", len(rows[0])-1)
	for len(columns) > 2 && tableWidth(rows) > width {
		columns = columns[:len(columns)-1]
		for i, row := range rows {
			rows[i] = row[:len(columns)]
		}
	}
	return table.Table(width, columns, rows)
}

func (s Score) classTableHead() []string {
	head := []string{"verdict", "count"}
	if s.WithoutAutosubmitted != nil {
		head = append(head, "autosubmitted")
	}
	if s.hasSeveralAttempts() {
		head = append(head, "attempts")
	}
	switch {
	case s.HasRun && s.hasSeveralAttempts():
		head = append(head, "cost", "steps per attempt", "time per attempt")
	case s.HasRun:
		head = append(head, "cost", "steps each", "time each")
	}
	return append(head, "tests each")
}

// hasSeveralAttempts reports whether an instance has more than one attempt.
func (s Score) hasSeveralAttempts() bool {
	return slices.ContainsFunc(s.Classes, func(c ScoreClass) bool { return c.Attempts > c.Count })
}

// tableWidth returns the width of a table, in cells.
func tableWidth(rows [][]string) int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	return table.TotalWidth(widths)
}

func orDash(text string, known bool) string {
	if !known {
		return "-"
	}
	return text
}

func mean(sum float64, n int) float64 { return sum / float64(max(n, 1)) }

// withSpaces replaces underscores with spaces.
func withSpaces(name string) string { return strings.ReplaceAll(name, "_", " ") }

// remarks lists flags, verdicts that differ without the flagged files, foreign
// logs, quarantined instances, and the reasons of unstable, infrastructure and
// error verdicts.
func (s Score) remarks(width int) string {
	var b strings.Builder
	if s.Flagged > 0 {
		var parts []string
		for _, name := range byCount(s.Flags) {
			parts = append(parts, fmt.Sprintf("%s %d", withSpaces(name), s.Flags[name]))
		}
		b.WriteString(listText("flags on "+text.Count(s.Flagged, "instance"), parts, width, 1))
	}
	var ids []string
	for _, c := range s.ChangedWithoutSuspect {
		ids = append(ids, c.ID)
	}
	b.WriteString(listText(fmt.Sprintf("%d with another verdict without the flagged hunks", len(ids)), ids, width, 2))
	b.WriteString(listText(fmt.Sprintf("%d graded from logs made elsewhere", len(s.ForeignLogs)), s.ForeignLogs, width, 2))
	ids = nil
	for _, q := range s.Quarantined {
		ids = append(ids, fmt.Sprintf("%s (%s)", q.Instance, quarantineReason(q)))
	}
	b.WriteString(listText(fmt.Sprintf("%d quarantined here", len(ids)), ids, width, 3))
	for _, class := range []verdicts.Class{verdicts.Unstable, verdicts.Infrastructure, verdicts.Error} {
		b.WriteString(s.reasonsText(class, width))
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
}

// quarantineReason returns the baseline result that quarantines an instance.
func quarantineReason(q evaluate.Quarantined) string {
	if q.Noop == verdicts.Resolved {
		return "no patch: " + withSpaces(string(q.Noop))
	}
	return "gold: " + withSpaces(string(cmp.Or(q.Gold, verdicts.Unresolved)))
}

// reasonsText lists the instances of a class and their reasons. It groups similar
// reasons.
func (s Score) reasonsText(class verdicts.Class, width int) string {
	var ids []string
	status := StatusSummary{}
	for _, reason := range s.VerdictReasons {
		if reason.Class == class {
			ids = append(ids, reason.ID)
			status.add(Row{ID: reason.ID, Error: reason.Reason})
		}
	}
	label := fmt.Sprintf("%d %s", len(ids), withSpaces(string(class)))
	if n := len(status.Reasons); n > maxReasonsPerClass {
		label += fmt.Sprintf(", for %d reasons", n)
	}
	var b strings.Builder
	b.WriteString(listText(label, ids, width, 1))
	slices.SortStableFunc(status.Reasons, func(a, b Reason) int { return cmp.Compare(b.Count, a.Count) })
	for _, r := range status.Reasons[:min(maxReasonsPerClass, len(status.Reasons))] {
		line := r.Example + ": " + strings.Join(strings.Fields(r.Error), " ")
		if r.Count > 1 {
			line = fmt.Sprintf("%d like %s", r.Count, line)
		}
		b.WriteString("  " + ansi.Truncate(text.Printable(line), width-2, "…") + "\n")
	}
	return b.String()
}

// listText lists as many items as fit into the given number of lines, at most
// maxListedItems.
func listText(label string, items []string, width, lines int) string {
	if len(items) == 0 {
		return ""
	}
	for n := min(len(items), maxListedItems); ; n-- {
		line := label + ": " + strings.Join(items[:n], ", ")
		if more := len(items) - n; more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
		if len(table.Wrap(line, width)) <= lines {
			return table.Paragraph(line, width, 0, lines)
		}
		if n == 1 {
			return ansi.Truncate(text.Printable(line), width, "…") + "\n"
		}
	}
}

// WriteRepos writes the number of resolved instances of each repository, as
// leaderboards require. It derives the repository from the instance id. An instance
// without a verdict counts as not resolved.
func (s Score) WriteRepos(w io.Writer, width int) error {
	type count struct{ resolved, of int }
	counts := map[string]*count{}
	add := func(id string, resolved bool) {
		name := cmp.Or(datasets.RepoOf(id), datasets.OtherRepos)
		if counts[name] == nil {
			counts[name] = &count{}
		}
		counts[name].of++
		if resolved {
			counts[name].resolved++
		}
	}
	for _, c := range s.Classes {
		for _, id := range c.IDs {
			add(id, c.Class == verdicts.Resolved)
		}
	}
	for _, id := range s.NotEvaluated {
		add(id, false)
	}
	rows := [][]string{{"repository", "resolved", ""}}
	for _, name := range slices.SortedFunc(maps.Keys(counts), datasets.CompareNatural) {
		c := counts[name]
		rate := float64(c.resolved) / float64(c.of)
		rows = append(rows, []string{name, fmt.Sprintf("%d of %d", c.resolved, c.of), unit.Percent(rate)})
	}
	if s.NoResult > 0 {
		rows = append(rows, []string{"no submission", fmt.Sprintf("0 of %d", s.NoResult), ""})
	}
	_, err := io.WriteString(w, strings.TrimRight(table.Table(width, "srr", rows), "\n")+"\n")
	return err
}
