package chat

import (
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories/timeline"
)

// Line is the state in words: what is always visible.
func (s State) Line() string {
	parts := []string{s.Mode.String()}
	if s.Model != "" {
		parts = append(parts, report.Printable(s.Model))
	}
	steps := fmt.Sprintf("step %d", s.Step)
	if s.StepLimit > 0 {
		steps += fmt.Sprintf(" of %d", s.StepLimit)
	}
	cost := fmt.Sprintf("$%.2f", float64(s.Cost))
	if s.Unpriced || s.Cost > 0 {
		cost = report.Spent(s.Cost, !s.Unpriced)
	}
	if s.CostLimit > 0 {
		cost += fmt.Sprintf(" of $%.2f", s.CostLimit)
	}
	parts = append(parts, steps, cost, fmt.Sprintf("%s tokens in, %s out", Tokens(s.Usage.Prompt), Tokens(s.Usage.Completion)))
	if !s.Started.IsZero() {
		parts = append(parts, timeline.Clock(time.Since(s.Started)))
	}
	if s.Busy != "" {
		parts = append(parts, s.Busy)
	}
	return strings.Join(parts, " | ")
}

// Tokens is a number of tokens in a few characters.
func Tokens(n int64) string {
	switch {
	case n >= 999_500:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}
