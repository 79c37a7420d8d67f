package cli

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

	"github.com/spf13/cobra"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/runner/report"
)

func newDatasets(s Streams) *cobra.Command {
	return group(&cobra.Command{
		Use:   "datasets",
		Short: "List, fetch and show benchmark datasets",
		Long: `Datasets come from the Hugging Face hub, by alias (verified, lite, ...) or as
org/name[@revision], or from files. What was fetched once stays in the cache and
is used without a network until it is fetched again.`,
		Example: `  mini datasets list
  mini datasets fetch verified
  mini datasets show astropy__astropy-12907`,
	}, newDatasetsList(s), newDatasetsFetch(s), newDatasetsShow(s))
}

func newDatasetsFetch(s Streams) *cobra.Command {
	var split string
	cmd := &cobra.Command{
		Use:   "fetch SET...",
		Short: "Fetch datasets from the hub into the cache, or their newest edition",
		Example: `  mini datasets fetch verified lite
  mini datasets fetch SWE-bench/SWE-bench_Lite@main --split dev
  HF_ENDPOINT=https://hub.example HF_TOKEN=... mini datasets fetch org/name`,
		Args: atLeastOne("the name of a dataset"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var refs []hub.Ref
			for _, name := range args {
				ref, err := fetchable(name, split)
				if err != nil {
					return err
				}
				refs = append(refs, ref)
			}
			for i, ref := range refs {
				if err := fetch(cmd.Context(), s, args[i], ref); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&split, "split", "", "`NAME` of a part of it, as test or dev (default: the set's own)")
	return cmd
}

// fetchable is what a name means on the hub.
func fetchable(name, split string) (hub.Ref, error) {
	if name == demoSubset {
		return hub.Ref{}, usagef("%s is part of mini; there is nothing to fetch", demoSubset)
	}
	ref, err := parseRef(name, split)
	if _, gone := os.Stat(name); looksLikeFile(name) || err != nil && gone == nil {
		return hub.Ref{}, usagef("%.100q: files need no fetching; name it with --subset", name)
	}
	return ref, err
}

func fetch(ctx context.Context, s Streams, name string, ref hub.Ref) error {
	progress := newFetchLines(s)
	defer progress.end()
	h, err := openHub(hub.Config{Progress: progress.show})
	if err != nil {
		return err
	}
	edition, err := h.Fetch(ctx, ref)
	if errors.Is(err, agent.ErrInterrupted) {
		return fmt.Errorf("fetch %s: %w; the same command goes on where it stopped", report.Printable(name), agent.ErrInterrupted)
	}
	if err != nil {
		return err
	}
	// Reading it now finds out whether it is of any use.
	ids, err := datasets.IDs(ctx, edition.Source(name))
	if err != nil {
		return err
	}
	progress.end()
	_, err = fmt.Fprintf(s.Out, "%s: split %s, %s, %s\n  %s at %s\n", report.Printable(name),
		cmp.Or(edition.Split, "(all)"), report.Count(len(ids), "row"), report.Size(edition.Bytes), edition.Repo, edition.Commit)
	return err
}

// showOptions are the flags of mini datasets show.
type showOptions struct {
	subsetFlags
	column string
	json   bool
}

func newDatasetsShow(s Streams) *cobra.Command {
	o := &showOptions{}
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show an instance of a dataset",
		Long: `Shows the row of an instance: from the datasets that --subset names, else from
the first in the cache that has it.`,
		Example: `  mini datasets show minidemo__ledger-17
  mini datasets show astropy__astropy-12907 --subset verified --column patch
  mini datasets show astropy__astropy-12907 --json`,
		Args: exactlyOne("the id of an instance"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args[0]) },
	}
	o.flags(cmd.Flags())
	cmd.Flags().StringVar(&o.column, "column", "", "print only this `COLUMN`, as it is")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the row as JSON")
	return cmd
}

func (o *showOptions) run(ctx context.Context, s Streams, id string) error {
	in, err := o.find(ctx, s, id)
	if err != nil {
		return err
	}
	switch {
	case o.column != "":
		return printColumn(s, in, o.column)
	case o.json:
		text, err := in.JSON()
		if err != nil {
			return err
		}
		_, err = s.Out.Write(text)
		return err
	}
	return printInstance(s.Out, in)
}

// find reads the row of an instance.
func (o *showOptions) find(ctx context.Context, s Streams, id string) (datasets.Instance, error) {
	sources, err := o.open(ctx, s)
	if err != nil {
		return datasets.Instance{}, err
	}
	if len(o.subsets) == 0 {
		if sources, err = cachedSources(); err != nil {
			return datasets.Instance{}, err
		}
	}
	hint := "name a dataset with --subset, or fetch one: mini datasets fetch verified"
	for _, source := range sources {
		ids, err := datasets.IDs(ctx, source)
		if err != nil {
			return datasets.Instance{}, err
		}
		if !slices.Contains(ids, id) {
			if near := datasets.Near(id, ids, 1); len(near) > 0 {
				hint = "did you mean " + near[0] + "?"
			}
			continue
		}
		for in, err := range datasets.Rows(ctx, source, func(other string) bool { return other == id }) {
			return in, err
		}
	}
	return datasets.Instance{}, usagef("no row of %s has the id %.100q; %s", searched(o.subsets), id, hint)
}

func searched(subsets []string) string {
	if len(subsets) == 0 {
		return "the demo and the cached datasets"
	}
	return strings.Join(subsets, ", ")
}

// cachedSources are all the rows that can be read without a network.
func cachedSources() ([]datasets.Source, error) {
	sources := []datasets.Source{datasets.Embedded(demoSubset, demo.Rows())}
	h, err := openHub(hub.Config{})
	if err != nil {
		return nil, err
	}
	cached, err := h.Cached()
	for _, e := range cached {
		sources = append(sources, e.Source(""))
	}
	return sources, err
}

func printColumn(s Streams, in datasets.Instance, column string) error {
	raw, ok := in.Row[column]
	if !ok {
		return usagef("%s has no column %.60q; it has %s", in.ID, column, strings.Join(columns(in), ", "))
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	if s.OutTerminal {
		text = lines(text)
	}
	_, err := io.WriteString(s.Out, strings.TrimSuffix(text, "\n")+"\n")
	return err
}

// longColumn is how many characters of a column stand in its line; longer ones
// get a section.
const longColumn = 100

// printInstance shows short columns in a line each, then the long ones.
func printInstance(w io.Writer, in datasets.Instance) error {
	var short, long strings.Builder
	for _, name := range columns(in) {
		if name == "image" {
			continue // it comes last, as in rows that name it otherwise, or not at all
		}
		var text string
		if json.Unmarshal(in.Row[name], &text) != nil {
			text = string(in.Row[name])
		}
		if len(text) <= longColumn && !strings.Contains(text, "\n") {
			fmt.Fprintf(&short, "%-24s %s\n", report.Printable(name), report.Printable(text))
			continue
		}
		fmt.Fprintf(&long, "\n--- %s ---\n%s\n", report.Printable(name), strings.TrimRight(lines(text), "\n"))
	}
	fmt.Fprintf(&short, "%-24s %s\n", "image", report.Printable(in.ImageName()))
	_, err := io.WriteString(w, short.String()+long.String())
	return err
}

// columns are the names of a row's columns, sorted.
func columns(in datasets.Instance) []string { return slices.Sorted(maps.Keys(in.Row)) }
