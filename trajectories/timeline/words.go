package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories"
)

// Result says what a command came to: its exit code, what ended it, how long it
// took, and the size of its output.
func Result(x *trajectories.Execution) string {
	facts := []string{exit(x)}
	if x.Signal != 0 {
		facts = append(facts, fmt.Sprintf("signal %d", x.Signal))
	}
	if x.TimedOut {
		facts = append(facts, "timed out")
	}
	if x.OOMKilled > 0 {
		facts = append(facts, "killed for want of memory")
	}
	if x.Duration > 0 {
		facts = append(facts, seconds(x.Duration))
	}
	size := Amount(int64(len(x.Output))) + " bytes"
	if len(x.Output) == 0 {
		size = "no output"
	} else if x.Truncated {
		size += fmt.Sprintf(" of %s, the middle left out", Amount(x.Bytes))
	}
	return strings.Join(append(facts, size), ", ")
}

func exit(x *trajectories.Execution) string {
	if x.CodeUnknown {
		return "exit code unknown"
	}
	return fmt.Sprintf("exit %d", x.ExitCode)
}

// Facts are what a step took, for a line above it: how its commands ended, the
// cost and tokens so far, and its call of the model. At the end they are the
// totals.
func (t *Timeline) Facts(s *Step) []string {
	if s == t.End {
		return t.totals()
	}
	if s.Number == 0 {
		return nil
	}
	var facts, exits []string
	for _, it := range s.Items {
		if it.Run != nil {
			exits = append(exits, exit(it.Run))
		}
	}
	if len(exits) > 0 {
		facts = append(facts, strings.Join(exits, ", "))
	}
	if s.Cost > 0 {
		facts = append(facts, Dollars(float64(s.Cost))+" so far")
	}
	if s.Tokens > 0 {
		facts = append(facts, Amount(s.Tokens)+" tokens so far")
	}
	if c := s.call; c != nil {
		if c.Usage.Prompt+c.Usage.Completion > 0 {
			facts = append(facts, fmt.Sprintf("%s in, %s out", Amount(c.Usage.Prompt), Amount(c.Usage.Completion)))
		}
		if c.Duration > 0 {
			facts = append(facts, "model "+seconds(c.Duration))
		}
		if c.Tries > 1 {
			facts = append(facts, fmt.Sprintf("%d tries", c.Tries))
		}
	}
	if !s.Time.IsZero() {
		facts = append(facts, s.Time.Local().Format(time.TimeOnly))
	}
	return facts
}

// totals are what the attempt took.
func (t *Timeline) totals() []string {
	o := t.Outcome
	if o == nil {
		return nil
	}
	facts := []string{text.Count(o.Steps, "step")}
	if n := o.Usage.Prompt + o.Usage.Completion; n > 0 {
		facts = append(facts, Amount(n)+" tokens")
	}
	cost := "-"
	switch known := o.Usage.Unpriced == 0; {
	case o.Cost > 0 && known:
		cost = Dollars(float64(o.Cost))
	case o.Cost > 0:
		cost = Dollars(float64(o.Cost)) + " + ?"
	case !known:
		cost = "?"
	}
	facts = append(facts, cost)
	if took := o.Took(); took > 0 {
		facts = append(facts, Clock(took))
	}
	if !o.End.IsZero() {
		facts = append(facts, "ended "+o.End.Local().Format(time.DateTime))
	}
	return facts
}

// Amount is a number in at most five columns.
func Amount(n int64) string {
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

// Dollars is a cost in at most seven columns.
func Dollars(c float64) string {
	switch {
	case c < 0.01 && c > 0:
		return "<$0.01"
	case c >= 1000:
		return fmt.Sprintf("$%.0f", c)
	}
	return fmt.Sprintf("$%.2f", c)
}

// Clock is a time as 0:07, 59:59 or 1:02:03.
func Clock(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

func seconds(s trajectories.Seconds) string {
	if d := time.Duration(s); d >= time.Minute {
		return Clock(d)
	}
	return fmt.Sprintf("%.1fs", time.Duration(s).Seconds())
}
