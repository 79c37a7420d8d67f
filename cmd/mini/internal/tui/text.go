package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/safe"
	"github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

func width(s string) int { return screen.Width(s) }

// ellipsis marks what was cut off.
const ellipsis = screen.Ellipsis

// clean is foreign text on one line, without anything that steers a terminal.
func clean(s string) string { return safe.Line(bounded(s)) }

func fit(s string, w int) string       { return screen.Fit(s, w) }
func right(s string, w int) string     { return screen.Right(s, w) }
func cut(s string, w int) string       { return screen.Cut(s, w) }
func beside(l, r string, w int) string { return screen.Beside(l, r, w) }

// short is a time in at most six columns.
func short(d time.Duration) string {
	if d < time.Hour {
		return timeline.Clock(d)
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
	if c <= 0 {
		return ""
	}
	return timeline.Dollars(c)
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
	parts = append(parts, timeline.Clock(o.Took()))
	switch {
	case o.Class.Counts() && len(o.Submission) == 0:
		parts = append(parts, "empty patch")
	case o.Autosubmitted:
		parts = append(parts, "the working diff")
	}
	return strings.Join(parts, "  ")
}
