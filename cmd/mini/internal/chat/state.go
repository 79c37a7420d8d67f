package chat

import (
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/runner/report"
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
	parts = append(parts, steps, cost, fmt.Sprintf("%s tokens in, %s out", tokens(s.Usage.Prompt), tokens(s.Usage.Completion)))
	if !s.Started.IsZero() {
		parts = append(parts, clock(time.Since(s.Started)))
	}
	if s.Busy != "" {
		parts = append(parts, s.Busy)
	}
	return strings.Join(parts, " | ")
}

func tokens(n int64) string {
	switch {
	case n >= 999_500:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

func clock(d time.Duration) string {
	n := int(d.Seconds())
	if n >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", n/3600, n/60%60, n%60)
	}
	return fmt.Sprintf("%d:%02d", n/60, n%60)
}
