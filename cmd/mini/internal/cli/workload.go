package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner"
)

// workload is the rows of a run and where they are from. The other rows of the
// datasets are never held: a run may last for days.
type workload struct {
	dataset runner.Dataset
	rows    []datasets.Instance
}

// load reads the datasets and picks rows.
func (o *benchOptions) load(ctx context.Context, s Streams) (workload, error) {
	sources, err := o.open(ctx, s)
	if err != nil {
		return workload{}, err
	}
	set, err := datasets.Load(ctx, sources, o.selection)
	if err != nil {
		return workload{}, err
	}
	name := strings.Join(o.subsets, "+")
	if len(set.Instances) == 0 {
		return workload{}, usagef("no instance is left of the %d in %s after --instance, --filter and --slice", set.Rows, name)
	}
	return workload{
		dataset: runner.Dataset{
			Name: name, Editions: set.Editions, Rows: set.Rows, Selected: len(set.Instances), Selection: o.selection,
		},
		rows: set.Instances,
	}, nil
}

// checkAgent finds every mistake in prompts before a model is called, also
// those that only some rows bring out.
func checkAgent(cfg *configs.Resolved, rows []datasets.Instance) (*agent.Agent, error) {
	for _, set := range []func(*configs.Resolved) error{setImages, setWindow} {
		if err := set(cfg); err != nil {
			return nil, err
		}
	}
	a, err := agent.New(cfg.Agent)
	if err != nil {
		return nil, cfg.Locate(err)
	}
	for _, in := range rows {
		if err := a.Check(agent.Task{Text: in.ProblemStatement, Instance: in.Fields()}); err != nil {
			return nil, fmt.Errorf("%w (instance %s)", cfg.Locate(err), in.ID)
		}
	}
	return a, nil
}

func ids(rows []datasets.Instance) []string {
	names := make([]string, len(rows))
	for i, in := range rows {
		names[i] = in.ID
	}
	return names
}
