package datasets

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Set is the rows that a run takes, and where they are from.
type Set struct {
	Editions  []Edition  // of every source, in the order they were given
	Rows      int        // different ids in all sources together
	Instances []Instance // the selected rows, in the order of the selection
}

// ErrData is wrapped by every mistake in a dataset, and in what was asked of
// it; the text names the file and the row.
var ErrData = errors.New("dataset")

type badData struct{ text string }

func (b *badData) Error() string { return b.text }
func (b *badData) Unwrap() error { return ErrData }

// Load reads the selected rows of all sources together. Only these are held in
// memory: the sources are read for their ids first, and once more for the rows
// that were selected.
//
// The rows are in the order in which their ids first appear. A row that several
// sources have is taken once, with the columns of all of them; where two
// differ in a column that both have, that is an error. (How columns are
// compared is said at merge.)
func Load(ctx context.Context, sources []Source, sel Selection) (Set, error) {
	var set Set
	var all []string
	has := make([]map[string]bool, len(sources)) // the ids of each source
	known := map[string]bool{}
	for i, src := range sources {
		ids, edition, err := src.scan(ctx, true)
		if err != nil {
			return Set{}, err
		}
		set.Editions = append(set.Editions, edition)
		has[i] = make(map[string]bool, len(ids))
		for _, id := range ids {
			has[i][id] = true
			if !known[id] {
				known[id] = true
				all = append(all, id)
			}
		}
	}
	set.Rows = len(all)
	picked, err := sel.Apply(all)
	if err != nil {
		return Set{}, err
	}
	rows := make(map[string]origin, len(picked))
	for i, src := range sources {
		if err := src.take(ctx, picked, has[i], rows); err != nil {
			return Set{}, err
		}
	}
	for _, id := range picked {
		set.Instances = append(set.Instances, rows[id].Instance)
	}
	return set, nil
}

// origin is a row with the name of the source it came from.
type origin struct {
	Instance
	from string
}

// take reads those of the picked rows that the source has, into rows.
func (s Source) take(ctx context.Context, picked []string, has map[string]bool, rows map[string]origin) error {
	missing := map[string]bool{}
	for _, id := range picked {
		if has[id] {
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
		row := origin{in, printable(s.Name)}
		if first, ok := rows[in.ID]; ok {
			if row, err = merge(first, row); err != nil {
				return err
			}
		}
		rows[in.ID] = row
		if len(missing) == 0 {
			return nil // the rest of the file has nothing that is wanted
		}
	}
	for id := range missing {
		return &badData{fmt.Sprintf("%s: row %s was there a moment ago and is gone; is something writing to the file?", printable(s.Name), id)}
	}
	return nil
}

// IDs returns the id of every row, in order. Of a parquet file only the column
// of ids is read. Ids that are missing, there twice, or unfit for the name of
// a folder are an error that wraps ErrData and names file and row.
func IDs(ctx context.Context, s Source) ([]string, error) {
	ids, _, err := s.scan(ctx, false)
	return ids, err
}

// Scan is IDs, and says of which edition they are.
func Scan(ctx context.Context, s Source) ([]string, Edition, error) { return s.scan(ctx, true) }

// Rows reads the rows whose ids are wanted, one after the other, and holds
// none of them; nil wants all. An error ends it; a mistake in a row wraps
// ErrData and names file and row.
func Rows(ctx context.Context, s Source, want func(id string) bool) iter.Seq2[Instance, error] {
	if want == nil {
		want = func(string) bool { return true }
	}
	return func(yield func(Instance, error) bool) {
		for i := range s.count() {
			err := s.eachOf(ctx, i, want, func(in Instance) bool { return yield(in, nil) })
			if errors.Is(err, errEnough) {
				return
			}
			if err != nil {
				yield(Instance{}, err)
				return
			}
		}
	}
}

// errEnough ends the reading of a file whose other rows nobody wants.
var errEnough = errors.New("enough rows")

// eachOf calls f with the wanted rows of one file.
func (s Source) eachOf(ctx context.Context, i int, want func(string) bool, f func(Instance) bool) error {
	sh, err := s.open(ctx, i)
	if err != nil {
		return err
	}
	defer sh.close() //nolint:errcheck // read only
	return s.blame(ctx, i, sh, sh.rows(ctx, want, f))
}

func (sh *shard) rows(ctx context.Context, want func(string) bool, f func(Instance) bool) error {
	kind, err := sh.content()
	if err != nil {
		return err
	}
	if kind == rowsParquet {
		return sh.wrong(ctx, sh.parquetRows(ctx, want, f))
	}
	return sh.wrong(ctx, sh.jsonRows(ctx, kind, want, f))
}
