package compare

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/stats"
	"github.com/minibench/mini/runner/verdicts"
)

// Limits on lists in text and Markdown; JSON has all items.
const (
	maxFlips    = 20
	maxSettings = 20
	maxValue    = 40 // characters of a setting
)

// section is a part of the text: paragraphs and a table, whose first row is the
// head. Columns are those of table.Table.
type section struct {
	title   string
	before  []string
	columns string
	rows    [][]string
	after   []string
}

// Write writes the comparison as text, in lines of at most width characters.
func (r *Result) Write(w io.Writer, width int) error {
	var b strings.Builder
	for i, s := range r.sections() {
		if i > 0 {
			b.WriteByte('\n')
		}
		if s.title != "" {
			b.WriteString(table.Paragraph(s.title, width, 0, 4))
		}
		for _, p := range s.before {
			indent := len(p) - len(strings.TrimLeft(p, " "))
			b.WriteString(table.Paragraph(strings.TrimSpace(p), width, indent, 8))
		}
		if len(s.rows) > 1 {
			b.WriteString(strings.TrimRight(table.Table(width, s.columns, s.rows), "\n") + "\n")
		}
		for _, p := range s.after {
			b.WriteString(table.Paragraph(p, width, 0, 4))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) sections() []section {
	all := []section{r.scope()}
	if len(r.Differences) > 0 {
		all = append(all, r.settings())
	}
	all = append(all, r.table())
	if s := r.attempts(); len(s.rows) > 1 {
		all = append(all, s)
	}
	for _, p := range r.Pairs {
		all = append(all, r.pair(p))
		if len(p.Queue) > 0 {
			all = append(all, p.queue())
		}
		if len(p.Repositories) > 0 {
			all = append(all, p.repositories())
		}
	}
	if len(r.Runs) > 2 {
		all = append(all, section{before: []string{"not separated from the highest rate: " + strings.Join(r.Leaders, ", ")}})
	}
	if r.Gate != nil {
		all = append(all, section{before: []string{r.Gate.text(r.Pairs)}})
	}
	return all
}

// scope returns the warnings and says what is compared.
func (r *Result) scope() section {
	s := section{}
	for _, p := range r.Pairs {
		if p.Warning != "" {
			s.before = append(s.before, p.Candidate+": "+p.Warning)
		}
	}
	for _, p := range r.Pairs {
		line := fmt.Sprintf("%s against %s: %s compared", p.Candidate, p.Base, text.Count(p.Difference.Instances, "instance"))
		for _, reason := range unpairedReasons(p.Unpaired) {
			line += "; " + reason
		}
		s.before = append(s.before, line)
	}
	return s
}

// unpairedReasons returns a text for each reason, with the instances to which
// it applies.
func unpairedReasons(all []Unpaired) []string {
	var lines []string
	for i := 0; i < len(all); {
		j := i
		var ids []string
		for ; j < len(all) && all[j].Reason == all[i].Reason; j++ {
			ids = append(ids, all[j].ID)
		}
		lines = append(lines, fmt.Sprintf("%s: %d (%s)", all[i].Reason, len(ids), text.List(ids)))
		i = j
	}
	return lines
}

func (r *Result) settings() section {
	s := section{title: "What differs", columns: "i" + strings.Repeat("s", len(r.Runs))}
	head := []string{"setting"}
	for _, run := range r.Runs {
		head = append(head, run.Name)
	}
	s.rows = append(s.rows, head)
	for i, d := range r.Differences {
		if i == maxSettings {
			s.after = append(s.after, fmt.Sprintf("and %s; --json lists all", text.Count(len(r.Differences)-i, "more setting")))
			break
		}
		row := []string{d.Name}
		for _, v := range d.Values {
			row = append(row, text.ClipRunes(text.OneLine(v), maxValue))
		}
		s.rows = append(s.rows, row)
	}
	return s
}

func (r *Result) table() section {
	s := section{title: "Runs", columns: "irrrrrrl"}
	s.rows = append(s.rows, []string{"run", "instances", "resolved", "95% interval", "no verdict", "$ per instance", "$ per resolved", "frontier"})
	unknown := false
	for _, run := range r.Runs {
		interval := "none"
		if i := run.Rate.Interval; i != nil {
			interval = fmt.Sprintf("%.1f to %.1f", 100*i.Low, 100*i.High)
		}
		s.rows = append(s.rows, []string{
			run.Name, fmt.Sprint(run.Rate.Instances), rateText(run.Rate), interval, fmt.Sprint(run.MissingAttempts),
			dollars(run.Cost.PerInstance, run.Cost.Known), perResolved(run.Cost), frontierText(run),
		})
		unknown = unknown || !run.Cost.Known
		if run.DominatedBy != "" {
			s.after = append(s.after, fmt.Sprintf("%s: %s resolves at least as much for at most the same cost", run.Name, run.DominatedBy))
		}
		if run.Bounds.High-run.Bounds.Low > 1e-9 && run.Rate.Instances > 0 {
			s.after = append(s.after, fmt.Sprintf("%s: %.1f%% of all %s if what is missing were unresolved, %.1f%% if it were resolved",
				run.Name, 100*run.Bounds.Low, text.Count(run.Selected, "selected instance"), 100*run.Bounds.High))
		}
		if len(r.Runs) > 2 && run.RankInterval != nil && run.RankInterval[0] != run.RankInterval[1] {
			s.after = append(s.after, fmt.Sprintf("%s: rank %d to %d in 95%% of resampled datasets", run.Name, run.RankInterval[0], run.RankInterval[1]))
		}
	}
	if unknown {
		s.after = append(s.after, "≥: some calls have no price, so the cost is a minimum")
	}
	return s
}

func rateText(r stats.Rate) string {
	if r.Instances == 0 {
		return "none"
	}
	return fmt.Sprintf("%.1f%%", 100*r.Mean)
}

func dollars(d float64, known bool) string {
	t := fmt.Sprintf("%.2f", d)
	if d > 0 && d < 0.1 {
		t = fmt.Sprintf("%.4f", d)
	}
	if !known {
		t = "≥" + t
	}
	return t
}

func perResolved(c CostSummary) string {
	if c.PerResolved == nil {
		return "none resolved"
	}
	return dollars(*c.PerResolved, c.Known)
}

func frontierText(s Summary) string {
	switch {
	case s.Frontier:
		return "yes"
	case s.DominatedBy != "" && s.Surely:
		return "no, surely"
	case s.DominatedBy != "":
		return "no"
	}
	return "unknown"
}

// attempts returns the section about repeated attempts.
func (r *Result) attempts() section {
	s := section{title: "Several attempts", columns: "irrrrr"}
	s.rows = append(s.rows, []string{"run", "k", "pass@k", "pass^k", "rerun noise", "attempts that disagree"})
	for _, run := range r.Runs {
		for i, p := range run.Pass {
			row := []string{run.Name, fmt.Sprint(p.K), fmt.Sprintf("%.1f%%", 100*p.Any), fmt.Sprintf("%.1f%%", 100*p.All), "", ""}
			if i == 0 && run.RerunNoise != nil && run.Variance != nil {
				row[4] = fmt.Sprintf("±%.1f points", 100**run.RerunNoise)
				row[5] = fmt.Sprintf("%.1f%%", 200*run.Variance.Within)
			}
			s.rows = append(s.rows, row)
		}
	}
	return s
}

func (r *Result) pair(p Pair) section {
	s := section{before: []string{p.Sentence}}
	add := func(format string, args ...any) { s.before = append(s.before, "  "+fmt.Sprintf(format, args...)) }
	d := p.Difference
	if t := d.Table; t != nil {
		add("resolved by both %d, only by %s %d, only by %s %d, by neither %d",
			t.Both, p.Candidate, t.OnlyFirst, p.Base, t.OnlySecond, t.Neither)
	} else if d.Instances > 0 {
		add("%s resolved in all attempts of one run and none of the other; %.1f expected by chance",
			text.Count(p.FullFlips, "instance"), p.FlipsByChance)
	}
	if d.Stratified != nil {
		add("on these very instances: p %s; on instances like these: p %s", pValueText(*d.Stratified), pValueText(p.p()))
	}
	if p.Reversals > 0 {
		add("if %d of the %d flips for the better run were verdict errors, p would not be below 0.05", p.Reversals, p.flipsForLeader())
	}
	if len(p.Bounds) > 0 {
		add("%s", p.boundsText())
	}
	if w := p.Power; w != nil {
		add("%s", w.text())
	}
	return s
}

// boundsText says how far the missing verdicts could move the difference.
func (p *Pair) boundsText() string {
	low, high := p.Bounds[0].Difference.Mean, p.Bounds[0].Difference.Mean
	for _, b := range p.Bounds {
		low, high = min(low, b.Difference.Mean), max(high, b.Difference.Mean)
	}
	return fmt.Sprintf("depending on the missing verdicts, the difference is between %.1f and %s", 100*low, points(high))
}

// flipsForLeader counts the instances on which the better run is better.
func (p *Pair) flipsForLeader() int {
	n := 0
	for _, f := range p.Queue {
		if f.Difference*p.Difference.Mean > 0 {
			n++
		}
	}
	return n
}

func (w *Power) text() string {
	t := fmt.Sprintf("to detect %s in 4 of 5 comparisons: %s with as many attempts", points(w.Difference), text.Count(w.Instances, "instance"))
	switch {
	case w.Attempts != nil:
		t += fmt.Sprintf(", or %s at each of these", text.Count(*w.Attempts, "attempt"))
	case w.Floor != nil:
		t += fmt.Sprintf("; more attempts alone cannot show less than %s", points(*w.Floor))
	}
	return t
}

func (p *Pair) queue() section {
	s := section{title: "Instances that differ", columns: "irrs"}
	s.rows = append(s.rows, []string{"instance", p.Candidate, p.Base, ""})
	for i, f := range p.Queue {
		if i == maxFlips {
			s.after = append(s.after, fmt.Sprintf("and %s; --json lists all", text.Count(len(p.Queue)-i, "more instance")))
			break
		}
		notes := append(f.Candidate.notes(p.Candidate), f.Base.notes(p.Base)...)
		s.rows = append(s.rows, []string{f.ID, f.Candidate.text(), f.Base.text(), strings.Join(notes, ", ")})
	}
	return s
}

func (f FlipSide) text() string { return fmt.Sprintf("%d of %d", f.Resolved, f.Attempts) }

// notes lists the outcomes other than resolved and unresolved, and whether a
// verdict is flagged.
func (f FlipSide) notes(run string) []string {
	var notes []string
	for _, o := range slices.Compact(slices.Sorted(slices.Values(f.Outcomes))) {
		if o != string(verdicts.Resolved) && o != string(verdicts.Unresolved) {
			notes = append(notes, run+": "+strings.ReplaceAll(o, "_", " "))
		}
	}
	if f.Flagged {
		notes = append(notes, run+": flagged")
	}
	return notes
}

func (p *Pair) repositories() section {
	s := section{title: "By repository", columns: "irrrr"}
	s.rows = append(s.rows, []string{"repository", "instances", "difference", "95% interval", "p (adjusted)"})
	for _, r := range p.Repositories {
		pText := "none"
		if r.AdjustedP != nil {
			pText = strings.TrimPrefix(pValueText(*r.AdjustedP), "= ")
		}
		i := r.Difference.Interval
		s.rows = append(s.rows, []string{
			r.Name, fmt.Sprint(r.Difference.Instances), points(r.Difference.Mean),
			fmt.Sprintf("%.1f to %.1f", 100*i.Low, 100*i.High), pText,
		})
	}
	return s
}

func (g *Gate) text(pairs []Pair) string {
	var parts []string
	for i, answer := range g.Each {
		switch answer {
		case Passed:
			parts = append(parts, pairs[i].Candidate+" is at most this much below")
		case Failed:
			parts = append(parts, pairs[i].Candidate+" is more below")
		case Unknown:
			parts = append(parts, pairs[i].Candidate+" cannot be told")
		}
	}
	return fmt.Sprintf("gate at a drop of %.1f points: %s (%s)", g.MaxDrop, g.Answer, strings.Join(parts, "; "))
}
