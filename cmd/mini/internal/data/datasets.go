// Package data implements the commands mini datasets and mini images.
package data

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/datasets/hub"
	datasetopen "github.com/minibench/mini/datasets/open"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
)

// NewDatasets returns the command mini datasets.
func NewDatasets(a *app.App) *cobra.Command {
	return cmdutil.WithSubcommands(&cobra.Command{
		Use:   "datasets",
		Short: "List, fetch and show benchmark datasets",
		Long: `Datasets come from the Hugging Face hub, by alias (verified, lite and others) or
as org/name[@revision], or from files. A fetched dataset stays in the cache and
needs no network. Fetch it again to update it.`,
		Example: `  mini datasets list
  mini datasets fetch verified
  mini datasets show astropy__astropy-12907`,
	}, newDatasetsList(a), newDatasetsFetch(a), newDatasetsShow(a))
}

// FetchOptions are the flags of mini datasets fetch.
type FetchOptions struct{ split string }

func newDatasetsFetch(a *app.App) *cobra.Command {
	o := &FetchOptions{}
	cmd := &cobra.Command{
		Use:   "fetch SET...",
		Short: "Fetch or update datasets from the hub",
		Example: `  mini datasets fetch verified lite
  mini datasets fetch SWE-bench/SWE-bench_Lite@main --split dev
  HF_ENDPOINT=https://hub.example HF_TOKEN=... mini datasets fetch org/name`,
		Args: cmdutil.AtLeastOne("the name of a dataset"),
		RunE: func(cmd *cobra.Command, args []string) error { return runFetch(cmd.Context(), a, o, args) },
	}
	cmd.Flags().StringVar(&o.split, "split", "", "`NAME` of a split, such as test or dev (default: the dataset's own)")
	return cmd
}

func runFetch(ctx context.Context, a *app.App, o *FetchOptions, names []string) error {
	refs := make([]hub.Ref, len(names))
	for i, name := range names {
		var err error
		if refs[i], err = parseRef(name, o.split); err != nil {
			return err
		}
	}
	for i, ref := range refs {
		if err := fetch(ctx, a, names[i], ref); err != nil {
			return err
		}
	}
	return nil
}

// parseRef parses the name of a dataset on the hub. It returns an error for files and
// for the demo, which cannot be fetched.
func parseRef(name, split string) (hub.Ref, error) {
	if name == datasetopen.Demo {
		return hub.Ref{}, usage.Errorf("fetch %s: it is built into mini", datasetopen.Demo)
	}
	ref, err := datasetopen.ParseRef(name, split)
	if _, statErr := os.Stat(name); datasetopen.IsFileName(name) || err != nil && statErr == nil {
		return hub.Ref{}, usage.Errorf("fetch %.100q: it is a file; pass it to --subset", name)
	}
	return ref, err
}

// fetch fetches one dataset and prints its split, size and commit.
func fetch(ctx context.Context, a *app.App, name string, ref hub.Ref) error {
	progress := rows.NewFetchProgress(a.Streams)
	defer progress.Close()
	hubClient, err := datasetopen.Hub(hub.Config{Progress: progress.Show})
	if err != nil {
		return err
	}
	snapshot, err := hubClient.Fetch(ctx, ref)
	if errors.Is(err, agent.ErrInterrupted) {
		return fmt.Errorf("fetch %s: %w; run the same command to continue", text.Printable(name), agent.ErrInterrupted)
	}
	if err != nil {
		return err
	}
	// Read the rows now, so that errors in them are reported.
	set, err := datasets.Load(ctx, []datasets.Source{snapshot.Source(name)}, datasets.NoRows)
	if err != nil {
		return err
	}
	progress.Close()
	_, err = fmt.Fprintf(a.Out, "%s: split %s, %s, %s\n  %s at %s\n", text.Printable(name),
		cmp.Or(snapshot.Split, "(all)"), text.Count(len(set.IDs), "row"), unit.Size(snapshot.Bytes), snapshot.Repo, snapshot.Commit)
	return err
}

// ShowOptions are the flags of mini datasets show.
type ShowOptions struct {
	datasets rows.DatasetFlags
	column   string
	json     bool
}

