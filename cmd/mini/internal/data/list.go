package data

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/datasets/hub"
	datasetopen "github.com/minibench/mini/datasets/open"
)

// listedDataset is one dataset in the list.
type listedDataset struct {
	Name       string        `json:"name"`
	Repository string        `json:"repository,omitempty"`
	Split      string        `json:"split,omitempty"`
	Rows       int           `json:"rows,omitempty"` // approximate number
	About      string        `json:"about,omitempty"`
	Cached     *hub.Snapshot `json:"cached"` // null if it is not cached
}

// newDatasetsList returns the command mini datasets list.
func newDatasetsList(s cmdutil.Streams) *cobra.Command {
	var asJSON bool
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
			return cmdutil.PrintResult(s, asJSON, list, datasetTable(list))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// listDatasets returns the aliases, then the other cached datasets: the newest
// snapshot of each dataset, split and endpoint.
func listDatasets() ([]listedDataset, error) {
	h, err := datasetopen.Hub(hub.Config{})
	if err != nil {
		return nil, err
	}
	cached, err := h.Cached()
	if err != nil {
		return nil, err
	}
	list := []listedDataset{{Name: datasetopen.Demo, Rows: 5, About: "small repositories; needs no model"}}
	for _, a := range hub.Aliases() {
		k := listedDataset{Name: a.Name, Repository: a.Repo, Split: a.Split, Rows: a.Rows, About: a.About}
		for i, e := range cached {
			if k.Cached == nil && e.Name() == a.Repo && e.Split == a.Split && e.Endpoint == h.Endpoint() {
				k.Cached = &cached[i]
			}
		}
		list = append(list, k)
	}
	for i, e := range cached {
		if slices.ContainsFunc(list, func(k listedDataset) bool { return k.Cached != nil && sameDataset(*k.Cached, e) }) {
			continue
		}
		k := listedDataset{Name: e.Name(), Repository: e.Repo, Split: e.Split, Cached: &cached[i]}
		for _, a := range hub.Aliases() {
			if e.Repo == a.Repo {
				k.Name = a.Name + strings.TrimPrefix(e.Name(), e.Repo)
			}
		}
		if e.Endpoint != h.Endpoint() {
			k.About = "from " + e.Endpoint
		}
		list = append(list, k)
	}
	return list, nil
}

// sameDataset reports whether two snapshots are of the same dataset, split and
// endpoint.
func sameDataset(a, b hub.Snapshot) bool {
	return a.Name() == b.Name() && a.Split == b.Split && a.Endpoint == b.Endpoint
}

// datasetTable formats the list as a table.
func datasetTable(list []listedDataset) string {
	rows := [][]string{{"NAME", "SPLIT", "ROWS", "FETCHED", "DESCRIPTION"}}
	for _, k := range list {
		count := "-"
		if k.Rows > 0 {
			count = fmt.Sprint(k.Rows)
		}
		fetched := "-"
		switch {
		case k.Cached != nil:
			fetched = k.Cached.Fetched.Local().Format(time.DateOnly)
		case k.Name == datasetopen.Demo:
			fetched = "built in"
		}
		rows = append(rows, []string{k.Name, cmp.Or(k.Split, "-"), count, fetched, k.About})
	}
	return cmdutil.FormatColumns(rows)
}
