package report

import (
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// Phase is how long attempts spent in one phase. Attempts whose journals do not
// say so are not among them.
type Phase struct {
	Name     string  `json:"phase"` // start, scrub, model, commands, diff or evaluation
	Attempts int     `json:"attempts"`
	Sum      float64 `json:"sum_seconds"`
	Median   float64 `json:"median_seconds"`
}

const evaluation = "evaluation"

// took is the seconds of one attempt in a phase.
type took struct {
	phase   string
	seconds float64
}

// spentIn is where the time of an attempt went; nothing where that is not known.
func spentIn(t trajectories.Times) []took {
	if t == (trajectories.Times{}) {
		return nil
	}
	var all []took
	for _, p := range []struct {
		phase string
		took  trajectories.Seconds
	}{{"start", t.Start}, {"scrub", t.Scrub}, {"model", t.Model}, {"commands", t.Commands}, {"diff", t.Diff}} {
		all = append(all, took{p.phase, time.Duration(p.took).Seconds()})
	}
	return all
}

// leastShown is the least time that is shown, in seconds.
const leastShown = 0.0005

// phasesText names the phases that took any time.
func phasesText(all []took) string {
	var parts []string
	for _, t := range all {
		if t.seconds >= leastShown {
			parts = append(parts, t.phase+" "+span(t.seconds))
		}
	}
	return strings.Join(parts, ", ")
}

// phaseTable has a column for each phase that took any time.
func phaseTable(width int, phases []Phase) string {
	columns := "l"
	head, sums, medians := []string{""}, []string{"sum"}, []string{"median"}
	for _, p := range phases {
		if p.Sum >= leastShown {
			columns += "r"
			head, sums, medians = append(head, p.Name), append(sums, span(p.Sum)), append(medians, span(p.Median))
		}
	}
	if columns == "l" {
		return ""
	}
	return "\n" + Table(width, columns, [][]string{head, sums, medians})
}

// phasesOf sums up what attempts took.
func phasesOf(all []took) []Phase {
	var phases []Phase
	for _, name := range []string{"start", "scrub", "model", "commands", "diff", evaluation} {
		var list []float64
		p := Phase{Name: name}
		for _, t := range all {
			if t.phase == name {
				list, p.Sum = append(list, t.seconds), p.Sum+t.seconds
			}
		}
		if len(list) == 0 {
			continue
		}
		slices.Sort(list)
		p.Attempts, p.Median = len(list), list[(len(list)-1)/2]
		phases = append(phases, p)
	}
	return phases
}

// Evaluated adds the durations of the newest evaluation of the run's own
// submissions. Verdicts that were reused took nothing.
func (g *Glance) Evaluated(found verdicts.Found, run *runner.Run) {
	runID := ""
	for _, s := range g.Verdicts { // the newest last
		if s.HasRun {
			runID = s.RunID
		}
	}
	if runID == "" || len(g.Totals.Phases) == 0 {
		return
	}
	rows := map[string]bool{}
	for _, r := range g.Rows {
		rows[r.ID] = true
	}
	var spent []took
	own := SubmissionsOf(run)
	for _, v := range found.Verdicts {
		this := v.RunID == runID && own.has(v.Record) || v.Sample > 1 && strings.HasPrefix(v.RunID, runID+"-")
		if this && rows[v.Instance] && v.Reused == "" && v.Seconds > 0 {
			spent = append(spent, took{evaluation, v.Seconds})
		}
	}
	g.Totals.Phases = append(g.Totals.Phases, phasesOf(spent)...)
}
