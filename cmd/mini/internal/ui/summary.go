// Package ui prints summaries of runs, as wide as the terminal allows.
package ui

import (
	"io"
	"time"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// Summarize returns the summary of a run with its verdicts. If ids is not nil,
// it covers only these instances.
func Summarize(run *runner.Run, ids []string) (report.Summary, error) {
	now := time.Now()
	found, err := verdicts.Read(run.Dir)
	if err != nil {
		return report.Summary{}, err
	}
	g := report.NewSummary(run, ids, now)
	g.HideNextStep = run.Manifest.Model.Class == runner.ImportedClass // no command makes what is left
	g.Unreadable = append(g.Unreadable, found.Unreadable...)
	g.Verdicts = report.NewScores(found, run, ids, now)
	g.AddEvaluationTimes(found, run)
	return g, nil
}

// PrintSummary prints the summary of the given instances at the end of a batch.
func PrintSummary(w io.Writer, sum runner.Summary, dir string, ids []string) error {
	run, err := runner.ReadRun(dir)
	if err != nil {
		return err
	}
	g, err := Summarize(run, ids)
	if err != nil {
		return err
	}
	g.State = report.Finished                                                       // else it would tell of the mini that is speaking
	g.HideNextStep = sum.Unstarted > 0 || sum.Classes[trajectories.Interrupted] > 0 // an interrupt ends with how to go on
	return g.Write(w, Width(w))
}
