package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/stats"
	"github.com/minibench/mini/runner/verdicts"
)

// Limits on lists in text and Markdown; JSON has all items.
const (
	maxFlips    = 20
	maxSettings = 20
	maxValue    = 40 // characters of a setting

	// minRepository is the least number of instances of a repository whose difference says
	// something.
	minRepository = 5
)

// Section is a part of the comparison for readers: paragraphs and a table, whose
// first row is the head.
type Section struct {
	Title   string
	Before  []string // paragraphs; leading spaces indent them
	Columns string   // one letter for each column; r aligns to the right
	Rows    [][]string
	After   []string
	// Sentence says first what the section shows; "" for none.
	Sentence string
	// HasInstances reports that the first column has ids of instances.
	HasInstances bool
}

// Doc returns the comparison for readers.
func (r *Result) Doc() *doc.Doc {
	d := &doc.Doc{}
	for i, s := range r.Sections(false) {
		if i > 0 {
			d.Blank()
		}
		if s.Title != "" {
			d.Heading(s.Title)
		}
		d.Paragraph(s.Sentence, 0, 8)
		for _, p := range s.Before {
			words := strings.TrimLeft(p, " ")
			d.Paragraph(words, len(p)-len(words), 8)
		}
		if len(s.Rows) > 1 {
			d.Table(s.Columns, s.Rows)
		}
		for _, p := range s.After {
			d.Paragraph(p, 0, 4)
		}
	}
	return d
}

// Sections returns the comparison as sections. If complete is false, long lists
// are cut.
func (r *Result) Sections(complete bool) []Section {
	all := []Section{r.scope()}
	if len(r.Differences) > 0 {
		all = append(all, r.settings(complete))
	}
	all = append(all, r.table())
	if s := r.attempts(); len(s.Rows) > 1 {
		all = append(all, s)
	}
	for _, p := range r.Pairs {
		all = append(all, r.pair(p))
		if len(p.Queue) > 0 {
			all = append(all, p.queue(complete))
		}
		if s := p.repositories(); len(s.Rows) > 1 {
			all = append(all, s)
		}
	}
	if len(r.Runs) > 2 && len(r.Leaders) > 0 {
		all = append(all, Section{Before: []string{"not separated from the highest rate: " + strings.Join(r.Leaders, ", ")}})
	}
	if r.Gate != nil {
		all = append(all, Section{Before: []string{r.Gate.text(r.Pairs)}})
	}
	return all
}

// NamedSections returns Sections(true) with the names of the runs in place of letters, also in the
// tables of instances that differ.
func (r *Result) NamedSections() []Section {
	named := *r
	named.wholeNames = true
	all, next := named.Sections(true), 0
	for i := range all {
		if !all[i].HasInstances {
			continue
		}
		for len(r.Pairs[next].Queue) == 0 {
			next++
		}
		p := r.Pairs[next]
		next++
		all[i].Rows[0][1], all[i].Rows[0][2] = p.Candidate, p.Base
		notes := strings.NewReplacer("candidate: ", p.Candidate+": ", "base: ", p.Base+": ")
		for _, row := range all[i].Rows[1:] {
			row[3] = notes.Replace(row[3])
		}
	}
	return all
}

// scope returns the warnings and says what is compared.
func (r *Result) scope() Section {
	s := Section{}
	for _, p := range r.Pairs {
		if p.Warning != "" {
			s.Before = append(s.Before, p.Candidate+": "+p.Warning)
		}
	}
	for _, p := range r.Pairs {
		line := fmt.Sprintf("%s against %s: %s compared", p.Candidate, p.Base, text.Count(p.Difference.Instances, "instance"))
		for _, reason := range unpairedReasons(p.Unpaired) {
			line += "; " + reason
		}
		s.Before = append(s.Before, line)
	}
	if r.hasLongNames() {
		labels := r.labels()
		for i, run := range r.Runs {
			s.Before = append(s.Before, "  "+labels[i]+"  "+run.Name)
		}
	}
	return s
}

