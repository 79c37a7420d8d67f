package chat

import (
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories/timeline"
)

// StatusLine formats the state as one line without colours.
func (s State) StatusLine() string {
	parts := []string{s.Mode.String()}
	if s.Model != "" {
		parts = append(parts, text.Printable(s.Model))
	}
	steps := fmt.Sprintf("step %d", s.Step)
	if s.StepLimit > 0 {
		steps += fmt.Sprintf(" of %d", s.StepLimit)
	}
	cost := fmt.Sprintf("$%.2f", float64(s.Cost))
	if s.Unpriced || s.Cost > 0 {
		cost = report.CostText(s.Cost, !s.Unpriced)
	}
	if s.CostLimit > 0 {
		cost += fmt.Sprintf(" of $%.2f", s.CostLimit)
	}
	in, out := timeline.FormatCount(s.Usage.Prompt), timeline.FormatCount(s.Usage.Completion)
	parts = append(parts, steps, cost, fmt.Sprintf("%s tokens in, %s out", in, out))
	if !s.Started.IsZero() {
		parts = append(parts, timeline.FormatDuration(time.Since(s.Started)))
	}
	if s.Activity != "" {
		parts = append(parts, s.Activity)
	}
	return strings.Join(parts, " | ")
}
