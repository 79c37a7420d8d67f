package report

import (
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// Phase is the time that attempts spent in one phase. It covers the attempts whose
// journals have phase times.
type Phase struct {
	Name     string  `json:"phase"` // start, scrub, model, commands, diff or evaluation
	Attempts int     `json:"attempts"`
	Sum      float64 `json:"sum_seconds"`
	Median   float64 `json:"median_seconds"`
}

const evaluationPhase = "evaluation"

// phaseTime is the time of one attempt in a phase.
type phaseTime struct {
	phase   string
	seconds float64
}

// phaseTimesOf returns the phase times of an attempt, or nil if they are unknown.
func phaseTimesOf(t trajectories.Times) []phaseTime {
	if t == (trajectories.Times{}) {
		return nil
	}
	var all []phaseTime
	for _, p := range []struct {
		phase string
		took  trajectories.Seconds
	}{{"start", t.SandboxStart}, {"scrub", t.Scrub}, {"model", t.Model}, {"commands", t.Commands}, {"diff", t.Diff}} {
		all = append(all, phaseTime{p.phase, time.Duration(p.took).Seconds()})
	}
	return all
}

// minShownSeconds is the shortest time that reports show, in seconds.
const minShownSeconds = 0.0005

// phasesText lists the phases and their times.
func phasesText(times []phaseTime) string {
	var parts []string
	for _, t := range times {
		if t.seconds >= minShownSeconds {
			parts = append(parts, t.phase+" "+unit.Seconds(t.seconds))
		}
	}
	return strings.Join(parts, ", ")
}

// addPhases adds a table with a column for each phase.
func addPhases(d *doc.Doc, phases []Phase) {
	columns := "l"
	head, sums, medians := []string{""}, []string{"sum"}, []string{"median"}
	for _, p := range phases {
		if p.Sum >= minShownSeconds {
			columns += "r"
			head = append(head, p.Name)
			sums = append(sums, unit.Seconds(p.Sum))
			medians = append(medians, unit.Seconds(p.Median))
		}
	}
	if columns == "l" {
		return
	}
	d.Blank()
	d.Table(columns, [][]string{head, sums, medians})
}

// sumPhases sums up the times of attempts by phase.
func sumPhases(times []phaseTime) []Phase {
	var phases []Phase
	for _, name := range []string{"start", "scrub", "model", "commands", "diff", evaluationPhase} {
		var seconds []float64
		p := Phase{Name: name}
		for _, t := range times {
			if t.phase == name {
				seconds, p.Sum = append(seconds, t.seconds), p.Sum+t.seconds
			}
		}
		if len(seconds) == 0 {
			continue
		}
		slices.Sort(seconds)
		p.Attempts, p.Median = len(seconds), seconds[(len(seconds)-1)/2]
		phases = append(phases, p)
	}
	return phases
}

// AddEvaluationTimes adds the phase evaluation. It has the durations of the newest
// evaluation of the run's own submissions, without reused verdicts.
func (s *Summary) AddEvaluationTimes(set verdicts.Set, run *runs.Run) {
	runID := ""
	for _, score := range s.Verdicts { // newest last
		if score.HasRun {
			runID = score.RunID
		}
	}
	if runID == "" || len(s.Totals.Phases) == 0 {
		return
	}
	rows := map[string]bool{}
	for _, r := range s.Rows {
		rows[r.ID] = true
	}
	var times []phaseTime
	submissions := ReadPredictions(run)
	for _, v := range set.Verdicts {
		included := v.RunID == runID && submissions.matches(v.Record) || v.Repetition > 1 && strings.HasPrefix(v.RunID, runID+"-")
		if included && rows[v.Instance] && v.ReusedFrom == "" && v.Seconds > 0 {
			times = append(times, phaseTime{evaluationPhase, v.Seconds})
		}
	}
	s.Totals.Phases = append(s.Totals.Phases, sumPhases(times)...)
}