// maxLabel is the length of the longest name that fits in the head of a column.
const maxLabel = 20

func (r *Result) hasLongNames() bool {
	return !r.wholeNames && slices.ContainsFunc(r.Runs, func(s Summary) bool { return len(s.Name) > maxLabel })
}

// labels returns the names of the runs in tables: letters if a name is long.
func (r *Result) labels() []string {
	labels := make([]string, len(r.Runs))
	for i, run := range r.Runs {
		labels[i] = run.Name
		if r.hasLongNames() {
			labels[i] = Letter(i)
		}
	}
	return labels
}

// Letter returns a short label of the i-th run: A to Z, then A1, B1 and so on.
func Letter(i int) string {
	letter := string(rune('A' + i%26))
	if i >= 26 {
		letter += fmt.Sprint(i / 26)
	}
	return letter
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

func (r *Result) settings(complete bool) Section {
	s := Section{Title: "What differs", Columns: "i" + strings.Repeat("s", len(r.Runs))}
	head := []string{"setting"}
	head = append(head, r.labels()...)
	s.Rows = append(s.Rows, head)
	for i, d := range r.Differences {
		if i == maxSettings && !complete {
			s.After = append(s.After, fmt.Sprintf("and %s; --json lists all", text.Count(len(r.Differences)-i, "more setting")))
			break
		}
		row := []string{d.Name}
		for _, v := range d.Values {
			row = append(row, cmp.Or(text.ClipRunes(text.OneLine(v), maxValue), "-"))
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

func (r *Result) table() Section {
	s := Section{Title: "Runs", Columns: "lrrrrrrl"}
	s.Rows = append(s.Rows, []string{"run", "instances", "resolved", "95% interval", "no verdict", "cost per instance", "per resolved", "best value"})
	unknown := false
	labels, cost := r.labels(), r.costColumn()
	for i, run := range r.Runs {
		interval := "none"
		if i := run.Rate.Interval; i != nil {
			interval = unit.Range(i.Low, i.High)
		}
		perResolved := "none resolved"
		if c := run.Cost.PerResolved; c != nil {
			perResolved = cost(*c, run.Cost.Known)
		}
		s.Rows = append(s.Rows, []string{
			labels[i], fmt.Sprint(run.Rate.Instances), rateText(run.Rate), interval, fmt.Sprint(run.MissingAttempts),
			cost(run.Cost.PerInstance, run.Cost.Known), perResolved, frontierText(run),
		})
		unknown = unknown || !run.Cost.Known
		if run.MeanReward != nil {
			s.After = append(s.After, fmt.Sprintf("%s: mean reward %.3f; a reward below 1 is not resolved", run.Name, *run.MeanReward))
		}
		if run.DominatedBy != "" {
			s.After = append(s.After, fmt.Sprintf("%s is not the best value: %s resolves as many or more, for the same cost or less", run.Name, run.DominatedBy))
		}
		if run.Bounds.High-run.Bounds.Low > 1e-9 && run.Rate.Instances > 0 {
			s.After = append(s.After, fmt.Sprintf("%s: %s of all %s if what is missing were unresolved, %s if it were resolved",
				run.Name, unit.Percent(run.Bounds.Low), text.Count(run.Selected, "selected instance"), unit.Percent(run.Bounds.High)))
		}
		if len(r.Runs) > 2 && run.RankInterval != nil && run.RankInterval[0] != run.RankInterval[1] {
			s.After = append(s.After, fmt.Sprintf("%s: rank %d to %d in 95%% of resampled datasets", run.Name, run.RankInterval[0], run.RankInterval[1]))
		}
	}
	if unknown {
		s.After = append(s.After, "≥: some calls have no price, so the cost is a minimum")
	}
	return s
}

func rateText(r stats.Rate) string {
	if r.Instances == 0 {
		return "none"
	}
	return unit.Percent(r.Mean)
}

// costColumn returns the format of the costs of runs. A cost of which a part is not known
// is a minimum, "?" if none of it is known.
func (r *Result) costColumn() func(dollars float64, known bool) string {
	var amounts []float64
	for _, run := range r.Runs {
		amounts = append(amounts, run.Cost.PerInstance)
	}
	money := unit.MoneyColumn(amounts...)
	return func(dollars float64, known bool) string {
		switch {
		case dollars == 0:
			return unit.Cost(dollars, known)
		case !known:
			return "≥" + money(dollars)
		}
		return money(dollars)
	}
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
func (r *Result) attempts() Section {
	s := Section{Title: "Several attempts", Columns: "lrrrrr"}
	s.Rows = append(s.Rows, []string{"run", "k", "pass@k", "pass^k", "rerun noise", "attempts that disagree"})
	labels := r.labels()
	for n, run := range r.Runs {
		for i, p := range run.Pass {
			row := []string{labels[n], fmt.Sprint(p.K), unit.Percent(p.Any), unit.Percent(p.All), "", ""}
			if i == 0 && run.RerunNoise != nil && run.Variance != nil {
				row[4] = noiseText(*run.RerunNoise)
				row[5] = unit.Percent(2 * run.Variance.Within)
			}
			s.Rows = append(s.Rows, row)
		}
	}
	return s
}

func noiseText(noise float64) string {
	if noise == 0 {
		return "none seen"
	}
	return "±" + unit.Points(noise) + " points"
}

func (r *Result) pair(p Pair) Section {
	s := Section{Title: p.Candidate + " against " + p.Base, Sentence: p.Sentence}
	add := func(format string, args ...any) { s.Before = append(s.Before, "  "+fmt.Sprintf(format, args...)) }
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
	if len(p.Bounds) > 0 && d.Instances > 0 {
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

func (p *Pair) queue(complete bool) Section {
	s := Section{Title: "Instances that differ", Columns: "irrs", HasInstances: true}
	s.Rows = append(s.Rows, []string{"instance", "candidate", "base", ""})
	for i, f := range p.Queue {
		if i == maxFlips && !complete {
			s.After = append(s.After, fmt.Sprintf("and %s; --json lists all", text.Count(len(p.Queue)-i, "more instance")))
			break
		}
		notes := append(f.Candidate.notes("candidate"), f.Base.notes("base")...)
		s.Rows = append(s.Rows, []string{f.ID, f.Candidate.text(), f.Base.text(), strings.Join(notes, ", ")})
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

func (p *Pair) repositories() Section {
	s := Section{Title: "By repository", Columns: "irrrr"}
	s.Rows = append(s.Rows, []string{"repository", "instances", "difference", "95% interval", "p (adjusted)"})
	for _, r := range p.Repositories {
		if r.Difference.Instances < minRepository {
			continue
		}
		pText := "none"
		if r.AdjustedP != nil {
			pText = strings.TrimPrefix(pValueText(*r.AdjustedP), "= ")
		}
		i := r.Difference.Interval
		s.Rows = append(s.Rows, []string{
			r.Name, fmt.Sprint(r.Difference.Instances), points(r.Difference.Mean),
			unit.Range(i.Low, i.High), pText,
		})
	}
	if few := len(p.Repositories) - len(s.Rows) + 1; few > 0 {
		s.After = append(s.After, fmt.Sprintf("%s with fewer than %d instances; --json lists all", text.Count(few, "more repository"), minRepository))
	}
	return s
}

func (g *Gate) text(pairs []Pair) string {
	var parts []string
	for i, answer := range g.Each {
		switch answer {
		case Passed:
			parts = append(parts, pairs[i].Candidate+" passes")
		case Failed:
			parts = append(parts, pairs[i].Candidate+" fails")
		case Unknown:
			parts = append(parts, fmt.Sprintf("it is open whether %s passes: these results fit a smaller and a larger drop", pairs[i].Candidate))
		}
	}
	return fmt.Sprintf("gate, a drop of at most %.1f points: %s", g.MaxDrop, strings.Join(parts, "; "))
}
