package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/submission"
)

// submissionOptions are the flags of mini report submission.
type submissionOptions struct {
	output, runID string
	json          bool
}

func newSubmission(s Streams) *cobra.Command {
	o := &submissionOptions{}
	cmd := &cobra.Command{
		Use:   "submission RUN -o FOLDER",
		Short: "Lay a run out as the public SWE-bench leaderboard wants it",
		Long: `Makes a folder as github.com/SWE-bench/experiments has them: predictions,
trajectories, the logs of the evaluation, and stubs of metadata.yaml and
README.md whose TODOs are yours. What is missing is said, and ends with code 3.
Nothing is sent, and a folder that is there is never written to.`,
		Example: `  mini report submission runs/first -o 20260102_my-system`,
		Args:    func(_ *cobra.Command, args []string) error { return oneFolder("report submission", args) },
		RunE:    func(_ *cobra.Command, args []string) error { return o.run(s, args[0]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.output, "output", "o", "", "`FOLDER` to make")
	f.StringVar(&o.runID, "run-id", "", "`ID` of the evaluation (default the newest)")
	f.BoolVar(&o.json, "json", false, "print one JSON document on stdout")
	return cmd
}

func (o *submissionOptions) run(s Streams, dir string) error {
	if o.output == "" {
		return usagef("where to? -o FOLDER; the leaderboard's are named like 20260102_my-system")
	}
	run, err := runner.ReadRun(dir)
	if err != nil {
		return noRun(dir, err)
	}
	g, err := glanceOf(run, nil)
	if err != nil {
		return before(err)
	}
	if len(run.Instances) == 0 {
		return usagef("%s is no run of mini bench: it has verdicts on patches from elsewhere, and the leaderboard wants the trajectories too", dir)
	}
	score, err := o.pick(g.Verdicts, dir)
	if err != nil {
		return err
	}
	var figures strings.Builder
	score.Official = "" // a path of this machine
	if err := score.Write(&figures, plainWidth); err != nil {
		return err
	}
	figures.WriteString("\n")
	if err := score.WriteRepos(&figures, plainWidth); err != nil {
		return err
	}
	judged := map[string]bool{}
	for _, c := range score.Classes {
		for _, id := range c.IDs {
			judged[id] = c.Class.Final()
		}
	}
	res, err := submission.Write(submission.Config{
		Run: run, RunID: score.RunID, Dir: o.output, Name: nameOf(o.output), Results: figures.String(), Judged: judged,
	})
	if errors.Is(err, submission.ErrExists) {
		return usagef("%w, and is not written to; give another folder with -o", err)
	}
	if errors.Is(err, submission.ErrNoPredictions) {
		return usagef("%w; see mini report %s", err, dir)
	}
	if err != nil {
		return before(err)
	}
	return o.show(s, res)
}

// pick is the evaluation that is meant, of those of the run's own submissions.
func (o *submissionOptions) pick(scores []report.Score, dir string) (report.Score, error) {
	var known []string
	for i := len(scores) - 1; i >= 0; i-- {
		if !scores[i].HasRun {
			continue // of other patches
		}
		if o.runID == "" || scores[i].RunID == o.runID {
			return scores[i], nil
		}
		known = append(known, scores[i].RunID)
	}
	if len(known) > 0 {
		return report.Score{}, usagef("%s has no evaluation %.60q; it has %s", dir, o.runID, strings.Join(known, ", "))
	}
	return report.Score{}, usagef("%s has no verdicts on what it submitted; first: mini eval -p %s", dir, dir)
}

// nameOf is the name that a folder's bears after its date.
func nameOf(dir string) string {
	name := strings.Join(strings.Fields(filepath.Base(filepath.Clean(dir))), " ")
	if date, rest, ok := strings.Cut(name, "_"); ok && rest != "" {
		if _, err := time.Parse("20060102", date); err == nil {
			return rest
		}
	}
	return name
}

// show says what was laid out, and what is missing.
func (o *submissionOptions) show(s Streams, r submission.Result) error {
	if o.json {
		err := json.NewEncoder(s.Out).Encode(struct {
			Folder string `json:"folder"`
			submission.Result
		}{o.output, r})
		if err == nil && !r.Complete() {
			err = errIncomplete
		}
		return err
	}
	text := fmt.Sprintf("%s: %s, %d with a trajectory, %d with logs, %s\n", report.Printable(o.output),
		report.Count(r.Predictions, "prediction"), r.Trajs, r.Logs, report.Size(r.Bytes))
	if len(r.Large) > 0 {
		text += fmt.Sprintf("larger than GitHub takes: %s\n", report.Printable(someOf(r.Large)))
	}
	for _, missing := range []struct {
		what string
		ids  []string
	}{{"no prediction", r.NoResult}, {"no trajectory", r.NoTraj}, {"no verdict", r.NoVerdict}} {
		if len(missing.ids) > 0 {
			text += fmt.Sprintf("missing, %s: %s\n", missing.what, report.Printable(someOf(missing.ids)))
		}
	}
	text += "metadata.yaml and README.md have TODOs that are yours\n"
	if _, err := fmt.Fprint(s.Out, text); err != nil {
		return err
	}
	if !r.Complete() {
		return errIncomplete
	}
	return nil
}
