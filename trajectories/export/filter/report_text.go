package filter

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/unit"
)

// maxListed bounds each list of counts in the text, such as the list of models. The JSON
// has all counts.
const maxListed = 10

// Doc returns the report for readers: what was kept, the notes, and then the counts.
func (r *Report) Doc() *doc.Doc {
	d := &doc.Doc{}
	verb := "pass"
	if r.Kept == 1 {
		verb = "passes"
	}
	line := fmt.Sprintf("%s of %s %s the filters", unit.Number(r.Kept), plural(r.Attempts, "attempt"), verb)
	switch { // there are no rows in formats with one file per attempt
	case r.Written < r.Kept && r.Rows > 0:
		line += fmt.Sprintf(", %s could be written, as %s", unit.Number(r.Written), plural(r.Rows, "row"))
	case r.Written < r.Kept:
		line += fmt.Sprintf(", %s could be written", unit.Number(r.Written))
	case r.Rows > 0:
		line += fmt.Sprintf(", %s written", plural(r.Rows, "row"))
	}
	d.Paragraph(line, 0, 2)
	for _, n := range r.Notes {
		d.Paragraph("note: "+n, 0, 4)
	}
	r.addDropped(d)
	r.addSplits(d)
	addCounts(d, "repositories", r.Repos)
	addCounts(d, "models", r.Models)
	addCounts(d, "verdicts", r.Verdicts)
	addCounts(d, "outcomes", r.Classes)
	r.addDuplicates(d)
	r.addSecrets(d)
	r.Tokens.add(d)
	return d
}

func (r *Report) addDropped(d *doc.Doc) {
	if len(r.Dropped) == 0 {
		return
	}
	rows := [][]string{{"dropped", unit.Number(r.Attempts - r.Kept), ""}}
	for _, dropped := range r.Dropped {
		example := ""
		if len(dropped.Examples) > 0 {
			example = "e.g. " + dropped.Examples[0]
		}
		rows = append(rows, []string{"  " + string(dropped.Reason), unit.Number(dropped.Attempts), example})
	}
	d.Blank()
	d.Table("irs", rows)
}

func (r *Report) addSplits(d *doc.Doc) {
	if len(r.Splits) == 0 {
		return
	}
	rows := [][]string{{"split", splitUnit(r.SplitBy), "attempts", "share", "asked", "rows"}}
	for _, s := range r.Splits {
		rows = append(rows, []string{"  " + s.Name, unit.Number(s.GroupCount), unit.Number(s.Attempts), percent(s.Share), percent(s.RequestedShare), unit.Number(s.Rows)})
	}
	d.Blank()
	d.Table("srrrrr", rows)
}

// addCounts adds a list of counts, unless its only name is none.
func addCounts(d *doc.Doc, title string, list []Count) {
	if len(list) == 0 || len(list) == 1 && list[0].Name == none {
		return
	}
	rows := [][]string{{title, ""}}
	shown := list[:min(len(list), maxListed)]
	for _, c := range shown {
		rows = append(rows, []string{"  " + c.Name, unit.Number(c.Count)})
	}
	if rest := list[len(shown):]; len(rest) > 0 {
		n := 0
		for _, c := range rest {
			n += c.Count
		}
		rows = append(rows, []string{fmt.Sprintf("  %d others", len(rest)), unit.Number(n)})
	}
	d.Blank()
	d.Table("sr", rows)
}

func (r *Report) addDuplicates(d *doc.Doc) {
	found := r.Duplicates
	if found.Exact+found.Near == 0 {
		return
	}
	line := "duplicates: " + pluralOf(found.Exact, "exact copy", "exact copies")
	if found.Threshold > 0 && found.Threshold < 1 {
		line += fmt.Sprintf(", %s of at least %s", pluralOf(found.Near, "near copy", "near copies"), percent(found.Threshold))
	}
	d.Blank()
	d.Paragraph(line, 0, 2)
	rows := [][]string{{"  similar", "attempt, and an earlier one that it is similar to"}}
	for _, p := range found.Pairs[:min(len(found.Pairs), maxExamples)] {
		rows = append(rows, []string{percent(p.Similarity), p.Duplicate}, []string{"", "  " + p.Kept})
	}
	d.Table("ri", rows)
	if more := found.Exact + found.Near - maxExamples; more > 0 {
		d.Line(2, "and %s more", unit.Number(more))
	}
}

func (r *Report) addSecrets(d *doc.Doc) {
	s := r.Secrets
	if s.Attempts == 0 {
		return
	}
	action := map[SecretPolicy]string{SecretsRedact: "redacted", SecretsDrop: "attempts dropped", SecretsRefuse: "nothing exported"}[s.Policy]
	addCounts(d, "secrets in "+plural(s.Attempts, "attempt")+", "+action, counts(s.ByKind).list())
	for _, location := range s.Locations[:min(len(s.Locations), maxExamples)] {
		d.Line(2, "in record %d of %s", location.Record, location.File)
	}
}

// barWidth is the width of the longest bar of a histogram, in columns.
const barWidth = 40

// add adds the histogram as bars.
func (h Histogram) add(d *doc.Doc) {
	if h.Attempts == 0 {
		return
	}
	source := ", as counted by the providers"
	if h.Tokenizer != "" {
		source = ", by " + h.Tokenizer
	}
	d.Blank()
	d.Paragraph("tokens of an attempt"+source, 0, 2)
	d.Paragraph(fmt.Sprintf("total %s; min %s, median %s, 90%% up to %s, max %s",
		unit.Number(h.Sum), unit.Number(h.Min), unit.Number(h.Median), unit.Number(h.P90), unit.Number(h.Max)), 2, 2)
	maxCount := 1
	for _, bin := range h.Bins {
		maxCount = max(maxCount, bin.Count)
	}
	rows := [][]string{{"  from", "to", "attempts", ""}}
	for _, bin := range h.Bins {
		to := unit.Number(bin.To)
		if bin.To == 0 {
			to = "more"
		}
		rows = append(rows, []string{unit.Number(bin.From), to, unit.Number(bin.Count), bar(bin.Count, maxCount, barWidth)})
	}
	d.Table("rrrs", rows)
	if h.Unknown > 0 {
		d.Paragraph(plural(h.Unknown, "attempt")+" of unknown length", 2, 1)
	}
}

// bar returns a bar for n, where maxCount has the given width. Its resolution is 1/8 column.
// Only the bar for 0 is empty.
func bar(n, maxCount, width int) string {
	eighths := n * width * 8 / maxCount
	if n > 0 {
		eighths = max(eighths, 1)
	}
	rest := ""
	if eighths%8 > 0 {
		rest = string([]rune("▏▎▍▌▋▊▉")[eighths%8-1])
	}
	return strings.Repeat("█", eighths/8) + rest
}

func percent(share float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", share*100), ".0") + "%"
}

func plural(n int, word string) string { return pluralOf(n, word, word+"s") }

// pluralOf returns n with the singular or the plural form.
func pluralOf(n int, singular, pluralForm string) string {
	if n == 1 {
		return "1 " + singular
	}
	return unit.Number(n) + " " + pluralForm
}

// joinNames joins names. It lists only the first limit names and counts the others.
func joinNames(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}
