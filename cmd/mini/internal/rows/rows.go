// Package rows defines the flags that select datasets, opens the datasets and prints
// the progress of downloads.
package rows

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/datasets"
	datasetopen "github.com/minibench/mini/datasets/open"
	"github.com/minibench/mini/internal/lazyregexp"
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

// Load opens every dataset and reads the rows that want selects.
func (o *DatasetFlags) Load(ctx context.Context, s cmdutil.Streams, want func(ids []string) ([]string, error)) (datasets.Set, error) {
	sources, err := o.OpenAll(ctx, s)
	if err != nil {
		return datasets.Set{}, err
	}
	return datasets.Load(ctx, sources, want)
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

// cachedTimeout limits the time for reading rows that are only shown beside results.
const cachedTimeout = 10 * time.Second

// Cached returns the rows of instances, by id, as far as their datasets are on this
// machine. It downloads nothing. The rows have no raw columns.
func Cached(ctx context.Context, sets []datasets.SourceInfo, ids map[string]bool) map[string]datasets.Instance {
	ctx, cancel := context.WithTimeout(ctx, cachedTimeout)
	defer cancel()
	rows := map[string]datasets.Instance{}
	for _, info := range sets {
		if datasets.IsStdin(info.Name) || len(ids) == 0 {
			continue
		}
		source, ok := datasetopen.OpenCached(info.Name, info.Split)
		if !ok {
			continue
		}
		set, _ := datasets.Load(ctx, []datasets.Source{source}, datasets.Existing(slices.Collect(maps.Keys(ids)))) // empty after an error
		for _, row := range set.Instances {
			row.Row = nil
			rows[row.ID] = row
		}
	}
	return rows
}

// GoldPatches returns the gold patches of the rows that Cached finds.
func GoldPatches(ctx context.Context, sets []datasets.SourceInfo, ids map[string]bool) map[string]string {
	patches := map[string]string{}
	for id, row := range Cached(ctx, sets, ids) {
		patches[id] = row.Patch
	}
	return patches
}

// InvalidFolderChars matches sequences of characters that mini replaces in folder names.
var InvalidFolderChars = lazyregexp.New(`[^\pL\pN._-]+`)

// MaxFolderName is the maximum length of the descriptive part of a folder name, in characters.
const MaxFolderName = 60

// RunFolder returns output or, if it is empty, the path of a folder in mini-runs that does
// not exist yet, named after the datasets and the time. It creates nothing.
func RunFolder(output string, subsets []string) string {
	if output != "" {
		return output
	}
	var names []string
	for _, s := range subsets {
		names = append(names, strings.Trim(InvalidFolderChars.ReplaceAllString(filepath.Base(s), "-"), ".-"))
	}
	name := []rune(strings.Join(names, "+"))
	name = name[:min(len(name), MaxFolderName)]
	first := filepath.Join(cmdutil.DefaultRunsDir, string(name)+"-"+time.Now().Format("20060102-150405"))
	dir := first
	for n := 2; cmdutil.FileExists(dir); n++ { // another run started in the same second
		dir = fmt.Sprintf("%s-%d", first, n)
	}
	return dir
}
