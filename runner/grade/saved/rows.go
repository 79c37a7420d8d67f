package saved

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/grade"
)

// Rows are what the datasets say of the instances that have logs.
type Rows struct {
	Editions []datasets.Edition // of every source, in the order they were given
	// Rubrics are by the id of the instance; Ungradable says why a row has none,
	// with an error that wraps grade.ErrNotGradable.
	Rubrics    map[string]grade.Rubric
	Ungradable map[string]error
	Unknown    []string // ids that no dataset has
}

// ReadRows reads the rows of these instances from all sources together, and
// keeps of them what grading needs. A row that several sources have is taken
// once; where two differ in a column that grading uses, that is an error that
// wraps datasets.ErrData. A column that is missing or empty differs from
// none.
func ReadRows(ctx context.Context, sources []datasets.Source, ids []string) (Rows, error) {
	rows := Rows{Rubrics: map[string]grade.Rubric{}, Ungradable: map[string]error{}}
	want := map[string]bool{}
	for _, id := range ids {
		want[id] = true
	}
	found := map[string]columns{}
	for _, src := range sources {
		_, edition, err := datasets.Scan(ctx, src)
		if err != nil {
			return Rows{}, err
		}
		rows.Editions = append(rows.Editions, edition)
		for in, err := range datasets.Rows(ctx, src, func(id string) bool { return want[id] }) {
			if err != nil {
				return Rows{}, err
			}
			row := columnsOf(in, src.Name)
			if first, ok := found[in.ID]; ok {
				if row, err = first.merge(row); err != nil {
					return Rows{}, err
				}
			}
			found[in.ID] = row
		}
	}
	for _, id := range ids {
		row, ok := found[id]
		if !ok {
			rows.Unknown = append(rows.Unknown, id)
			continue
		}
		rubric, err := grade.RubricOf(row.in)
		if err != nil {
			rows.Ungradable[id] = err
		} else {
			rows.Rubrics[id] = rubric
		}
	}
	return rows, nil
}

// columns are those of a row that grading uses, and the name of the dataset.
type columns struct {
	in   datasets.Instance
	from string
}

func columnsOf(in datasets.Instance, from string) columns {
	row := map[string]json.RawMessage{}
	if raw, ok := in.Row["install_config"]; ok {
		row["install_config"] = raw // tells a family of datasets
	}
	return columns{from: from, in: datasets.Instance{
		ID: in.ID, Repo: in.Repo, Version: in.Version, LogParser: in.LogParser, EvalType: in.EvalType,
		FailToPass: in.FailToPass, PassToPass: in.PassToPass, Row: row,
	}}
}

// merge makes one row of two of the same instance.
func (c columns) merge(other columns) (columns, error) {
	differs := ""
	text := func(name string, into *string, value string) {
		switch {
		case *into == "":
			*into = value
		case value != "" && value != *into && differs == "":
			differs = name
		}
	}
	list := func(name string, into *[]string, value []string) {
		switch {
		case *into == nil:
			*into = value
		case value != nil && !slices.Equal(*into, value) && differs == "":
			differs = name
		}
	}
	text("repo", &c.in.Repo, other.in.Repo)
	text("version", &c.in.Version, other.in.Version)
	text("log_parser", &c.in.LogParser, other.in.LogParser)
	text("eval_type", &c.in.EvalType, other.in.EvalType)
	list("FAIL_TO_PASS", &c.in.FailToPass, other.in.FailToPass)
	list("PASS_TO_PASS", &c.in.PassToPass, other.in.PassToPass)
	if differs != "" {
		return columns{}, fmt.Errorf("%w: instance %s is not graded alike in %.100s and in %.100s: column %s differs; name one of the two",
			datasets.ErrData, c.in.ID, c.from, other.from, differs)
	}
	return c, nil
}
