package savedlogs

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade"
)

// Rows holds the data that grading needs from the datasets.
type Rows struct {
	Editions []datasets.SourceInfo // of all sources, in the given order
	// TestSpecs and Ungradable are keyed by instance id. A row without a TestSpec
	// has an error in Ungradable, which wraps grade.ErrNotGradable.
	TestSpecs  map[string]grade.TestSpec
	Ungradable map[string]error
	Unknown    []string // ids that are in no dataset
}

// ReadRows reads the rows of the instances with these ids from all sources. An
// instance may be in several sources; the error wraps datasets.ErrData if these
// disagree on its grading.
func ReadRows(ctx context.Context, sources []datasets.Source, ids []string) (Rows, error) {
	rows := Rows{TestSpecs: map[string]grade.TestSpec{}, Ungradable: map[string]error{}}
	sourceName := map[string]string{}
	for _, src := range sources {
		set, err := datasets.Load(ctx, []datasets.Source{src}, datasets.Existing(ids))
		if err != nil {
			return Rows{}, err
		}
		rows.Editions = append(rows.Editions, set.Sources...)
		for _, in := range set.Instances {
			first, known := rows.TestSpecs[in.ID]
			in.LogParser, in.EvalType = cmp.Or(in.LogParser, first.Parser), cmp.Or(in.EvalType, string(first.EvalType))
			spec, err := grade.NewTestSpec(in)
			switch {
			case err != nil:
				rows.Ungradable[in.ID] = err
			case known && !reflect.DeepEqual(first, spec):
				return Rows{}, fmt.Errorf("%w: instance %s has different grading columns in %.100s and %.100s; use one of them",
					datasets.ErrData, in.ID, sourceName[in.ID], src.Name)
			case !known:
				rows.TestSpecs[in.ID], sourceName[in.ID] = spec, src.Name
			}
		}
	}
	for _, id := range ids {
		_, known := rows.TestSpecs[id]
		if _, bad := rows.Ungradable[id]; known {
			delete(rows.Ungradable, id) // another source has a gradable row
		} else if !bad {
			rows.Unknown = append(rows.Unknown, id)
		}
	}
	return rows, nil
}
