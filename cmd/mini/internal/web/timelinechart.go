package web

import (
	"html/template"
	"math"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/web/chart"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// drawTimeline draws the time, the tokens and the cost of the steps of an attempt, with its
// milestones.
func drawTimeline(t *timeline.Timeline, milestones []milestone) template.HTML {
	if t.ReplyCount() == 0 || t.Totals.Start.IsZero() {
		return ""
	}
	at := func(s *timeline.Step) float64 { return max(0, s.Time.Sub(t.Totals.Start).Seconds()) }
	var steps []chart.Step
	starts := map[string]float64{}
	for _, s := range t.Steps[1:] {
		step := chart.Step{Start: at(s), Cost: math.NaN(), Failed: s.Failed}
		if c := s.Call; c != nil {
			step.Model = secondsOf(c.Duration)
			step.Start = max(0, step.Start-step.Model) // the record of a reply is written after the call
			step.Tokens = float64(c.Usage.Prompt + c.Usage.Completion)
			if c.Usage.Unpriced == 0 {
				step.Cost = float64(c.Cost)
			}
		}
		for _, item := range s.Items {
			if item.Execution != nil {
				step.Command += secondsOf(item.Execution.Duration)
			}
		}
		starts[stepName(s)] = step.Start
		steps = append(steps, step)
	}
	var marks []chart.Mark
	for _, m := range milestones {
		if start, ok := starts[m.Step]; ok {
			marks = append(marks, chart.Mark{Label: m.Name, At: start})
		}
	}
	return chart.Timeline("Time of the model and of commands, tokens and cost", steps, marks)
}

func secondsOf(s trajectories.Seconds) float64 { return time.Duration(s).Seconds() }
