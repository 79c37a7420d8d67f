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
	noun "github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/verdicts"
)

// Bounds of what a score shows; its JSON has everything.
const (
	maxTold        = 2 // different reasons of a class
	maxListed      = 20
	maxShownModels = 3 // there is one, unless a run went on with another
)

// Write shows a score to people, in lines of at most width characters.
func (s Score) Write(w io.Writer, width int) error {
	var b strings.Builder
	b.WriteString(paragraph(s.headline(), width, 0, 3))
	if s.Trusted != nil {
		b.WriteString(paragraph(s.Trusted.text("without the quarantined"), width, 0, 2))
	}
	if s.LikePeers != nil {
		b.WriteString(paragraph(s.LikePeers.text("without diffs taken at a limit"), width, 0, 2))
	}
	b.WriteString(paragraph(s.about(), width, 0, 6)) // the path is to be copied
	b.WriteString("\n" + s.classes(width))
	b.WriteString(s.remarks(width))
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Score) headline() string {
	if s.Baseline != "" {
		return s.expected()
	}
	text := s.Rate.text(noun.Plural(s.Rate.Of, "instance") + " resolved")
	if n := s.Instances - s.judged(); n > 0 {
		text += fmt.Sprintf("; %d without a verdict count as not resolved", n)
	}
	return text
}

// expected holds the baseline of a machine against what it should be.
func (s Score) expected() string {
	resolved, judged := s.Count(verdicts.Resolved), s.judged()
	text, wrong := fmt.Sprintf("gold: %d of %d pass with the gold patch", resolved, s.Instances), judged-resolved
	if s.Baseline == evaluate.NoopModel {
		text, wrong = fmt.Sprintf("noop: %d of %d pass without a patch", resolved, s.Instances), resolved
	}
	unknown := s.Instances - judged
	switch {
	case wrong > 0:
		text += fmt.Sprintf("; %d cannot be judged on this machine", wrong)
	case judged > 0 && unknown == 0:
		text += ", as it should be"
	}
	if unknown > 0 {
		text += fmt.Sprintf("; %d without a verdict", unknown)
	}
	return text
}

// judged is how many instances have a verdict.
func (s Score) judged() int {
	n := 0
	for _, c := range s.Classes {
		if c.Class != verdicts.Infrastructure && c.Class != verdicts.Error {
			n += c.Count
		}
	}
	return n
}

