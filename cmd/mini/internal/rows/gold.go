package rows

import (
	"context"
	"time"

	"github.com/minibench/mini/datasets"
	datasetopen "github.com/minibench/mini/datasets/open"
)

// cachedTimeout limits the time for reading rows that are only shown beside results.
const cachedTimeout = 10 * time.Second

// Cached returns the rows of instances, by id, as far as their datasets are on this
// machine. It downloads nothing. The rows have no raw columns.
func Cached(ctx context.Context, sets []datasets.SourceInfo, ids map[string]bool) map[string]datasets.Instance {
	ctx, cancel := context.WithTimeout(ctx, cachedTimeout)
	defer cancel()
	rows := map[string]datasets.Instance{}
	for _, set := range sets {
		if datasets.IsStdin(set.Name) || len(ids) == 0 {
			continue
		}
		source, ok := datasetopen.OpenCached(ctx, set.Name, set.Split)
		if !ok {
			continue
		}
		for row, err := range datasets.Rows(ctx, source, func(id string) bool { return ids[id] }) {
			if err != nil {
				break
			}
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
