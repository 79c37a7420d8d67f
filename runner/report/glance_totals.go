package report

import (
	"fmt"

	"github.com/minibench/mini/model"
)

// totals are the sums of a run, a line each.
func (g Glance) totals(width int) string {
	t := g.Totals
	rows := [][]string{{"cost", g.cost()}}
	if in := t.Usage.Prompt; in > 0 || t.Usage.Completion > 0 {
		text := amount(in) + " in"
		if c := t.Usage.CacheRead; c > 0 && in > 0 {
			text += fmt.Sprintf(" (%.0f%% cached)", 100*float64(c)/float64(in))
		}
		text += ", " + amount(t.Usage.Completion) + " out"
		if r := t.Usage.Reasoning; r > 0 {
			text += fmt.Sprintf(" (%s of it reasoning)", amount(r))
		}
		rows = append(rows, []string{"tokens", text})
	}
	steps := fmt.Sprintf("%d in %s", t.Steps, Count(t.Attempts, "attempt"))
	if len(g.Rows) > shortRun {
		steps += fmt.Sprintf("; in those that count median %d, p90 %d, at most %d", t.Median, t.P90, t.Max)
	}
	rows = append(rows, []string{"steps", steps})
	var time string
	if t.Wall > 0 {
		time = span(t.Wall) + " on the clock, "
	}
	rows = append(rows, []string{"time", time + span(t.Seconds) + " of attempts added up"})
	return table(width, []column{{}, {shrink: true}}, rows) + phaseTable(width, t.Phases)
}

// cost says only what is known, and whose cost is not.
func (g Glance) cost() string {
	t := g.Totals
	switch {
	case t.NoModel && t.Cost == 0:
		return "none: the replies are scripted"
	case t.NoModel:
		return money(t.Cost) + " by the script's word; no model was called"
	case t.CostUnknown == 0:
		return money(t.Cost)
	case t.Cost == 0:
		return "not known: the server names none, and there is no price of the model"
	}
	return fmt.Sprintf("%s, and what %s took, which is not known", money(t.Cost), Count(t.CostUnknown, "instance"))
}

// costOf is the cost in a row of a table.
func (g Glance) costOf(r Row) string {
	return Spent(r.Cost, r.CostKnown)
}

// Spent is what something cost, in few words; known is false where some of it is
// not.
func Spent(c model.Cost, known bool) string {
	switch {
	case !known && c > 0:
		return money(c) + " + ?"
	case !known:
		return "?"
	case c == 0:
		return "-"
	}
	return money(c)
}
