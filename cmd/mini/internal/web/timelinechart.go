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
// milestones, which have the numbers of the page's list. address returns that of a step.
func drawTimeline(t *timeline.Timeline, milestones []milestone, address func(step string) string) template.HTML {
	if t.ReplyCount() == 0 || t.Totals.Start.IsZero() {
		return ""
	}
	times, began := t.Totals.Times, t.Totals.Start
	at := func(moment time.Time) float64 { return max(0, moment.Sub(began).Seconds()) }
	// The outcome says when the sandbox was ready. Its start may be before the first record.
	ready := began.Add(time.Duration(times.SandboxStart))
	if o := t.Outcome; o != nil && !o.Start.Before(began) && o.Start.Before(t.Steps[1].Time) {
		ready = o.Start
	}
	if first := ready.Add(-time.Duration(times.SandboxStart)); first.Before(began) {
		began = first
	}
	spans := []chart.Span{
		{Name: "start", Start: at(ready) - secondsOf(times.SandboxStart), Seconds: secondsOf(times.SandboxStart)},
		{Name: "scrub", Start: at(ready), Seconds: secondsOf(times.Scrub)},
	}
	var steps []chart.Step
	starts, end := map[string]float64{}, 0.0
	for _, s := range t.Steps[1:] {
		name := stepName(s)
		step := chart.Step{Name: "step " + name, Anchor: name, Link: address(name), Start: at(s.Time), Cost: math.NaN(), Failed: s.Failed}
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
		starts[name] = step.Start
		end = step.Start + step.Model + step.Command
		steps = append(steps, step)
	}
	spans = append(spans, chart.Span{Name: "diff", Start: end, Seconds: secondsOf(times.Diff)})
	var marks []chart.Mark
	for i, m := range milestones {
		if start, ok := starts[m.Step]; ok {
			marks = append(marks, chart.Mark{Number: i + 1, At: start})
		}
	}
	return chart.Timeline("Time of the sandbox, the model and commands, with tokens and cost", steps, spans, marks)
}

func secondsOf(s trajectories.Seconds) float64 { return time.Duration(s).Seconds() }
