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
	Cached     *hub.Snapshot `json:"cached"` // null if the dataset is not cached
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

// listDatasets returns the demo and the datasets with an alias, then the other cached
// datasets. For each dataset, split and endpoint it uses the newest snapshot.
func listDatasets() ([]listedDataset, error) {
	hubClient, err := datasetopen.Hub(hub.Config{})
	if err != nil {
		return nil, err
	}
	cached, err := hubClient.Cached()
	if err != nil {
		return nil, err
	}
	list := []listedDataset{{Name: datasetopen.Demo, Rows: 5, About: "small repositories; needs no model"}}
	for _, alias := range hub.Aliases() {
		entry := listedDataset{Name: alias.Name, Repository: alias.Repo, Split: alias.Split, Rows: alias.Rows, About: alias.Description}
		for i, snapshot := range cached {
			if entry.Cached == nil && snapshot.Name() == alias.Repo && snapshot.Split == alias.Split && snapshot.Endpoint == hubClient.Endpoint() {
				entry.Cached = &cached[i]
			}
		}
		list = append(list, entry)
	}
	for i, snapshot := range cached {
		if slices.ContainsFunc(list, func(entry listedDataset) bool { return entry.Cached != nil && sameDataset(*entry.Cached, snapshot) }) {
			continue
		}
		entry := listedDataset{Name: snapshot.Name(), Repository: snapshot.Repo, Split: snapshot.Split, Cached: &cached[i]}
		for _, alias := range hub.Aliases() {
			if snapshot.Repo == alias.Repo {
				entry.Name = alias.Name + strings.TrimPrefix(snapshot.Name(), snapshot.Repo)
			}
		}
		if snapshot.Endpoint != hubClient.Endpoint() {
			entry.About = "from " + snapshot.Endpoint
		}
		list = append(list, entry)
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
	return cmdutil.FormatColumns(rows)
}