func newDatasetsShow(a *app.App) *cobra.Command {
	o := &ShowOptions{}
	cmd := &cobra.Command{
		Use:   "show [SET | ID]",
		Short: "List the rows of a dataset, or show one of them",
		Long: `Lists the rows of a dataset: SET, or those of --subset. With the id of an instance it
shows the row; without --subset it searches the demo and the cached datasets.`,
		Example: `  mini datasets show demo
  mini datasets show minidemo__ledger-17
  mini datasets show astropy__astropy-12907 --subset verified --column patch
  mini datasets show astropy__astropy-12907 --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args)+len(o.datasets.Subsets) == 0 {
				return usage.Errorf("mini datasets show takes a dataset or the id of an instance; see mini datasets show --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && len(o.datasets.Subsets) == 0 && datasetopen.IsName(args[0]) {
				o.datasets.Subsets, args = args, nil
			}
			if len(args) == 0 {
				return listRows(cmd.Context(), a, o)
			}
			return show(cmd.Context(), a, o, args[0])
		},
	}
	o.datasets.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.column, "column", "", "print only the raw value of `COLUMN`")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the row as JSON")
	return cmd
}

// listRows lists the rows of the datasets in --subset.
func listRows(ctx context.Context, a *app.App, o *ShowOptions) error {
	if o.column != "" {
		return usage.Errorf("--column is for the id of an instance, which is not given")
	}
	set, err := o.datasets.Load(ctx, a.Streams, datasets.AllRows)
	if err != nil {
		return err
	}
	if o.json {
		enc := json.NewEncoder(a.Out)
		for _, in := range set.Instances {
			if err := enc.Encode(in.Row); err != nil {
				return err
			}
		}
		return nil
	}
	rows := [][]string{{"id", "repository", "to fix", "to keep", "issue"}}
	for _, in := range set.Instances {
		issue := text.FirstLine(strings.TrimSpace(in.ProblemStatement))
		rows = append(rows, []string{in.ID, cmp.Or(in.Repo, "-"), fmt.Sprint(len(in.FailToPass)), fmt.Sprint(len(in.PassToPass)), issue})
	}
	d := &doc.Doc{}
	d.Table("isrrs", rows)
	return a.Print(d)
}

func show(ctx context.Context, a *app.App, o *ShowOptions, id string) error {
	in, err := o.find(ctx, a, id)
	if err != nil {
		return err
	}
	switch {
	case o.column != "":
		if _, ok := in.Row[o.column]; !ok {
			return usage.Errorf("%s has no column %.60q; it has %s", in.ID, o.column, strings.Join(columns(in), ", "))
		}
		return a.PrintText(strings.TrimSuffix(columnText(in, o.column), "\n") + "\n")
	case o.json:
		text, err := in.JSON()
		if err == nil {
			_, err = a.Out.Write(text)
		}
		return err
	}
	_, err = io.WriteString(a.Out, instanceText(in))
	return err
}

// find returns the row of an instance. It searches the datasets of --subset, or else
// the demo and the cached datasets.
func (o *ShowOptions) find(ctx context.Context, a *app.App, id string) (datasets.Instance, error) {
	sources, err := o.datasets.OpenAll(ctx, a.Streams)
	if err == nil && len(o.datasets.Subsets) == 0 {
		var cached []hub.Snapshot
		cached, err = cachedSnapshots()
		sources = []datasets.Source{datasets.Embedded(datasetopen.Demo, demo.Rows())}
		for _, snapshot := range cached {
			sources = append(sources, snapshot.Source(""))
		}
	}
	if err != nil {
		return datasets.Instance{}, err
	}
	hint := "pass --subset, or fetch a dataset: mini datasets fetch verified"
	for _, source := range sources {
		set, err := datasets.Load(ctx, []datasets.Source{source}, datasets.Existing([]string{id}))
		if err != nil {
			return datasets.Instance{}, err
		}
		if len(set.Instances) > 0 {
			return set.Instances[0], nil
		}
		if near := datasets.ClosestIDs(id, set.IDs, 1); len(near) > 0 {
			hint = "did you mean " + near[0] + "?"
		}
	}
	searched := strings.Join(o.datasets.Subsets, ", ")
	return datasets.Instance{}, usage.Errorf("no row of %s has the id %.100q; %s", cmp.Or(searched, "the demo and the cached datasets"), id, hint)
}

// cachedSnapshots returns the cached datasets.
func cachedSnapshots() ([]hub.Snapshot, error) {
	hubClient, err := datasetopen.Hub(hub.Config{})
	if err != nil {
		return nil, err
	}
	return hubClient.Cached()
}

// columnText returns the text of a column, or its JSON if it is no text.
func columnText(in datasets.Instance, column string) (text string) {
	if json.Unmarshal(in.Row[column], &text) != nil {
		return string(in.Row[column])
	}
	return text
}

// maxInline is the maximum length in bytes of a value that is printed on one line.
// Longer values, and values of several lines, get their own section.
const maxInline = 100

// instanceText formats an instance: first the short columns, one per line, then
// the long ones.
func instanceText(in datasets.Instance) string {
	var short, long strings.Builder
	for _, name := range columns(in) {
		if name == "image" {
			continue // printed after the other short columns, from ImageName
		}
		value := columnText(in, name)
		if len(value) <= maxInline && !strings.Contains(value, "\n") {
			fmt.Fprintf(&short, "%-24s %s\n", text.Printable(name), text.Printable(value))
			continue
		}
		fmt.Fprintf(&long, "\n--- %s ---\n%s\n", text.Printable(name), strings.TrimRight(cmdutil.Sanitize(value), "\n"))
	}
	fmt.Fprintf(&short, "%-24s %s\n", "image", text.Printable(in.ImageName()))
	return short.String() + long.String()
}

// columns returns the sorted names of the columns.
func columns(in datasets.Instance) []string { return slices.Sorted(maps.Keys(in.Row)) }

// listedDataset is one dataset in the list.
type listedDataset struct {
	Name       string        `json:"name"`
	Repository string        `json:"repository,omitempty"`
	Split      string        `json:"split,omitempty"`
	Rows       int           `json:"rows,omitempty"` // approximate number
	About      string        `json:"about,omitempty"`
	Cached     *hub.Snapshot `json:"cached"` // null if the dataset is not cached
}

// ListOptions are the flags of mini datasets list.
type ListOptions struct{ json bool }

func newDatasetsList(a *app.App) *cobra.Command {
	o := &ListOptions{}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List datasets by alias and the cached ones",
		Example: "  mini datasets list\n  mini datasets list --json",
		Args:    cmdutil.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := listDatasets()
			if err != nil {
				return err
			}
			return a.PrintResult(o.json, list, datasetTable(list))
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// listDatasets returns the demo and the datasets with an alias, then the other cached
// datasets. For each dataset and split it uses the newest snapshot.
func listDatasets() ([]listedDataset, error) {
	cached, err := cachedSnapshots()
	if err != nil {
		return nil, err
	}
	list := []listedDataset{{Name: datasetopen.Demo, Rows: 5, About: "small repositories; needs no model"}}
	for _, alias := range hub.Aliases() {
		entry := listedDataset{Name: alias.Name, Repository: alias.Repo, Split: alias.Split, Rows: alias.Rows, About: alias.Description}
		for i, snapshot := range cached {
			if entry.Cached == nil && snapshot.Name() == alias.Repo && snapshot.Split == alias.Split {
				entry.Cached = &cached[i]
			}
		}
		list = append(list, entry)
	}
	for i, snapshot := range cached {
		if slices.ContainsFunc(list, func(entry listedDataset) bool { return entry.Cached == &cached[i] }) {
			continue
		}
		entry := listedDataset{Name: snapshot.Name(), Repository: snapshot.Repo, Split: snapshot.Split, Cached: &cached[i]}
		for _, alias := range hub.Aliases() {
			if snapshot.Repo == alias.Repo {
				entry.Name = alias.Name + strings.TrimPrefix(snapshot.Name(), snapshot.Repo)
			}
		}
		list = append(list, entry)
	}
	return list, nil
}

// datasetTable returns the list as a table.
func datasetTable(list []listedDataset) *doc.Doc {
	rows := [][]string{{"NAME", "SPLIT", "ROWS", "FETCHED", "DESCRIPTION"}}
	for _, entry := range list {
		count := "-"
		if entry.Rows > 0 {
			count = fmt.Sprint(entry.Rows)
		}
		fetched := "-"
		switch {
		case entry.Cached != nil:
			fetched = entry.Cached.Fetched.Local().Format(time.DateOnly)
		case entry.Name == datasetopen.Demo:
			fetched = "built in"
		}
		rows = append(rows, []string{entry.Name, cmp.Or(entry.Split, "-"), count, fetched, entry.About})
	}
	d := &doc.Doc{}
	d.Table("lllls", rows)
	return d
}
