package chat

import (
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
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
	cost := unit.Money(float64(s.Cost))
	if s.CostLimit > 0 {
		cost += " of " + unit.Money(s.CostLimit)
	}
	in, out := unit.Count(s.Usage.Prompt), unit.Count(s.Usage.Completion)
	parts = append(parts, steps)
	if !s.Unpriced || s.Cost > 0 {
		parts = append(parts, cost)
	}
	parts = append(parts, fmt.Sprintf("%s tokens in, %s out", in, out))
	if !s.Started.IsZero() {
		parts = append(parts, unit.Duration(time.Since(s.Started).Truncate(time.Second)))
	}
	if s.Activity != "" {
		parts = append(parts, s.Activity)
	}
	return strings.Join(parts, " | ")
}
