package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/runner/report"
)

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

// knownSets are the aliases, then what else is in the cache: of each dataset,
// split and endpoint the newest edition.
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
			if k.Cached == nil && e.Name() == a.Repo && e.Split == a.Split && e.Endpoint == h.Endpoint() {
				k.Cached = &cached[i]
			}
		}
		list = append(list, k)
	}
	for i, e := range cached {
		if slices.ContainsFunc(list, func(k known) bool { return k.Cached != nil && sameRows(*k.Cached, e) }) {
			continue
		}
		k := known{Name: e.Name(), Repository: e.Repo, Split: e.Split, Cached: &cached[i]}
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

// sameRows says that two editions are asked for alike, whatever was there when.
func sameRows(a, b hub.Edition) bool {
	return a.Name() == b.Name() && a.Split == b.Split && a.Endpoint == b.Endpoint
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
		row(k.Name, cmp.Or(k.Split, "-"), rows, held, k.About)
	}
	return t.Flush()
}
