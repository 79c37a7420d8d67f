package chat

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/ask"
)

// Raise implements agent.Person. The answer is one number, for the limit that
// was reached, or two: steps and dollars. What begins with + is added; 0 is no
// limit.
func (s *Session) Raise(ctx context.Context, reached agent.Limits) (agent.Limits, bool, error) {
	if s.Alone {
		return reached, false, nil
	}
	s.catchUp(ctx)
	spent := s.now()
	steps := reached.Steps > 0 && spent.Step >= reached.Steps
	q := Question{Kind: AskLimit, Text: "The limit is reached: " + spentOf(spent, reached) + ".", Hint: "Enter ends, "}
	if steps {
		q.Hint += "a number is the new limit of steps (+10: ten more), two are steps and dollars, 0 is none"
	} else {
		q.Hint += "a number is the new limit in dollars (+1: one more), two are steps and dollars, 0 is none"
	}
	for {
		text, err := s.insist(ctx, q)
		if err != nil {
			return reached, false, gone(err)
		}
		if raise, ok := ask.YesNo(text, false); ok && !raise {
			return reached, false, nil
		}
		limits, err := raised(text, reached, steps)
		if err == nil {
			err = enough(limits, spent)
		}
		if err == nil {
			s.note(func(st *State) { st.StepLimit, st.CostLimit = limits.Steps, limits.Cost })
			return limits, true, nil
		}
		s.complain("%v", err)
	}
}

func spentOf(spent State, limits agent.Limits) string {
	text := fmt.Sprintf("%d steps", spent.Step)
	if limits.Steps > 0 {
		text = fmt.Sprintf("%d of %d steps", spent.Step, limits.Steps)
	}
	text += fmt.Sprintf(", $%.2f", float64(spent.Cost))
	if limits.Cost > 0 {
		text += fmt.Sprintf(" of $%.2f", limits.Cost)
	}
	return text
}

// maxSteps bounds a limit, so that sums of limits are no trouble.
const maxSteps = 1_000_000_000

// raised reads new limits.
func raised(text string, now agent.Limits, steps bool) (agent.Limits, error) {
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' })
	if len(fields) == 0 || len(fields) > 2 {
		return now, errors.New("one number is needed, or two: steps and dollars")
	}
	stepText, costText := "", ""
	switch {
	case len(fields) == 2:
		stepText, costText = fields[0], fields[1]
	case steps:
		stepText = fields[0]
	default:
		costText = fields[0]
	}
	if stepText != "" {
		add, rest := added(stepText)
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 || n > maxSteps {
			return now, fmt.Errorf("%.20q is no number of steps", stepText)
		}
		if add {
			n += now.Steps
		}
		now.Steps = n
	}
	if costText != "" {
		add, rest := added(costText)
		x, err := strconv.ParseFloat(strings.TrimPrefix(rest, "$"), 64)
		if err != nil || x < 0 || math.IsInf(x, 0) || math.IsNaN(x) {
			return now, fmt.Errorf("%.20q is no number of dollars", costText)
		}
		if add {
			x += now.Cost
		}
		now.Cost = x
	}
	return now, nil
}

func added(text string) (bool, string) {
	rest, ok := strings.CutPrefix(text, "+")
	return ok, rest
}

// enough says which of the limits is reached already.
func enough(l agent.Limits, spent State) error {
	switch {
	case l.Steps > 0 && spent.Step >= l.Steps:
		return fmt.Errorf("%d steps are made already; the limit of steps must be more, or 0", spent.Step)
	case l.Cost > 0 && float64(spent.Cost) >= l.Cost:
		return fmt.Errorf("$%.2f are spent already; the limit in dollars must be more, or 0", float64(spent.Cost))
	}
	return nil
}
