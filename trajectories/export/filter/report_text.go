package filter

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/internal/text"
)

// maxListed bounds each list of counts in the text, such as the list of models. The JSON
// has all counts.
const maxListed = 10

// WriteText writes the report as text for a terminal of the given width.
func (r *Report) WriteText(w io.Writer, width int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s pass the filters", formatNumber(r.Kept), plural(r.Attempts, "attempt"))
	if r.Rows > 0 { // 0 for formats with one file per attempt
		fmt.Fprintf(&b, ", %s written", plural(r.Rows, "row"))
	}
	b.WriteByte('\n')
	r.writeDropped(&b, width)
	r.writeSplits(&b)
	writeCounts(&b, "repositories", r.Repos, width)
	writeCounts(&b, "models", r.Models, width)
	writeCounts(&b, "verdicts", r.Verdicts, width)
	writeCounts(&b, "outcomes", r.Classes, width)
	r.writeDuplicates(&b, width)
	r.writeSecrets(&b, width)
	r.Tokens.write(&b, width)
	if len(r.Notes) > 0 {
		b.WriteByte('\n')
	}
	for _, n := range r.Notes {
		b.WriteString("note: " + text.Printable(n) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) writeDropped(b *strings.Builder, width int) {
	if len(r.Dropped) == 0 {
		return
	}
	var reasons []string
	for _, d := range r.Dropped {
		reasons = append(reasons, text.Printable(string(d.Reason)))
	}
	column := columnWidth(reasons, width/2)
	fmt.Fprintf(b, "\n%-*s %6s\n", column+2, "dropped", formatNumber(r.Attempts-r.Kept))
	for i, d := range r.Dropped {
		line := fmt.Sprintf("  %-*s %6s", column, clipEnd(reasons[i], column), formatNumber(d.Attempts))
		if len(d.Examples) > 0 {
			line += "  e.g. " + clipStart(text.Printable(d.Examples[0]), width-utf8.RuneCountInString(line)-7)
		}
		b.WriteString(line + "\n")
	}
}

func (r *Report) writeSplits(b *strings.Builder) {
	if len(r.Splits) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-18s %12s %9s %7s %7s %8s\n", "split", splitUnit(r.SplitBy), "attempts", "share", "asked", "rows")
	for _, s := range r.Splits {
		fmt.Fprintf(b, "  %-16s %12s %9s %7s %7s %8s\n", s.Name, formatNumber(s.GroupCount), formatNumber(s.Attempts), percent(s.Share), percent(s.RequestedShare), formatNumber(s.Rows))
	}
}

// writeCounts writes a list of counts, unless its only name is none.
func writeCounts(b *strings.Builder, title string, list []Count, width int) {
	if len(list) == 0 || len(list) == 1 && list[0].Name == none {
		return
	}
	shown := list[:min(len(list), maxListed)]
	var names []string
	for _, c := range shown {
		names = append(names, text.Printable(c.Name))
	}
	column := columnWidth(names, width-10)
	fmt.Fprintf(b, "\n%s\n", title)
	for i, c := range shown {
		fmt.Fprintf(b, "  %-*s %6s\n", column, clipEnd(names[i], column), formatNumber(c.Count))
	}
	if rest := list[len(shown):]; len(rest) > 0 {
		n := 0
		for _, c := range rest {
			n += c.Count
		}
		fmt.Fprintf(b, "  %-*s %6s\n", column, fmt.Sprintf("%d others", len(rest)), formatNumber(n))
	}
}

func (r *Report) writeDuplicates(b *strings.Builder, width int) {
	d := r.Duplicates
	if d.Exact+d.Near == 0 {
		return
	}
	fmt.Fprintf(b, "\nduplicates: %s", pluralOf(d.Exact, "exact copy", "exact copies"))
	if d.Threshold > 0 && d.Threshold < 1 {
		fmt.Fprintf(b, ", %s of at least %s", pluralOf(d.Near, "near copy", "near copies"), percent(d.Threshold))
	}
	b.WriteString("\n")
	for _, p := range d.Pairs[:min(len(d.Pairs), maxExamples)] {
		half := (width - 12) / 2
		fmt.Fprintf(b, "  %5s  %s\n         is similar to %s\n", percent(p.Similarity), clipStart(text.Printable(p.Duplicate), 2*half), clipStart(text.Printable(p.Kept), 2*half-8))
	}
	if more := d.Exact + d.Near - maxExamples; more > 0 {
		fmt.Fprintf(b, "  and %s more\n", formatNumber(more))
	}
}

func (r *Report) writeSecrets(b *strings.Builder, width int) {
	s := r.Secrets
	if s.Attempts == 0 {
		return
	}
	action := map[SecretPolicy]string{SecretsRedact: "redacted", SecretsDrop: "attempts dropped", SecretsRefuse: "nothing exported"}[s.Policy]
	writeCounts(b, "secrets in "+plural(s.Attempts, "attempt")+", "+action, counts(s.ByKind).list(), width)
	for _, location := range s.Locations[:min(len(s.Locations), maxExamples)] {
		line := fmt.Sprintf("  in record %d of ", location.Record)
		b.WriteString(line + clipStart(text.Printable(location.File), width-len(line)) + "\n")
	}
}

// write writes the histogram as bars.
func (h Histogram) write(b *strings.Builder, width int) {
	if h.Attempts == 0 {
		return
	}
	source := ", as counted by the providers"
	if h.Tokenizer != "" {
		source = ", by " + h.Tokenizer
	}
	fmt.Fprintf(b, "\nTokens of an attempt%s\n  total %s; min %s, median %s, 90%% up to %s, max %s\n", source,
		formatNumber(h.Sum), formatNumber(h.Min), formatNumber(h.Median), formatNumber(h.P90), formatNumber(h.Max))
	maxCount, digits := 1, len(formatNumber(h.Bins[len(h.Bins)-1].From))
	for _, bin := range h.Bins {
		maxCount, digits = max(maxCount, bin.Count), max(digits, len(formatNumber(bin.To)))
	}
	barWidth := max(10, min(50, width-2*digits-14))
	for _, bin := range h.Bins {
		fmt.Fprintf(b, "%s\n", strings.TrimRight(fmt.Sprintf("  %s %6s %s", bin.label(digits), formatNumber(bin.Count), bar(bin.Count, maxCount, barWidth)), " "))
	}
	if h.Unknown > 0 {
		fmt.Fprintf(b, "  %s of unknown length\n", plural(h.Unknown, "attempt"))
	}
}

func (bin Bin) label(digits int) string {
	if bin.To == 0 {
		return fmt.Sprintf("%*s and more%s", digits, formatNumber(bin.From), strings.Repeat(" ", max(0, digits-6)))
	}
	return fmt.Sprintf("%*s - %*s", digits, formatNumber(bin.From), digits, formatNumber(bin.To))
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

// formatNumber formats a number with commas.
func formatNumber[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func percent(share float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(share*100, 'f', 1, 64), ".0") + "%"
}

func plural(n int, word string) string { return pluralOf(n, word, word+"s") }

// pluralOf returns n with the singular or the plural form.
func pluralOf(n int, singular, pluralForm string) string {
	if n == 1 {
		return "1 " + singular
	}
	return formatNumber(n) + " " + pluralForm
}

// joinNames joins names. It lists only the first limit names and counts the others.
func joinNames(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// columnWidth returns the width of a column of names: that of the longest name, at least
// 26, and at most limit or, if limit is less, 20.
func columnWidth(names []string, limit int) int {
	width := 26
	for _, n := range names {
		width = max(width, utf8.RuneCountInString(n))
	}
	return max(min(width, limit), 20)
}

// clipEnd truncates a name of more than width characters at the end.
func clipEnd(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	return string(runes[:width-1]) + "…"
}

// clipStart truncates a name of more than width characters, or 20 if width is less, at the
// start, since the end is more distinctive.
func clipStart(s string, width int) string {
	runes := []rune(s)
	if width = max(width, 20); len(runes) <= width {
		return s
	}
	return "…" + string(runes[len(runes)-width+1:])
}
