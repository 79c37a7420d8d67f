package sieve

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// listedNames is how many repositories, models ... the text has; the JSON has
// all.
const listedNames = 10

// WriteText prints the report for a terminal of that width, in columns.
func (r *Report) WriteText(w io.Writer, width int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s pass the filters", grouped(r.Kept), plural(r.Attempts, "attempt"))
	if r.Rows > 0 { // files of other tools have none
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
		b.WriteString("note: " + printable(n) + "\n")
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
		reasons = append(reasons, printable(string(d.Reason)))
	}
	column := columnOf(reasons, width/2)
	fmt.Fprintf(b, "\n%-*s %6s\n", column+2, "dropped", grouped(r.Attempts-r.Kept))
	for i, d := range r.Dropped {
		line := fmt.Sprintf("  %-*s %6s", column, head(reasons[i], column), grouped(d.Attempts))
		if len(d.Examples) > 0 {
			line += "  as " + tail(printable(d.Examples[0]), width-utf8.RuneCountInString(line)-5)
		}
		b.WriteString(line + "\n")
	}
}

func (r *Report) writeSplits(b *strings.Builder) {
	if len(r.Splits) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-18s %12s %9s %7s %7s %8s\n", "split", by(r.SplitBy), "attempts", "share", "asked", "rows")
	for _, s := range r.Splits {
		fmt.Fprintf(b, "  %-16s %12s %9s %7s %7s %8s\n", s.Name, grouped(s.Keys), grouped(s.Attempts), percent(s.Share), percent(s.Asked), grouped(s.Rows))
	}
}

// writeCounts leaves out a list in which nobody would learn anything.
func writeCounts(b *strings.Builder, title string, list []Count, width int) {
	if len(list) == 0 || len(list) == 1 && list[0].Name == none {
		return
	}
	shown := list[:min(len(list), listedNames)]
	var names []string
	for _, c := range shown {
		names = append(names, printable(c.Name))
	}
	column := columnOf(names, width-10)
	fmt.Fprintf(b, "\n%s\n", title)
	for i, c := range shown {
		fmt.Fprintf(b, "  %-*s %6s\n", column, head(names[i], column), grouped(c.Count))
	}
	if rest := list[len(shown):]; len(rest) > 0 {
		n := 0
		for _, c := range rest {
			n += c.Count
		}
		fmt.Fprintf(b, "  %-*s %6s\n", column, fmt.Sprintf("%d others", len(rest)), grouped(n))
	}
}

func (r *Report) writeDuplicates(b *strings.Builder, width int) {
	d := r.Duplicates
	if d.Exact+d.Near == 0 {
		return
	}
	fmt.Fprintf(b, "\nalike: %s", plurals(d.Exact, "exact copy", "exact copies"))
	if d.Threshold > 0 && d.Threshold < 1 {
		fmt.Fprintf(b, ", %s from %s on", plurals(d.Near, "near copy", "near copies"), percent(d.Threshold))
	}
	b.WriteString("\n")
	for _, p := range d.Pairs[:min(len(d.Pairs), maxExamples)] {
		room := (width - 12) / 2
		fmt.Fprintf(b, "  %5s  %s\n         is like %s\n", percent(p.Likeness), tail(printable(p.Like), 2*room), tail(printable(p.Kept), 2*room-8))
	}
	if more := d.Exact + d.Near - maxExamples; more > 0 {
		fmt.Fprintf(b, "  and %s more\n", grouped(more))
	}
}

func (r *Report) writeSecrets(b *strings.Builder, width int) {
	s := r.Secrets
	if s.Attempts == 0 {
		return
	}
	done := map[Secrets]string{Redact: "redacted", Drop: "those attempts are dropped", Refuse: "nothing is exported"}[s.Mode]
	writeCounts(b, "secrets in "+plural(s.Attempts, "attempt")+", "+done, counts(s.ByKind).list(), width)
	for _, f := range s.Found[:min(len(s.Found), maxExamples)] {
		line := fmt.Sprintf("  in record %d of ", f.Record)
		b.WriteString(line + tail(printable(f.File), width-len(line)) + "\n")
	}
}

// write draws the histogram with bars.
func (h Histogram) write(b *strings.Builder, width int) {
	if h.Attempts == 0 {
		return
	}
	by := ", as the providers counted"
	if h.Tokenizer != "" {
		by = ", by " + h.Tokenizer
	}
	fmt.Fprintf(b, "\nTokens of an attempt%s\n  %s in all; least %s, median %s, 90%% up to %s, most %s\n", by,
		grouped(h.Sum), grouped(h.Least), grouped(h.Median), grouped(h.P90), grouped(h.Most))
	most, digits := 1, len(grouped(h.Bins[len(h.Bins)-1].From))
	for _, bin := range h.Bins {
		most, digits = max(most, bin.Count), max(digits, len(grouped(bin.To)))
	}
	room := max(10, min(50, width-2*digits-14))
	for _, bin := range h.Bins {
		fmt.Fprintf(b, "%s\n", strings.TrimRight(fmt.Sprintf("  %s %6s %s", bin.label(digits), grouped(bin.Count), bar(bin.Count, most, room)), " "))
	}
	if h.Unknown > 0 {
		fmt.Fprintf(b, "  %s of unknown length\n", plural(h.Unknown, "attempt"))
	}
}

func (bin Bin) label(digits int) string {
	if bin.To == 0 {
		return fmt.Sprintf("%*s and more%s", digits, grouped(bin.From), strings.Repeat(" ", max(0, digits-6)))
	}
	return fmt.Sprintf("%*s - %*s", digits, grouped(bin.From), digits, grouped(bin.To))
}

// bar has eighths of a column, so that little is not nothing.
func bar(n, most, room int) string {
	eighths := n * room * 8 / most
	if n > 0 {
		eighths = max(eighths, 1)
	}
	rest := ""
	if eighths%8 > 0 {
		rest = string([]rune("▏▎▍▌▋▊▉")[eighths%8-1])
	}
	return strings.Repeat("█", eighths/8) + rest
}

// grouped writes a number with commas.
func grouped[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func percent(share float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(share*100, 'f', 1, 64), ".0") + "%"
}

func plural(n int, word string) string { return plurals(n, word, word+"s") }

func plurals(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// names lists the first few.
func names(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// printable makes what strangers wrote fit for a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// columnOf is how wide a column of names is, at most so wide.
func columnOf(names []string, most int) int {
	column := 26
	for _, n := range names {
		column = max(column, utf8.RuneCountInString(n))
	}
	return max(min(column, most), 20)
}

// head is the beginning of a long name.
func head(s string, room int) string {
	runes := []rune(s)
	if len(runes) <= room {
		return s
	}
	return string(runes[:room-1]) + "…"
}

// tail is the end of a long name, which tells it from others.
func tail(s string, room int) string {
	runes := []rune(s)
	if room = max(room, 20); len(runes) <= room {
		return s
	}
	return "…" + string(runes[len(runes)-room+1:])
}
