package tui

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// Widths are counted code point by code point, as terminals do that were not
// asked to join them.
func width(s string) int { return ansi.StringWidthWc(s) }

// ellipsis marks what was cut off.
const ellipsis = "…"

// clean is foreign text on one line, without anything that steers a terminal
// and without what terminals disagree on the width of: signs that change the
// sign before them.
func clean(s string) string {
	s = report.Printable(bounded(s))
	marks := 0 // on the sign before
	return strings.Map(func(r rune) rune {
		if r < 0x300 {
			marks = 0
			return r
		}
		switch {
		case r >= 0xfe00 && r <= 0xfe0f, r >= 0x1f3fb && r <= 0x1f3ff, r >= 0xe0100 && r <= 0xe01ef:
			return -1
		case !unicode.Is(unicode.M, r):
			marks = 0
		case marks == maxMarks:
			return -1
		default:
			marks++
		}
		return r
	}, s)
}

// maxMarks are the marks that a sign may carry: scripts need no more, and more
// of them run into the lines above and below.
const maxMarks = 2

// fit is s in exactly w columns, cut at its end or filled up.
func fit(s string, w int) string {
	s = cut(s, w)
	return s + strings.Repeat(" ", max(0, w-width(s)))
}

// right is fit for numbers.
func right(s string, w int) string {
	s = cut(s, w)
	return strings.Repeat(" ", max(0, w-width(s))) + s
}

func cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if width(s) <= w {
		return s
	}
	return ansi.TruncateWc(s, w, ellipsis)
}

// beside puts l at the left and r at the right of a line; where both have no
// room, l is cut.
func beside(l, r string, w int) string {
	if gap := w - width(l) - width(r); gap >= 1 {
		return l + strings.Repeat(" ", gap) + r
	}
	if width(r)+8 > w {
		return cut(l, w)
	}
	return fit(l, w-width(r)-1) + " " + r
}

// clock is a time that passes, as 0:07, 59:59 or 1:02:03.
func clock(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// short is a time in at most six columns.
func short(d time.Duration) string {
	if d < time.Hour {
		return clock(d)
	}
	return coarse(d)
}

// coarse is a time that nobody knows to the second.
func coarse(d time.Duration) string {
	switch {
	case d >= 100*time.Hour:
		return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d/time.Hour%24)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d/time.Minute%60)
	case d >= time.Minute:
		return fmt.Sprintf("%dm", (d+30*time.Second)/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// dollars is a cost; nothing where there is none, since no price may be known.
func dollars(c float64) string {
	switch {
	case c <= 0:
		return ""
	case c < 0.01:
		return "<$0.01"
	case c >= 10000:
		return fmt.Sprintf("$%.0f", c)
	}
	return fmt.Sprintf("$%.2f", c)
}

// hourly is a rate, in three figures.
func hourly(rate float64) string {
	switch {
	case rate <= 0:
		return ""
	case rate < 10:
		return fmt.Sprintf("%.1f/h", rate)
	}
	return fmt.Sprintf("%.0f/h", rate)
}

// megabytes of an image, downloaded of total.
func megabytes(bytes, total int64) string {
	const mb = 1e6
	if total >= 10e9 {
		return fmt.Sprintf("%.1f/%.1f GB", float64(bytes)/1e9, float64(total)/1e9)
	}
	return fmt.Sprintf("%.0f/%.0f MB", float64(bytes)/mb, float64(total)/mb)
}

// ending says how an attempt ended: why, or what it took.
func ending(o *trajectories.Outcome) string {
	switch {
	case o.Error != "" && strings.Contains(bounded(o.Error), o.ExitStatus):
		return bounded(o.Error)
	case o.Error != "":
		return o.ExitStatus + ": " + bounded(o.Error)
	}
	parts := []string{o.ExitStatus, report.Count(o.Steps, "step")}
	if o.Cost > 0 || o.Usage.Unpriced > 0 {
		parts = append(parts, report.Spent(o.Cost, o.Usage.Unpriced == 0))
	}
	parts = append(parts, clock(o.Took()))
	switch {
	case o.Class.Counts() && len(o.Submission) == 0:
		parts = append(parts, "empty patch")
	case o.Autosubmitted:
		parts = append(parts, "the working diff")
	}
	return strings.Join(parts, "  ")
}