// text is the share in a sentence.
func (r Share) text(what string) string {
	return fmt.Sprintf("%d of %d %s: %s, 95%% interval %s to %s", r.Resolved, r.Of, what, percent(r.Rate), percent(r.Low), percent(r.High))
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// about says whose patches these are, and where more is.
func (s Score) about() string {
	models := s.Models
	if len(models) > maxShownModels {
		models = append(models[:maxShownModels:maxShownModels], fmt.Sprintf("%d more", len(s.Models)-maxShownModels))
	}
	var parts []string
	for _, m := range models {
		if m != s.Baseline { // which the first line names
			parts = append(parts, bounded(m, 60))
		}
	}
	parts = append(parts, "evaluation "+bounded(s.RunID, 60))
	text := strings.Join(parts, ", ")
	if s.Official != "" {
		text += "; official summary in " + s.Official
	}
	return text
}

// classes is the table by class. Costs, steps and times of the agent are there
// when its run is known: costs added up, the rest for each instance. What does
// not fit the width is left out, from the right.
func (s Score) classes(width int) string {
	rows := [][]string{s.head()}
	for _, c := range s.Classes {
		row := []string{words(string(c.Class)), fmt.Sprint(c.Count)}
		if s.LikePeers != nil {
			row = append(row, each(fmt.Sprint(c.Autosubmitted), c.Autosubmitted > 0))
		}
		if s.severalAttempts() {
			row = append(row, each(fmt.Sprint(c.Attempts), c.Attempts > 0))
		}
		if s.HasRun {
			row = append(row, s.money(c), each(fmt.Sprintf("%.0f", mean(float64(c.Steps), c.Count)), c.Steps > 0), each(span(mean(c.Seconds, c.Count)), c.Seconds > 0))
		}
		rows = append(rows, append(row, each(span(mean(c.Evaluation, c.Count)), c.Evaluation > 0)))
	}
	for _, more := range []struct {
		name  string
		count int
	}{{"not evaluated", len(s.NotEvaluated)}, {"no submission", s.NoResult}} {
		if more.count > 0 {
			row := make([]string, len(rows[0]))
			row[0], row[1] = more.name, fmt.Sprint(more.count)
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
	return Table(width, columns, rows)
}

func (s Score) head() []string {
	head := []string{"verdict", "count"}
	if s.LikePeers != nil {
		head = append(head, "at a limit")
	}
	if s.severalAttempts() {
		head = append(head, "attempts")
	}
	if s.HasRun {
		head = append(head, "cost", "steps each", "time each")
	}
	return append(head, "tests each")
}

// severalAttempts says whether the figures of an instance are of more than one.
func (s Score) severalAttempts() bool {
	return slices.ContainsFunc(s.Classes, func(c ScoreClass) bool { return c.Attempts > c.Count })
}

// tableWidth is how wide the rows of a table are, in cells.
func tableWidth(rows [][]string) int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	return total(widths)
}

func (s Score) money(c ScoreClass) string {
	switch {
	case c.Cost > 0:
		return money(c.Cost)
	case s.CostUnknown > 0 && c.Count > 0:
		return "?"
	}
	return "-"
}

func each(text string, known bool) string {
	if !known {
		return "-"
	}
	return text
}

func mean(sum float64, n int) float64 { return sum / float64(max(n, 1)) }

// words is a name of a file's format as people write it.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// remarks are what one should know before the numbers are believed.
func (s Score) remarks(width int) string {
	var b strings.Builder
	if s.Flagged > 0 {
		var parts []string
		for _, name := range byCount(s.Flags) {
			parts = append(parts, fmt.Sprintf("%s %d", words(name), s.Flags[name]))
		}
		b.WriteString(listed("flags on "+Count(s.Flagged, "instance"), parts, width, 1))
	}
	var ids []string
	for _, c := range s.Swayed {
		ids = append(ids, c.ID)
	}
	b.WriteString(listed(fmt.Sprintf("%d otherwise without the flagged hunks", len(ids)), ids, width, 2))
	b.WriteString(listed(fmt.Sprintf("%d graded by logs made elsewhere", len(s.ForeignLogs)), s.ForeignLogs, width, 2))
	ids = nil
	for _, q := range s.Quarantined {
		ids = append(ids, fmt.Sprintf("%s (%s)", q.Instance, wrongWith(q)))
	}
	b.WriteString(listed(fmt.Sprintf("%d quarantined here", len(ids)), ids, width, 3))
	for _, class := range []verdicts.Class{verdicts.Unstable, verdicts.Infrastructure, verdicts.Error} {
		b.WriteString(s.told(class, width))
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
}

// wrongWith is why an instance is quarantined.
func wrongWith(q evaluate.Quarantined) string {
	if q.Noop == verdicts.Resolved {
		return "no patch: " + words(string(q.Noop))
	}
	return "gold: " + words(string(cmp.Or(q.Gold, verdicts.Unresolved)))
}

// told lists the instances of a class, and below them their reasons, like ones
// together.
func (s Score) told(class verdicts.Class, width int) string {
	var ids []string
	st := Status{}
	for _, t := range s.Told {
		if t.Class == class {
			ids = append(ids, t.ID)
			st.add(Row{ID: t.ID, Error: t.Reason})
		}
	}
	what := fmt.Sprintf("%d %s", len(ids), words(string(class)))
	if n := len(st.Reasons); n > maxTold {
		what += fmt.Sprintf(", for %d reasons", n)
	}
	var b strings.Builder
	b.WriteString(listed(what, ids, width, 1))
	slices.SortStableFunc(st.Reasons, func(a, b Reason) int { return cmp.Compare(b.Count, a.Count) })
	for _, r := range st.Reasons[:min(maxTold, len(st.Reasons))] {
		text := r.Example + ": " + strings.Join(strings.Fields(r.Error), " ")
		if r.Count > 1 {
			text = fmt.Sprintf("%d like %s", r.Count, text)
		}
		b.WriteString("  " + ansi.Truncate(Printable(text), width-2, "…") + "\n")
	}
	return b.String()
}

// listed is as many items as fit into a few lines, and nothing without any.
func listed(what string, items []string, width, lines int) string {
	if len(items) == 0 {
		return ""
	}
	for n := min(len(items), maxListed); ; n-- {
		text := what + ": " + strings.Join(items[:n], ", ")
		if more := len(items) - n; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		if len(Wrap(text, width)) <= lines {
			return paragraph(text, width, 0, lines)
		}
		if n == 1 {
			return ansi.Truncate(Printable(text), width, "…") + "\n"
		}
	}
}

// repoOf is the repository that an instance's id names: owner__name-number.
func repoOf(id string) string {
	owner, rest, ok := strings.Cut(id, "__")
	at := strings.LastIndexByte(rest, '-')
	if !ok || owner == "" || at <= 0 {
		return "others"
	}
	return owner + "/" + rest[:at]
}

// WriteRepos shows how many instances of each repository are resolved, as
// leaderboards ask. The repository is told from the ids; without a verdict an
// instance is not resolved.
func (s Score) WriteRepos(w io.Writer, width int) error {
	type count struct{ resolved, of int }
	counts := map[string]*count{}
	add := func(id string, resolved bool) {
		name := repoOf(id)
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
	for _, name := range slices.SortedFunc(maps.Keys(counts), datasets.Natural) {
		c := counts[name]
		rows = append(rows, []string{name, fmt.Sprintf("%d of %d", c.resolved, c.of), percent(float64(c.resolved) / float64(c.of))})
	}
	if s.NoResult > 0 {
		rows = append(rows, []string{"no submission", fmt.Sprintf("0 of %d", s.NoResult), ""})
	}
	_, err := io.WriteString(w, strings.TrimRight(Table(width, "srr", rows), "\n")+"\n")
	return err
}
