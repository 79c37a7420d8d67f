package chat

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
)

// RaiseLimits implements agent.User. The answer is one number for the limit that was reached, or
// two: steps and dollars. A number with a leading + is added; 0 removes the limit.
func (s *Session) RaiseLimits(ctx context.Context, reached agent.Limits) (agent.Limits, bool, error) {
	if s.NonInteractive {
		return reached, false, nil
	}
	s.waitUntilShown(ctx)
	spent := s.currentState()
	steps := reached.Steps > 0 && spent.Step >= reached.Steps
	q := Question{Kind: AskLimit, Text: "Limit reached: " + spentText(spent, reached) + ".", Hint: "Enter ends, "}
	if steps {
		q.Hint += "a number is the new step limit (+10 adds ten), two are steps and dollars, 0 is unlimited"
	} else {
		q.Hint += "a number is the new limit in dollars (+1 adds one), two are steps and dollars, 0 is unlimited"
	}
	for {
		text, err := s.askOrQuit(ctx, q)
		if err != nil {
			return reached, false, attemptError(err)
		}
		if raise, ok := ask.ParseYesNo(text, false); ok && !raise {
			return reached, false, nil
		}
		limits, err := parseLimits(text, reached, steps)
		if err == nil {
			err = checkLimits(limits, spent)
		}
		if err == nil {
			s.updateState(func(st *State) { st.StepLimit, st.CostLimit = limits.Steps, limits.Cost })
			return limits, true, nil
		}
		s.notifyError("%v", err)
	}
}

func spentText(spent State, limits agent.Limits) string {
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

// maxSteps bounds the step limit, so that sums do not overflow.
const maxSteps = 1_000_000_000

// parseLimits parses new limits. A single number is the step limit if steps is set, else the
// cost limit.
func parseLimits(text string, current agent.Limits, steps bool) (agent.Limits, error) {
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' })
	if len(fields) == 0 || len(fields) > 2 {
		return current, errors.New("enter one number, or two: steps and dollars")
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
		add, rest := cutPlus(stepText)
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 || n > maxSteps {
			return current, fmt.Errorf("%.20q is not a number of steps", stepText)
		}
		if add {
			n += current.Steps
		}
		current.Steps = n
	}
	if costText != "" {
		add, rest := cutPlus(costText)
		x, err := strconv.ParseFloat(strings.TrimPrefix(rest, "$"), 64)
		if err != nil || x < 0 || math.IsInf(x, 0) || math.IsNaN(x) {
			return current, fmt.Errorf("%.20q is not a number of dollars", costText)
		}
		if add {
			x += current.Cost
		}
		current.Cost = x
	}
	return current, nil
}

func cutPlus(text string) (bool, string) {
	rest, found := strings.CutPrefix(text, "+")
	return found, rest
}

// checkLimits returns an error if a limit is already reached.
func checkLimits(l agent.Limits, spent State) error {
	switch {
	case l.Steps > 0 && spent.Step >= l.Steps:
		return fmt.Errorf("already at %d steps; enter a higher limit, or 0 for none", spent.Step)
	case l.Cost > 0 && float64(spent.Cost) >= l.Cost:
		return fmt.Errorf("already spent $%.2f; enter a higher limit, or 0 for none", float64(spent.Cost))
	}
	return nil
}
