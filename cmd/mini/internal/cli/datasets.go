package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/runner/report"
)

func newDatasets(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "datasets",
		Short: "List, fetch and show benchmark datasets",
		Long: `Datasets come from the Hugging Face hub, by alias (verified, lite, ...) or as
org/name[@revision], or from files. What was fetched once stays in the cache and
is used without a network until it is fetched again.`,
		Example: `  mini datasets list
  mini datasets fetch verified
  mini datasets show astropy__astropy-12907`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDatasetsList(s), newDatasetsFetch(s), newDatasetsShow(s))
	return cmd
}

// known is one dataset in the list.
type known struct {
	Name       string       `json:"name"`
	Repository string       `json:"repository,omitempty"`
	Split      string       `json:"split,omitempty"`
	Rows       int          `json:"rows,omitempty"` // about
	About      string       `json:"about,omitempty"`
	Cached     *hub.Edition `json:"cached"` // null when it would have to be fetched
}

func newDatasetsList(s Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "Say which datasets have a name, and which are in the cache",
		Example: "  mini datasets list\n  mini datasets list --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := knownSets()
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(s.Out).Encode(list)
			}
			return printSets(s.Out, list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// knownSets are the aliases, then what else is in the cache.
func knownSets() ([]known, error) {
	h, err := openHub(hub.Config{})
	if err != nil {
		return nil, err
	}
	cached, err := h.Cached()
	if err != nil {
		return nil, err
	}
	list := []known{{Name: demoSubset, Rows: 5, About: "small repositories; needs no model"}}
	for _, a := range hub.Aliases() {
		k := known{Name: a.Name, Repository: a.Repo, Split: a.Split, Rows: a.Rows, About: a.About}
		for i, e := range cached {
			if e.Repo == a.Repo && e.Revision == "main" && e.Split == a.Split {
				k.Cached = &cached[i]
			}
		}
		list = append(list, k)
	}
	for i, e := range cached {
		if !slices.ContainsFunc(list, func(k known) bool { return k.Cached == &cached[i] }) {
			name := e.Repo
			if e.Revision != "main" {
				name += "@" + e.Revision
			}
			list = append(list, known{Name: name, Repository: e.Repo, Split: e.Split, Cached: &cached[i]})
		}
	}
	return list, nil
}

func printSets(w io.Writer, list []known) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = report.Printable(cells[i])
		}
		_, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) // Flush reports it
	}
	row("NAME", "SPLIT", "ROWS", "FETCHED", "WHAT")
	for _, k := range list {
		rows := "-"
		if k.Rows > 0 {
			rows = fmt.Sprint(k.Rows)
		}
		held := "-"
		switch {
		case k.Cached != nil:
			held = k.Cached.Fetched.Local().Format(time.DateOnly)
		case k.Name == demoSubset:
			held = "always"
		}
		row(k.Name, cmp.Or(k.Split, "-"), rows, held, cmp.Or(k.About, k.Repository))
	}
	return t.Flush()
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
			for _, name := range args {
				if err := fetch(cmd.Context(), s, name, split); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&split, "split", "", "`NAME` of a part of it, as test or dev (default: the set's own)")
	return cmd
}

func fetch(ctx context.Context, s Streams, name, split string) error {
	ref, err := hub.ParseRef(name, split)
	if err != nil {
		return err
	}
	progress := newFetchLines(s)
	defer progress.end()
	h, err := openHub(hub.Config{Progress: progress.show})
	if err != nil {
		return err
	}
	edition, err := h.Fetch(ctx, ref)
	if err != nil {
		return err
	}
	// Reading it now finds out whether it is of any use.
	ids, err := datasets.IDs(ctx, edition.Source(name))
	if err != nil {
		return err
	}
	progress.end()
	_, err = fmt.Fprintf(s.Out, "%s: %s at %s, split %s, %s, %s\n", report.Printable(name), edition.Repo, short(edition.Commit),
		cmp.Or(edition.Split, "(all)"), report.Count(len(ids), "row"), report.Size(edition.Bytes))
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
		Example: `  mini datasets show demo__ledger-1
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
		sources = append(sources, e.Source(e.Repo))
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
