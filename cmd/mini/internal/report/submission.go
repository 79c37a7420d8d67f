package report

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/submission"
)

// submissionOptions holds the flags of mini report submission.
type submissionOptions struct {
	output, runID, layout string
	json                  bool
}

func newSubmission(a *app.App) *cobra.Command {
	o := &submissionOptions{}
	cmd := &cobra.Command{
		Use:   "submission RUN -o FOLDER",
		Short: "Create a submission folder for the SWE-bench leaderboard",
		Long: `Creates a folder in the layout of github.com/SWE-bench/experiments: predictions,
trajectories, evaluation logs, and drafts of metadata.yaml and README.md. Fill in
the TODOs of the drafts. If anything is missing, mini lists it and exits with 3.
It sends nothing, and never writes to an existing folder.

With --layout harbor, it creates a job folder that Harbor's viewer and exporters
read: result.json, and a folder for each attempt that counts, with its result, its
trajectory in ATIF and the files of the tests.`,
		Example: `  mini report submission runs/first -o 20260102_my-system
  mini report submission runs/first --layout harbor -o jobs/first`,
		Args: cmdutil.ExactlyOneRun,
		RunE: func(_ *cobra.Command, args []string) error { return o.run(a, args[0]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` to create")
	f.StringVar(&o.layout, "layout", "swebench", "layout of the folder: swebench or harbor")
	f.StringVar(&o.runID, "run-id", "", "`ID` of the evaluation (default: the newest)")
	f.BoolVar(&o.json, "json", false, "print one JSON document on stdout")
	return cmd
}

func (o *submissionOptions) run(a *app.App, dir string) error {
	if o.output == "" {
		return usage.Errorf("-o FOLDER is required; the leaderboard uses names like 20260102_my-system")
	}
	if o.layout != "swebench" && o.layout != "harbor" {
		return usage.Errorf("--layout %.40q is neither swebench nor harbor", o.layout)
	}
	run, err := runs.Read(dir)
	if err != nil {
		return cmdutil.RunFolderError(dir, err)
	}
	if o.layout == "harbor" {
		trials, err := submission.WriteHarbor(run, o.output)
		if errors.Is(err, submission.ErrExists) {
			return usage.Errorf("%w; pass another folder with -o", err)
		}
		if err != nil {
			return usage.Wrap(err)
		}
		result := map[string]any{"folder": o.output, "trials": trials}
		return cmdutil.PrintResult(a.Streams, o.json, result, fmt.Sprintf("%s: %s\n", text.Printable(o.output), text.Count(trials, "trial")))
	}
	summary, err := ui.Summarize(run, nil)
	if err != nil {
		return usage.Wrap(err)
	}
	if len(run.Instances) == 0 {
		return usage.Errorf("%s has no trajectories, which the leaderboard requires; pass the folder of a run", dir)
	}
	score, err := o.selectScore(summary.Verdicts, dir)
	if err != nil {
		return err
	}
	score.Official = "" // omit a path on this machine
	results := score.Doc()
	results.Blank()
	score.AddRepos(results)
	hasVerdict := map[string]bool{}
	for _, c := range score.Classes {
		for _, id := range c.IDs {
			hasVerdict[id] = c.Class.IsFinal()
		}
	}
	res, err := submission.Write(submission.Config{
		Run: run, RunID: score.RunID, Dir: o.output, Name: nameOf(o.output), Results: results.Text(ui.DefaultWidth), HasVerdict: hasVerdict,
	})
	if errors.Is(err, submission.ErrExists) {
		return usage.Errorf("%w; pass another folder with -o", err)
	}
	if errors.Is(err, submission.ErrNoPredictions) {
		return usage.Errorf("%w; see mini report %s", err, dir)
	}
	if err != nil {
		return usage.Wrap(err)
	}
	return o.show(a, res)
}

// selectScore returns the score of the evaluation with the run id of --run-id, or else
// of the newest one. It ignores evaluations of other patches than the run's own.
func (o *submissionOptions) selectScore(scores []report.Score, dir string) (report.Score, error) {
	var runIDs []string
	for i := len(scores) - 1; i >= 0; i-- {
		if !scores[i].HasRun {
			continue // evaluates other patches
		}
		if o.runID == "" || scores[i].RunID == o.runID {
			return scores[i], nil
		}
		runIDs = append(runIDs, scores[i].RunID)
	}
	if len(runIDs) > 0 {
		return report.Score{}, usage.Errorf("%s has no evaluation %.60q; it has %s", dir, o.runID, strings.Join(runIDs, ", "))
	}
	return report.Score{}, usage.Errorf("%s has no verdicts; run mini eval -p %s first", dir, dir)
}

// nameOf returns the name of a submission folder without its date.
func nameOf(dir string) string {
	name := strings.Join(strings.Fields(filepath.Base(filepath.Clean(dir))), " ")
	if date, rest, ok := strings.Cut(name, "_"); ok && rest != "" {
		if _, err := time.Parse("20060102", date); err == nil {
			return rest
		}
	}
	return name
}

// show prints the contents of the folder and what is missing. It returns
// cmdutil.ErrIncomplete if a prediction, a trajectory or a verdict is missing.
func (o *submissionOptions) show(a *app.App, r submission.Result) error {
	line := fmt.Sprintf("%s: %s, %d with a trajectory, %d with logs, %s\n", text.Printable(o.output),
		text.Count(r.Predictions, "prediction"), r.Trajs, r.Logs, unit.Size(r.Bytes))
	if len(r.TooLarge) > 0 {
		line += fmt.Sprintf("too large for GitHub: %s\n", text.Printable(text.List(r.TooLarge)))
	}
	for _, missing := range []struct {
		item string
		ids  []string
	}{{"no prediction", r.NoResult}, {"no trajectory", r.NoTraj}, {"no verdict", r.NoVerdict}} {
		if len(missing.ids) > 0 {
			line += fmt.Sprintf("missing, %s: %s\n", missing.item, text.Printable(text.List(missing.ids)))
		}
	}
	line += "fill in the TODOs in metadata.yaml and README.md\n"
	err := cmdutil.PrintResult(a.Streams, o.json, struct {
		Folder string `json:"folder"`
		submission.Result
	}{o.output, r}, line)
	if err == nil && !r.Complete() {
		err = cmdutil.ErrIncomplete
	}
	return err
}
