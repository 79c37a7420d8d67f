package eval

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
)

// NewRegrade returns mini regrade, the old name of mini grade RUN.
func NewRegrade(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "regrade RUN", Short: "Grade the logs of a run again (same as mini grade RUN)", Hidden: true,
		Args: cmdutil.ExactlyOneRun,
	}
	o := gradeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return regradeRun(cmd.Context(), a, o, args[0]) }
	return cmd
}

// regradeRun grades the saved logs of a run again.
func regradeRun(ctx context.Context, a *app.App, o *GradeOptions, dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return cmdutil.RunFolderError(dir, err)
	}
	var folder *runner.Folder
	if !o.dryRun && runner.CheckFolder(dir) == nil { // CheckFolder fails for a copy without run.json
		var err error
		if folder, err = runner.Open(dir); err != nil {
			return usage.Wrap(err)
		}
		defer folder.Close() //nolint:errcheck // the process releases the lock anyway
		folder.SetVerdictFilter(IsSignedByUser)
	}
	recorded, err := verdicts.Read(dir)
	if err == nil && len(recorded.Verdicts)+len(recorded.Unreadable) == 0 {
		err = usage.Errorf("%s has no evaluations by mini; to grade its logs, run mini grade --subset SET %s", dir, dir)
	}
	var key []byte
	if err == nil {
		key, err = readVerdictKey()
	}
	var set datasets.Set
	if err == nil {
		set, err = o.loadRows(ctx, a, dir, recorded)
	}
	if err != nil {
		return usage.Wrap(err)
	}
	instances := make(map[string]datasets.Instance, len(set.Instances))
	for _, in := range set.Instances {
		instances[in.ID] = in
	}
	res, err := evaluate.Regrade(ctx, evaluate.RegradeConfig{
		Dir: dir, Verdicts: recorded.Verdicts, Instances: instances, Editions: set.Sources,
		DryRun: o.dryRun, Now: time.Now(), SigningKey: key,
	})
	if err == nil && folder != nil {
		err = folder.UpdateVerdicts()
	}
	if err != nil {
		return err
	}
	run, err := runs.Read(dir)
	if err != nil {
		run = nil // the folder contains only evaluations
	}
	scores := report.NewScores(verdicts.Set{Dir: dir, Verdicts: res.Records}, run, nil, time.Now())
	if o.json {
		err = cmdutil.WriteJSON(a.Out, struct {
			Run    string `json:"run"`
			DryRun bool   `json:"dry_run"`
			evaluate.Regraded
			Unread   []string              `json:"unread,omitempty"`
			Editions []datasets.SourceInfo `json:"dataset"`
			Scores   []report.Score        `json:"scores"`
		}{dir, o.dryRun, res, recorded.Unreadable, set.Sources, scores})
	} else {
		err = a.Print(report.RegradedDoc(res, recorded.Unreadable, scores, o.dryRun))
	}
	if err == nil && len(res.Failed)+len(recorded.Unreadable) > 0 {
		return cmdutil.ErrIncomplete
	}
	return err
}

// loadRows loads the rows of the instances that have verdicts, from the datasets of --subset, or else
// from those of the run.
func (o *GradeOptions) loadRows(ctx context.Context, a *app.App, dir string, recorded verdicts.Set) (set datasets.Set, err error) {
	var sources []datasets.Source
	if len(o.datasets.Subsets) > 0 {
		if sources, err = o.datasets.OpenAll(ctx, a.Streams); err != nil {
			return set, err
		}
	} else {
		editions := recordedEditions(dir, recorded)
		if len(editions) == 0 {
			return set, usage.Errorf("%s names no dataset; name it with --subset", dir)
		}
		for _, e := range editions {
			if datasets.IsStdin(e.Name) {
				return set, usage.Errorf("the rows of %s came from stdin; name them with --subset", dir)
			}
			source, err := rows.Open(ctx, a.Streams, e.Name, cmp.Or(o.datasets.Split, e.Split))
			if err != nil {
				return set, fmt.Errorf("%w (the dataset of %s; name another with --subset)", err, dir)
			}
			sources = append(sources, source)
		}
	}
	var ids, names []string
	for _, verdict := range recorded.Verdicts {
		ids = append(ids, verdict.Instance)
	}
	for _, src := range sources {
		names = append(names, src.Name)
	}
	set, err = datasets.Load(ctx, sources, datasets.Existing(ids))
	if err == nil && len(set.Instances) == 0 {
		err = usage.Errorf("%s has none of the evaluated instances of %s; name the dataset with --subset", strings.Join(names, ", "), dir)
	}
	return set, err
}

// recordedEditions returns the datasets in the manifest of the run or, without a
// manifest, in its verdicts.
func recordedEditions(dir string, recorded verdicts.Set) (editions []datasets.SourceInfo) {
	if run, err := runs.Open(dir); err == nil && len(run.Manifest.Dataset.Editions) > 0 {
		return run.Manifest.Dataset.Editions
	}
	for _, v := range recorded.Verdicts {
		for _, edition := range v.Basis.Editions {
			same := func(other datasets.SourceInfo) bool {
				return other.Name == edition.Name && other.Split == edition.Split
			}
			if edition.Name != "" && !slices.ContainsFunc(editions, same) {
				editions = append(editions, edition)
			}
		}
	}
	return editions
}
