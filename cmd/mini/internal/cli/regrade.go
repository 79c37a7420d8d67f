package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/regrade"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/verdicts"
)

// newRegrade is the old name of mini grade RUN. It also takes a folder in which
// only the official harness has left its logs.
func newRegrade(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "regrade RUN", Short: "Another name of mini grade RUN", Hidden: true,
		Args: func(_ *cobra.Command, args []string) error { return oneFolder("grade", args) },
	}
	o := gradeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.regrade(cmd.Context(), s, args[0]) }
	return cmd
}

// hasVerdicts says whether a folder has evaluations of mini's, and not just logs.
func hasVerdicts(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, verdicts.Folder))
	return err == nil
}

// oneFolder checks the arguments of a command that takes the folder of a run.
func oneFolder(command string, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	text := "which run? Give its folder: mini " + command + " FOLDER"
	if len(args) > 1 {
		text = fmt.Sprintf("mini %s takes one run, not %d", command, len(args))
	} else if near := newestRun(defaultRuns); near != "" {
		text = "which run? The newest one here: mini " + command + " " + near
	}
	return usagef("%s", text)
}

// regrade gives the verdicts of a run anew, from its saved logs.
func (o *gradeOptions) regrade(ctx context.Context, s Streams, dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return noRun(dir, err)
	}
	var folder *runner.Folder
	if !o.dryRun && runner.Fit(dir) == nil { // else it is another harness's, or only looked at
		var err error
		if folder, err = runner.Open(dir); err != nil {
			return before(err)
		}
		defer folder.Close() //nolint:errcheck // the lock ends with the process
		folder.OwnVerdicts(ownVerdict)
	}
	found, err := regrade.Find(dir)
	if err != nil {
		return before(err)
	}
	key, err := readVerdictKey()
	if err != nil {
		return before(err)
	}
	rows, editions, err := o.rowsOf(ctx, s, dir, found)
	if err != nil {
		return before(err)
	}
	res, err := regrade.Folder(ctx, regrade.Config{
		Dir: dir, Verdicts: found.Verdicts, Rows: rows, Editions: editions, DryRun: o.dryRun, Now: time.Now(), Key: key,
	})
	if err == nil && folder != nil {
		err = folder.EnterVerdicts()
	}
	if err != nil {
		return err
	}
	if err := o.showRegraded(s, dir, found, res, editions); err != nil {
		return err
	}
	if len(res.Kept)+len(found.Unread) > 0 {
		return errIncomplete
	}
	return nil
}

// rowsOf reads the rows of the instances that have verdicts.
func (o *gradeOptions) rowsOf(ctx context.Context, s Streams, dir string, found regrade.Found) (map[string]datasets.Instance, []datasets.Edition, error) {
	sources, err := o.sourcesOf(ctx, s, dir, found)
	if err != nil {
		return nil, nil, err
	}
	known, err := idsOf(ctx, sources)
	if err != nil {
		return nil, nil, err
	}
	var sel datasets.Selection
	for _, v := range found.Verdicts {
		if slices.Contains(known, v.Instance) && !slices.Contains(sel.IDs, v.Instance) {
			sel.IDs = append(sel.IDs, v.Instance)
		}
	}
	if len(sel.IDs) == 0 {
		var names []string
		for _, src := range sources {
			names = append(names, src.Name)
		}
		return nil, nil, usagef("%s has none of the instances that %s has verdicts on; name the dataset with --subset", strings.Join(names, ", "), dir)
	}
	set, err := datasets.Load(ctx, sources, sel)
	if err != nil {
		return nil, nil, err
	}
	rows := make(map[string]datasets.Instance, len(set.Instances))
	for _, in := range set.Instances {
		rows[in.ID] = in
	}
	return rows, set.Editions, nil
}

// sourcesOf are the datasets that were named, else those that the run was made
// of.
func (o *gradeOptions) sourcesOf(ctx context.Context, s Streams, dir string, found regrade.Found) ([]datasets.Source, error) {
	if len(o.subsets) > 0 {
		return o.open(ctx, s)
	}
	editions := editionsOf(dir, found)
	if len(editions) == 0 {
		return nil, usagef("%s does not say which dataset it is of; name it with --subset", dir)
	}
	var sources []datasets.Source
	for _, e := range editions {
		if datasets.IsStdin(e.Name) {
			return nil, usagef("%s was made of rows from stdin; name them with --subset", dir)
		}
		source, err := openSubset(ctx, s, e.Name, cmp.Or(o.split, e.Split))
		if err != nil {
			return nil, fmt.Errorf("%w (%s was made of it; --subset names another)", err, dir)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// editionsOf are those that the folder names: in the manifest of the run, in its
// verdicts, or as the official harness writes them.
func editionsOf(dir string, found regrade.Found) []datasets.Edition {
	if run, err := runner.ReadRun(dir); err == nil && len(run.Manifest.Dataset.Editions) > 0 {
		return run.Manifest.Dataset.Editions
	}
	var editions []datasets.Edition
	add := func(e datasets.Edition) {
		same := func(o datasets.Edition) bool { return o.Name == e.Name && o.Split == e.Split }
		if e.Name != "" && !slices.ContainsFunc(editions, same) {
			editions = append(editions, e)
		}
	}
	for _, v := range found.Verdicts {
		for _, e := range v.Basis.Editions {
			add(e)
		}
	}
	if len(editions) > 0 {
		return editions
	}
	for _, v := range found.Verdicts {
		run, err := grade.NewRun(dir, v.RunID)
		if err != nil {
			continue
		}
		info, err := grade.ReadRunInfo(run.Info())
		if err == nil {
			add(datasets.Edition{Name: info.Dataset, Split: info.Split})
		}
	}
	return editions
}

// showRegraded says what has changed, and how the evaluations stand now.
func (o *gradeOptions) showRegraded(s Streams, dir string, found regrade.Found, res regrade.Result, editions []datasets.Edition) error {
	run, err := runner.ReadRun(dir)
	if err != nil {
		run = nil // of another harness
	}
	scores := report.Scores(verdicts.Found{Dir: dir, Verdicts: res.Records}, run, nil, time.Now())
	if o.json {
		enc := json.NewEncoder(s.Out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Run    string `json:"run"`
			DryRun bool   `json:"dry_run"`
			regrade.Result
			Unread   []string           `json:"unread,omitempty"`
			Editions []datasets.Edition `json:"dataset"`
			Scores   []report.Score     `json:"scores"`
		}{dir, o.dryRun, res, found.Unread, editions, scores})
	}
	return report.Regraded(s.Out, res, found.Unread, scores, o.dryRun, widthOf(s.Out))
}
