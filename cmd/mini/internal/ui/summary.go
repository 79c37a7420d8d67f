// Package ui prints run summaries and determines the line width of output.
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
	recorded, err := verdicts.Read(run.Dir)
	if err != nil {
		return report.Summary{}, err
	}
	summary := report.NewSummary(run, ids, now)
	// No mini command can run the missing attempts of an imported run.
	summary.HideNextStep = run.Manifest.Model.Class == runner.ImportedClass
	summary.Unreadable = append(summary.Unreadable, recorded.Unreadable...)
	summary.Verdicts = report.NewScores(recorded, run, ids, now)
	summary.AddEvaluationTimes(recorded, run)
	return summary, nil
}

// PrintSummary prints the summary of a batch that has just ended. If ids is not
// nil, it covers only these instances.
func PrintSummary(w io.Writer, result runner.Summary, dir string, ids []string) error {
	run, err := runner.ReadRun(dir)
	if err != nil {
		return err
	}
	summary, err := Summarize(run, ids)
	if err != nil {
		return err
	}
	// Summarize finds the run in progress as long as this process has it open.
	summary.State = report.Finished
	// After an interruption, the caller prints how to continue.
	summary.HideNextStep = result.Unstarted > 0 || result.Classes[trajectories.Interrupted] > 0
	return summary.Write(w, Width(w))
}
