// Package ui prints run summaries and determines the line width of output.
package ui

import (
	"io"
	"time"

	"github.com/minibench/mini/runner/compare"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// Summarize returns the summary of a run with its verdicts. If ids is not nil,
// it covers only these instances.
func Summarize(run *runs.Run, ids []string) (report.Summary, error) {
	now := time.Now()
	recorded, err := run.Verdicts()
	if err != nil {
		return report.Summary{}, err
	}
	summary := report.NewSummary(run, ids, now)
	// No mini command can run the missing attempts of an imported run.
	summary.HideNextStep = run.Manifest.Model.Class == runs.ImportedClass
	summary.Unreadable = append(summary.Unreadable, recorded.Unreadable...)
	summary.Verdicts = report.NewScores(recorded, run, ids, now)
	summary.AddEvaluationTimes(recorded, run)
	return summary, nil
}

// Explain is like Summarize, and adds the statistics and the groups of the attempts
// that are not resolved, for which it reads the reports of their tests.
func Explain(run *runs.Run, ids []string) (report.Summary, error) {
	summary, err := Summarize(run, ids)
	if err != nil {
		return summary, err
	}
	recorded, err := run.Verdicts()
	if summary.Unresolved = report.NewUnresolved(run, recorded, ids); summary.Unresolved != nil {
		summary.Unreadable = append(summary.Unreadable, summary.Unresolved.Unreadable...)
	}
	if compared, err := compare.NewRun(run); err == nil && ids == nil {
		statistics := compare.Summarize(compared, compare.Drop)
		summary.Statistics = &statistics
	}
	return summary, err
}

// PrintSummary prints the summary of a batch that has just ended. If ids is not
// nil, it covers only these instances. resume says how to continue the batch.
func PrintSummary(w io.Writer, result runs.Summary, dir string, ids []string, resume string) error {
	run, err := runs.Read(dir)
	if err != nil {
		return err
	}
	summary, err := Explain(run, ids)
	if err != nil {
		return err
	}
	// Explain finds the run in progress as long as this process has it open.
	summary.State, summary.Resume = report.Finished, resume
	// After an interruption, the caller prints how to continue.
	summary.HideNextStep = result.Unstarted > 0 || result.Classes[trajectories.Interrupted] > 0
	return summary.Doc().WriteText(w, Width(w))
}
