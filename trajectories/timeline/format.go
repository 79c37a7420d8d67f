package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories"
)

// ResultLine returns a line with the exit code, signal or timeout, duration and output
// size of a command.
func ResultLine(x *trajectories.Execution) string {
	parts := []string{exitText(x)}
	if x.Signal != 0 {
		parts = append(parts, fmt.Sprintf("signal %d", x.Signal))
	}
	if x.TimedOut {
		parts = append(parts, "timed out")
	}
	if x.OOMKilled > 0 {
		parts = append(parts, "killed: out of memory")
	}
	if x.Duration > 0 {
		parts = append(parts, formatSeconds(x.Duration))
	}
	size := FormatCount(int64(len(x.Output))) + " bytes"
	if len(x.Output) == 0 {
		size = "no output"
	} else if x.Truncated {
		size += fmt.Sprintf(" of %s, the middle left out", FormatCount(x.Bytes))
	}
	return strings.Join(append(parts, size), ", ")
}

func exitText(x *trajectories.Execution) string {
	if x.ExitCodeUnknown {
		return "exit code unknown"
	}
	return fmt.Sprintf("exit %d", x.ExitCode)
}

// StepStats returns statistics of a step: exit codes, cost and tokens up to this step,
// and the model call. For t.End it returns the totals of the attempt.
func (t *Timeline) StepStats(s *Step) []string {
	if s == t.End {
		return t.totals()
	}
	if s.Number == 0 {
		return nil
	}
	var stats, exitCodes []string
	for _, item := range s.Items {
		if item.Execution != nil {
			exitCodes = append(exitCodes, exitText(item.Execution))
		}
	}
	if len(exitCodes) > 0 {
		stats = append(stats, strings.Join(exitCodes, ", "))
	}
	if s.Cost > 0 {
		stats = append(stats, FormatCost(float64(s.Cost))+" so far")
	}
	if s.Tokens > 0 {
		stats = append(stats, FormatCount(s.Tokens)+" tokens so far")
	}
	if c := s.Call; c != nil {
		if c.Usage.Prompt+c.Usage.Completion > 0 {
			stats = append(stats, fmt.Sprintf("%s in, %s out", FormatCount(c.Usage.Prompt), FormatCount(c.Usage.Completion)))
		}
		if c.Duration > 0 {
			stats = append(stats, "model "+formatSeconds(c.Duration))
		}
		if c.RequestCount > 1 {
			stats = append(stats, fmt.Sprintf("%d requests", c.RequestCount))
		}
	}
	if !s.Time.IsZero() {
		stats = append(stats, s.Time.Local().Format(time.TimeOnly))
	}
	return stats
}

// totals returns the totals of the attempt.
func (t *Timeline) totals() []string {
	o := t.Outcome
	if o == nil {
		return nil
	}
	stats := []string{text.Count(o.Steps, "step")}
	if n := o.Usage.Prompt + o.Usage.Completion; n > 0 {
		stats = append(stats, FormatCount(n)+" tokens")
	}
	cost := "-"
	switch known := o.Usage.Unpriced == 0; {
	case o.Cost > 0 && known:
		cost = FormatCost(float64(o.Cost))
	case o.Cost > 0:
		cost = FormatCost(float64(o.Cost)) + " + ?"
	case !known:
		cost = "?"
	}
	stats = append(stats, cost)
	if duration := o.ActiveDuration(); duration > 0 {
		stats = append(stats, FormatDuration(duration))
	}
	if !o.End.IsZero() {
		stats = append(stats, "ended "+o.End.Local().Format(time.DateTime))
	}
	return stats
}

// FormatCount formats a number below 10^13 in at most five columns.
func FormatCount(n int64) string {
	switch {
	case n >= 10e9:
		return fmt.Sprintf("%dG", n/1e9)
	case n >= 10e6:
		return fmt.Sprintf("%dM", n/1e6)
	case n >= 1e6:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 10e3:
		return fmt.Sprintf("%dk", n/1e3)
	case n >= 1e3:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

// FormatCost formats a cost in US dollars below 1,000,000 in at most eight columns.
func FormatCost(c float64) string {
	switch {
	case c < 0.01 && c > 0:
		return "<$0.01"
	case c >= 1000:
		return fmt.Sprintf("$%.0f", c)
	}
	return fmt.Sprintf("$%.2f", c)
}

// FormatDuration formats a duration as 0:07, 59:59 or 1:02:03.
func FormatDuration(d time.Duration) string {
	seconds := int(max(d, 0) / time.Second)
	if seconds >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

func formatSeconds(s trajectories.Seconds) string {
	if d := time.Duration(s); d >= time.Minute {
		return FormatDuration(d)
	}
	return fmt.Sprintf("%.1fs", time.Duration(s).Seconds())
}
