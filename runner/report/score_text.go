package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/verdicts"
)

// Limits of the text form. The JSON form has everything.
const (
	maxReasonsPerClass = 2 // distinct reasons for each class
	maxShownModels     = 3
)

// Doc returns the score for readers.
func (s Score) Doc() *doc.Doc {
	d := &doc.Doc{}
	d.Paragraph(s.headline(), 0, 3)
	s.addRest(d)
	return d
}

// addRest adds the score without its headline.
func (s Score) addRest(d *doc.Doc) {
	if s.WithoutQuarantined != nil {
		d.Paragraph(s.WithoutQuarantined.text("without quarantined instances"), 0, 2)
	}
	if s.WithoutAutosubmitted != nil {
		d.Paragraph(s.WithoutAutosubmitted.text("without autosubmitted patches"), 0, 2)
	}
	d.Paragraph(s.Rewards.text(), 0, 2)
	d.Paragraph(s.detailsText(), 0, 6) // enough lines for the whole path
	d.Blank()
	s.addClasses(d)
	s.addRemarks(d)
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

// addClasses adds the table of classes. If the run is known, the table has the total cost of the agent and its
// mean steps and time per instance or, if an instance has several attempts, per attempt.
func (s Score) addClasses(d *doc.Doc) {
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
	d.Blocks = append(d.Blocks, doc.Block{Kind: doc.Table, Columns: columns, Rows: rows, Keep: 2})
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

func orDash(text string, known bool) string {
	if !known {
		return "-"
	}
	return text
}

func mean(sum float64, n int) float64 { return sum / float64(max(n, 1)) }

// withSpaces replaces underscores with spaces.
func withSpaces(name string) string { return strings.ReplaceAll(name, "_", " ") }

// addRemarks lists flags, verdicts that differ without the flagged files, foreign
// logs, quarantined instances, and the reasons of unstable, infrastructure and
// error verdicts.
func (s Score) addRemarks(d *doc.Doc) {
	remarks := &doc.Doc{}
	if s.Flagged > 0 {
		var parts []string
		for _, name := range byCount(s.Flags) {
			parts = append(parts, fmt.Sprintf("%s %d", withSpaces(name), s.Flags[name]))
		}
		remarks.List("flags on "+text.Count(s.Flagged, "instance"), parts, 1)
	}
	var ids []string
	for _, c := range s.ChangedWithoutSuspect {
		ids = append(ids, c.ID)
	}
	remarks.List(fmt.Sprintf("%d with another verdict without the flagged hunks", len(ids)), ids, 2)
	ids = nil
	for _, q := range s.Quarantined {
		ids = append(ids, fmt.Sprintf("%s (%s)", q.Instance, quarantineReason(q)))
	}
	remarks.List(fmt.Sprintf("%d quarantined here", len(ids)), ids, 3)
	for _, class := range []verdicts.Class{verdicts.Unstable, verdicts.Infrastructure, verdicts.Error} {
		s.addReasons(remarks, class)
	}
	if len(remarks.Blocks) > 0 {
		d.Blank()
		d.Add(remarks)
	}
}

// quarantineReason returns the baseline result that quarantines an instance.
func quarantineReason(q evaluate.Quarantined) string {
	if q.Noop == verdicts.Resolved {
		return "no patch: " + withSpaces(string(q.Noop))
	}
	return "gold: " + withSpaces(string(cmp.Or(q.Gold, verdicts.Unresolved)))
}

// addReasons lists the instances of a class and their reasons. It groups similar reasons.
func (s Score) addReasons(d *doc.Doc, class verdicts.Class) {
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
	d.List(label, ids, 1)
	slices.SortStableFunc(status.Reasons, func(a, b Reason) int { return cmp.Compare(b.Count, a.Count) })
	for _, r := range status.Reasons[:min(maxReasonsPerClass, len(status.Reasons))] {
		line := r.Example + ": " + r.Error
		if r.Count > 1 {
			line = fmt.Sprintf("%d like %s", r.Count, line)
		}
		d.Paragraph(line, 2, 1)
	}
}

// AddRepos adds the number of resolved instances of each repository, as leaderboards require. It derives the
// repository from the instance id. An instance without a verdict counts as not resolved.
func (s Score) AddRepos(d *doc.Doc) {
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
	d.Table("srr", rows)
}
