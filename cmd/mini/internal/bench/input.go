package bench

import (
	"context"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
)

// Input contains the selected rows of a run and their origin. It does not hold the other rows in
// memory, since a run may last for days.
type Input struct {
	Dataset runner.Dataset
	Rows    []datasets.Instance
}

// LoadRows reads the datasets and selects rows. It returns an error if no row is left.
func (o *Options) LoadRows(ctx context.Context, s cmdutil.Streams) (Input, error) {
	sources, err := o.OpenAll(ctx, s)
	if err != nil {
		return Input{}, err
	}
	set, err := datasets.Load(ctx, sources, o.Selection)
	if err != nil {
		return Input{}, err
	}
	name := strings.Join(o.Subsets, "+")
	if len(set.Instances) == 0 {
		return Input{}, usage.Errorf("no instance is left of the %d in %s after --instance, --filter and --slice", set.Rows, name)
	}
	return Input{
		Dataset: runner.Dataset{
			Name: name, Editions: set.Sources, Rows: set.Rows, Selected: len(set.Instances), Selection: o.Selection,
		},
		Rows: set.Instances,
	}, nil
}

// instanceIDs returns the ids of rows, in their order.
func instanceIDs(rows []datasets.Instance) []string {
	ids := make([]string, len(rows))
	for i, in := range rows {
		ids[i] = in.ID
	}
	return ids
}
