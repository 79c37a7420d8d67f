package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
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
		parts = append(parts, unit.Duration(time.Duration(x.Duration)))
	}
	size := unit.Count(int64(len(x.Output))) + " bytes"
	if len(x.Output) == 0 {
		size = "no output"
	} else if x.Truncated {
		size += fmt.Sprintf(" of %s, the middle left out", unit.Count(x.Bytes))
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
		stats = append(stats, unit.Money(float64(s.Cost))+" so far")
	}
	if s.Tokens > 0 {
		stats = append(stats, unit.Count(s.Tokens)+" tokens so far")
	}
	if c := s.Call; c != nil {
		if c.Usage.Prompt+c.Usage.Completion > 0 {
			stats = append(stats, fmt.Sprintf("%s in, %s out", unit.Count(c.Usage.Prompt), unit.Count(c.Usage.Completion)))
		}
		if c.Duration > 0 {
			stats = append(stats, "model "+unit.Duration(time.Duration(c.Duration)))
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
		stats = append(stats, unit.Count(n)+" tokens")
	}
	cost := "-"
	switch known := o.Usage.Unpriced == 0; {
	case o.Cost > 0 && known:
		cost = unit.Money(float64(o.Cost))
	case o.Cost > 0:
		cost = unit.Money(float64(o.Cost)) + " + ?"
	case !known:
		cost = "?"
	}
	stats = append(stats, cost)
	if duration := o.ActiveDuration(); duration > 0 {
		stats = append(stats, unit.Duration(duration))
	}
	if !o.End.IsZero() {
		stats = append(stats, "ended "+o.End.Local().Format(time.DateTime))
	}
	return stats
}
