package datasets

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Set holds the selected rows and their sources.
type Set struct {
	Sources   []SourceInfo // in the order of the sources
	Rows      int          // number of distinct ids in all sources
	Instances []Instance   // in the order of the selection
}

// ErrData is wrapped by the errors about the files and rows of a dataset or its selection.
// Their text contains the file and the row, where there are any.
var ErrData = errors.New("dataset")

type dataError struct{ text string }

func (e *dataError) Error() string { return e.text }
func (e *dataError) Unwrap() error { return ErrData }

// Load reads the selected rows of all sources. Of the other rows it keeps only the ids in
// memory: it reads each source once for the ids and, if the source has selected rows, again
// for these.
//
// The selection applies to the ids in the order in which they first appear. A row that
// several sources have is merged; a column with different values is an error (see merge).
func Load(ctx context.Context, sources []Source, sel Selection) (Set, error) {
	var set Set
	var all []string
	idSets := make([]map[string]bool, len(sources)) // the ids of each source
	seen := map[string]bool{}
	for i, src := range sources {
		ids, info, err := src.scan(ctx, true)
		if err != nil {
			return Set{}, err
		}
		set.Sources = append(set.Sources, info)
		idSets[i] = make(map[string]bool, len(ids))
		for _, id := range ids {
			idSets[i][id] = true
			if !seen[id] {
				seen[id] = true
				all = append(all, id)
			}
		}
	}
	set.Rows = len(all)
	selected, err := sel.Apply(all)
	if err != nil {
		return Set{}, err
	}
	rows := make(map[string]sourceRow, len(selected))
	for i, src := range sources {
		if err := src.loadRows(ctx, selected, idSets[i], rows); err != nil {
			return Set{}, err
		}
	}
	for _, id := range selected {
		set.Instances = append(set.Instances, rows[id].Instance)
	}
	return set, nil
}

// sourceRow is a row with the name of its source.
type sourceRow struct {
	Instance
	from string
}

// loadRows reads the selected rows among ids, the ids of the source, and merges them into
// rows.
func (s Source) loadRows(ctx context.Context, selected []string, ids map[string]bool, rows map[string]sourceRow) error {
	missing := map[string]bool{}
	for _, id := range selected {
		if ids[id] {
			missing[id] = true
		}
	}
	if len(missing) == 0 {
		return nil
	}
	for in, err := range Rows(ctx, s, func(id string) bool { return missing[id] }) {
		if err != nil {
			return err
		}
		delete(missing, in.ID)
		row := sourceRow{in, printable(s.Name)}
		if first, ok := rows[in.ID]; ok {
			if row, err = merge(first, row); err != nil {
				return err
			}
		}
		rows[in.ID] = row
		if len(missing) == 0 {
			return nil // skip the rest of the file
		}
	}
	for id := range missing {
		return &dataError{fmt.Sprintf("%s: row %s disappeared while reading; is another program writing to the file?", printable(s.Name), id)}
	}
	return nil
}

// IDs returns the ids of all rows, in order. It reads only the id column of a parquet file.
// A missing, repeated or invalid id (see CheckID) is an error that wraps ErrData.
func IDs(ctx context.Context, s Source) ([]string, error) {
	ids, _, err := s.scan(ctx, false)
	return ids, err
}

// Scan returns the ids of all rows and a description of the source, with checksum.
func Scan(ctx context.Context, s Source) ([]string, SourceInfo, error) { return s.scan(ctx, true) }

// Rows iterates over the rows for whose ids want returns true, one at a time; over all rows
// if want is nil. An error ends the iteration. Errors about a row wrap ErrData.
func Rows(ctx context.Context, s Source, want func(id string) bool) iter.Seq2[Instance, error] {
	if want == nil {
		want = func(string) bool { return true }
	}
	return func(yield func(Instance, error) bool) {
		for i := range s.count() {
			err := s.eachWanted(ctx, i, want, func(in Instance) bool { return yield(in, nil) })
			if errors.Is(err, errStop) {
				return
			}
			if err != nil {
				yield(Instance{}, err)
				return
			}
		}
	}
}

// errStop stops reading a file.
var errStop = errors.New("enough rows")

// eachWanted calls f with the wanted rows of one file.
func (s Source) eachWanted(ctx context.Context, i int, want func(string) bool, f func(Instance) bool) error {
	sh, err := s.open(ctx, i)
	if err != nil {
		return err
	}
	defer sh.close() //nolint:errcheck // read only
	return s.checkDamage(ctx, i, sh, sh.rows(ctx, want, func(in Instance) bool {
		in.TaskDir = s.taskDirs[in.ID]
		return f(in)
	}))
}

func (sh *shard) rows(ctx context.Context, want func(string) bool, f func(Instance) bool) error {
	kind, err := sh.kind()
	if err != nil {
		return err
	}
	if kind == kindParquet {
		return sh.wrapError(ctx, sh.parquetRows(ctx, want, f))
	}
	return sh.wrapError(ctx, sh.jsonRows(ctx, kind, want, f))
}
