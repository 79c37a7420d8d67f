package savedlogs

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade"
)

// Rows holds what the datasets say about the instances with logs.
type Rows struct {
	Editions []datasets.SourceInfo // of all sources, in the given order
	// TestSpecs is keyed by instance id. Ungradable has the error, which wraps
	// grade.ErrNotGradable, for each row without a TestSpec.
	TestSpecs  map[string]grade.TestSpec
	Ungradable map[string]error
	Unknown    []string // ids that are in no dataset
}

// ReadRows reads the rows of these instances from all sources. A row in several
// sources is taken once; if the sources disagree on its grading, the error
// wraps datasets.ErrData.
func ReadRows(ctx context.Context, sources []datasets.Source, ids []string) (Rows, error) {
	rows := Rows{TestSpecs: map[string]grade.TestSpec{}, Ungradable: map[string]error{}}
	wanted, source := map[string]bool{}, map[string]string{}
	for _, id := range ids {
		wanted[id] = true
	}
	for _, src := range sources {
		_, edition, err := datasets.Scan(ctx, src)
		if err != nil {
			return Rows{}, err
		}
		rows.Editions = append(rows.Editions, edition)
		for in, err := range datasets.Rows(ctx, src, func(id string) bool { return wanted[id] }) {
			if err != nil {
				return Rows{}, err
			}
			first, known := rows.TestSpecs[in.ID]
			in.LogParser, in.EvalType = cmp.Or(in.LogParser, first.Parser), cmp.Or(in.EvalType, string(first.EvalType))
			rubric, err := grade.NewTestSpec(in)
			switch {
			case err != nil:
				rows.Ungradable[in.ID] = err
			case known && !reflect.DeepEqual(first, rubric):
				return Rows{}, fmt.Errorf("%w: instance %s has different grading columns in %.100s and %.100s; use one of them",
					datasets.ErrData, in.ID, source[in.ID], src.Name)
			case !known:
				rows.TestSpecs[in.ID], source[in.ID] = rubric, src.Name
			}
		}
	}
	for _, id := range ids {
		_, known := rows.TestSpecs[id]
		if _, bad := rows.Ungradable[id]; known {
			delete(rows.Ungradable, id) // another source has what grading needs
		} else if !bad {
			rows.Unknown = append(rows.Unknown, id)
		}
	}
	return rows, nil
}
