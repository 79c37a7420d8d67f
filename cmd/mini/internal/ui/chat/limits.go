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
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
)

// RaiseLimits implements agent.User: it asks for new limits. The answer is one number for the
// limit that was reached, or two numbers: steps and dollars. A leading + adds to the current
// limit; 0 removes the limit.
func (s *Session) RaiseLimits(ctx context.Context, current agent.Limits) (agent.Limits, bool, error) {
	if s.NonInteractive {
		return current, false, nil
	}
	s.waitUntilShown(ctx)
	spent := s.currentState()
	stepsReached := current.Steps > 0 && spent.Step >= current.Steps
	q := Question{Kind: AskLimit, Text: "Limit reached: " + usageText(spent, current) + ".", Hint: "Enter ends, "}
	if stepsReached {
		q.Hint += "a number is the new step limit, +10 adds ten, 0 removes it"
	} else {
		q.Hint += "a number is the new limit in dollars, +1 adds one, 0 removes it"
	}
	for {
		answer, err := s.askOrQuit(ctx, q)
		if err != nil {
			return current, false, attemptError(err)
		}
		if proceed, ok := ask.ParseYesNo(answer, false); ok && !proceed {
			return current, false, nil
		}
		newLimits, err := parseLimits(answer, current, stepsReached)
		if err == nil {
			err = checkLimits(newLimits, spent)
		}
		if err == nil {
			s.updateState(func(st *State) { st.StepLimit, st.CostLimit = newLimits.Steps, newLimits.Cost })
			return newLimits, true, nil
		}
		s.notifyError("%v", err)
	}
}

func usageText(spent State, limits agent.Limits) string {
	steps := text.Count(spent.Step, "step")
	if limits.Steps > 0 {
		steps = fmt.Sprintf("%d of %s", spent.Step, text.Count(limits.Steps, "step"))
	}
	cost := unit.Money(float64(spent.Cost))
	if limits.Cost > 0 {
		cost += " of " + unit.Money(limits.Cost)
	}
	return steps + ", " + cost
}

// maxSteps bounds a number of steps that the user enters, so that adding it to the step limit
// does not overflow.
const maxSteps = 1_000_000_000

// parseLimits parses new limits. A single number is the step limit if stepsReached is set, else
// the cost limit.
func parseLimits(text string, current agent.Limits, stepsReached bool) (agent.Limits, error) {
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' })
	if len(fields) == 0 || len(fields) > 2 {
		return current, errors.New("enter one number, or two: steps and dollars")
	}
	stepField, costField := "", ""
	switch {
	case len(fields) == 2:
		stepField, costField = fields[0], fields[1]
	case stepsReached:
		stepField = fields[0]
	default:
		costField = fields[0]
	}
	if stepField != "" {
		add, rest := cutPlus(stepField)
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 || n > maxSteps {
			return current, fmt.Errorf("%.20q is not a number of steps", stepField)
		}
		if add {
			n += current.Steps
		}
		current.Steps = n
	}
	if costField != "" {
		add, rest := cutPlus(costField)
		dollars, err := strconv.ParseFloat(strings.TrimPrefix(rest, "$"), 64)
		if err != nil || dollars < 0 || math.IsInf(dollars, 0) || math.IsNaN(dollars) {
			return current, fmt.Errorf("%.20q is not a number of dollars", costField)
		}
		if add {
			dollars += current.Cost
		}
		current.Cost = dollars
	}
	return current, nil
}

// cutPlus removes a leading + from a number. It reports whether there was one.
func cutPlus(text string) (found bool, rest string) {
	rest, found = strings.CutPrefix(text, "+")
	return found, rest
}

// checkLimits returns an error if the session has already reached a limit.
func checkLimits(limits agent.Limits, spent State) error {
	switch {
	case limits.Steps > 0 && spent.Step >= limits.Steps:
		return fmt.Errorf("already at %d steps; enter a higher limit, or 0 for none", spent.Step)
	case limits.Cost > 0 && float64(spent.Cost) >= limits.Cost:
		return fmt.Errorf("already spent %s; enter a higher limit, or 0 for none", unit.Money(float64(spent.Cost)))
	}
	return nil
}
