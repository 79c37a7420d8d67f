package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/docker/go-units"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
)

// minShrunk is the width below which a column is not cut, in cells.
const minShrunk = 8

// gap stands between columns.
const gap = "  "

// Table aligns rows by the width of what a terminal shows, the first being the
// head. Each letter says how a column stands: l left, r right; s left, and giving
// way where the table is too wide; i an id, which gives way in its middle, since
// ids differ at their ends. The widest column gives way first. Cells are made
// printable.
func Table(width int, columns string, rows [][]string) string {
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i := range row {
			row[i] = Printable(row[i])
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
	}
	for over := total(widths) - width; over > 0; over-- {
		widest := -1
		for i, c := range columns {
			if (c == 's' || c == 'i') && widths[i] > minShrunk && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	var s strings.Builder
	for n, row := range rows {
		line := ""
		for i, cell := range row {
			if columns[i] == 'i' && n > 0 { // below the head
				cell = Middle(cell, widths[i])
			}
			cell = ansi.Truncate(cell, widths[i], "…")
			space := strings.Repeat(" ", widths[i]-ansi.StringWidth(cell))
			if i > 0 {
				line += gap
			}
			if columns[i] == 'r' {
				line += space + cell
			} else {
				line += cell + space
			}
		}
		s.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return s.String()
}

// Middle is s in at most width cells, cut in its middle where it is wider, or
// at its end where there is no room for two parts. Cells are counted code point
// by code point, which is how terminals count that were not asked to join them.
func Middle(s string, width int) string {
	full := ansi.StringWidthWc(s)
	switch {
	case full <= width:
		return s
	case width <= 0:
		return ""
	case width < minShrunk:
		return ansi.TruncateWc(s, width, "…")
	}
	tail := min(max(width/2, min(width-3, 6)), 8)
	return ansi.TruncateWc(s, width-tail, "…") + ansi.TruncateLeftWc(s, full-tail, "")
}

func total(widths []int) int {
	sum := len(gap) * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// paragraph is text on a few lines of its own, each after the indent.
func paragraph(text string, width, indent, lines int) string {
	room := max(width-indent, 3*minShrunk)
	wrapped := Wrap(text, room)
	if len(wrapped) > lines {
		last := ansi.Truncate(wrapped[lines-1], room-1, "") + "…"
		wrapped = append(wrapped[:lines-1], last)
	}
	pad := strings.Repeat(" ", indent)
	return pad + strings.Join(wrapped, "\n"+pad) + "\n"
}

// Wrap makes text printable and breaks it into lines of at most width cells,
// between words: flags and paths stay whole, as long as they fit a line.
func Wrap(text string, width int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(Printable(text)) {
		size := ansi.StringWidth(word)
		if line != "" && used+1+size <= width {
			line += " " + word
			used += 1 + size
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for size > width {
			head := ansi.Truncate(word, width, "")
			if head == "" { // not even one character fits
				break
			}
			lines = append(lines, head)
			word = strings.TrimPrefix(word, head)
			size = ansi.StringWidth(word)
		}
		line, used = word, size
	}
	return append(lines, line)
}

// money does not round to nothing what is something.
func money(c model.Cost) string {
	switch {
	case c >= 0.01 || c <= 0:
		return fmt.Sprintf("$%.2f", float64(c))
	case c >= 0.0001:
		return fmt.Sprintf("$%.4f", float64(c))
	}
	return "under $0.0001"
}

// span is a time as people say it.
func span(s float64) string {
	switch {
	case s < 0.1 && s > 0:
		return fmt.Sprintf("%.0fms", s*1000)
	case s < 3600:
		return seconds(s)
	}
	d := time.Duration(s * float64(time.Second)).Round(time.Minute)
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// amount is a large number in a few letters.
func amount(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprint(n)
	case n < 999_500:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	case n < 10_000_000:
		return fmt.Sprintf("%.2fM", float64(n)/1e6)
	case n < 999_500_000:
		return fmt.Sprintf("%.0fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2fG", float64(n)/1e9)
}

// Count is a number with its noun, as "1 worker" or "2 workers".
func Count(n int, noun string) string {
	return text.Count(n, noun)
}

// Size is room on a disk, counted as disks are sold: "1.5 GB".
func Size(bytes int64) string {
	return units.CustomSize("%.3g %s", float64(bytes), 1000, []string{"B", "kB", "MB", "GB", "TB", "PB"})
}
