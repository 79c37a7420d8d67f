// Package rows defines the flags that select datasets, opens the datasets and prints
// the progress of downloads.
package rows

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
)

// DatasetFlags are the flags that name datasets.
type DatasetFlags struct {
	Subsets []string
	Split   string
}

// AddFlags adds the flags to a command.
func (o *DatasetFlags) AddFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.Subsets, "subset", nil, "dataset: an alias, org/name of the hub, a path, or - for stdin; repeatable")
	f.StringVar(&o.Split, "split", "", "split of the dataset, such as test or dev (default: the dataset's own)")
}

// OpenAll opens every dataset, downloading those that are not cached.
func (o *DatasetFlags) OpenAll(ctx context.Context, s cmdutil.Streams) ([]datasets.Source, error) {
	var sources []datasets.Source
	stdin := false
	for _, name := range o.Subsets {
		if datasets.IsStdin(name) {
			if stdin {
				return nil, usage.Errorf("--subset %s: stdin can be read only once; pass the other rows as files", name)
			}
			stdin = true
		}
		source, err := Open(ctx, s, name, o.Split)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// FormatSource describes a dataset in one line.
func FormatSource(e datasets.SourceInfo) string {
	line := e.Name
	if e.Revision != "" {
		line += " at " + ShortHash(e.Revision)
	}
	if e.Split != "" {
		line += ", split " + e.Split
	}
	return fmt.Sprintf("%s: %s, sha256 %s", line, text.Count(e.Rows, "row"), ShortHash(e.SHA256))
}

// ShortHash returns the first 12 characters of hash.
func ShortHash(hash string) string { return hash[:min(len(hash), 12)] }
