package datasets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Set holds the selected rows and their sources.
type Set struct {
	Sources   []SourceInfo // in the order of the sources
	IDs       []string     // distinct ids of all rows, in the order in which they first appear
	Instances []Instance   // the selected rows, in the order of the selection
}

// SourceInfo identifies the content of a source.
type SourceInfo struct {
	Name     string `json:"name"` // as the user typed it
	Revision string `json:"revision,omitempty"`
	Split    string `json:"split,omitempty"`
	// SHA256 is the checksum of the file, in hex. For several files it is the checksum
	// of the output of sha256sum for them, in order: one line
	// "<sha256 of the file>  <slash-separated name within the dataset>" per file.
	SHA256 string `json:"sha256"`
	Files  int    `json:"files"`
	Rows   int    `json:"rows"`
}

// ErrData is wrapped by the errors about the files and rows of a dataset or its selection.
// Their text contains the file and the row, where there are any.
var ErrData = errors.New("dataset")

type dataError struct{ text string }

func (e *dataError) Error() string { return e.text }
func (e *dataError) Unwrap() error { return ErrData }

// Load reads the rows of all sources that want selects. Of the other rows it keeps only the
// ids in memory: it reads each source once for the ids and, if the source has selected rows,
// again for these. It reads only the id column of the other rows of a parquet file.
//
// want gets the ids of all rows and returns those of the wanted rows, in their order, as
// Selection.Apply does. A missing, repeated or invalid id (see CheckID) is an error. A row that
// several sources have is merged; a column with different values is an error (see merge).
func Load(ctx context.Context, sources []Source, want func(ids []string) ([]string, error)) (Set, error) {
	var set Set
	var found []map[string]position // rows of each source
	seen := map[string]bool{}
	for _, src := range sources {
		ids, positions, err := src.ids(ctx)
		if err != nil {
			return Set{}, err
		}
		info := SourceInfo{Name: src.Name, Revision: src.Revision, Split: src.Split, Files: src.count(), Rows: len(ids)}
		if info.SHA256, err = src.sum(ctx); err != nil {
			return Set{}, err
		}
		set.Sources, found = append(set.Sources, info), append(found, positions)
		for _, id := range ids {
			if !seen[id] {
				seen[id] = true
				set.IDs = append(set.IDs, id)
			}
		}
	}
	selected, err := want(set.IDs)
	if err != nil {
		return Set{}, err
	}
	rows := make(map[string]sourceRow, len(selected))
	for i, src := range sources {
		missing := map[string]bool{}
		for _, id := range selected {
			if _, has := found[i][id]; has {
				missing[id] = true
			}
		}
		if err := src.rows(ctx, missing, rows); err != nil {
			return Set{}, err
		}
	}
	for _, id := range selected {
		set.Instances = append(set.Instances, rows[id].Instance)
	}
	return set, nil
}

// AllRows selects all rows.
func AllRows(ids []string) ([]string, error) { return ids, nil }

// NoRows selects no row, for callers that need only the ids.
func NoRows([]string) ([]string, error) { return nil, nil }

// Existing selects those of the given ids that exist.
func Existing(wanted []string) func(ids []string) ([]string, error) {
	set := map[string]bool{}
	for _, id := range wanted {
		set[id] = true
	}
	return func(ids []string) ([]string, error) {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !set[id] }), nil
	}
}

// maxRows limits the ids in memory. The largest dataset has about 60,000 rows.
const maxRows = 5_000_000

// position is the file and the number of a row.
type position struct{ file, row int32 }

// ids reads the ids of all rows.
func (s Source) ids(ctx context.Context) ([]string, map[string]position, error) {
	var ids []string
	seen := map[string]position{}
	for i := range s.count() {
		err := s.read(ctx, i, func(row int, id string) (bool, error) {
			first, duplicate := seen[id]
			switch {
			case duplicate && int(first.file) == i:
				return false, fmt.Errorf("rows %d and %d have the same instance_id %q", first.row, row, id)
			case duplicate:
				return false, &dataError{fmt.Sprintf("%s row %d and %s row %d have the same instance_id %q; use only one of the files",
					s.label(int(first.file)), first.row, s.label(i), row, id)}
			case len(ids) == maxRows:
				return false, fmt.Errorf("more than %d rows", maxRows)
			}
			seen[id] = position{int32(i), int32(row)}
			ids = append(ids, id)
			return false, nil
		}, nil)
		if err != nil {
			return nil, nil, err
		}
	}
	if len(ids) > 0 {
		return ids, seen, nil
	}
	if s.count() == 1 {
		return nil, nil, &dataError{s.label(0) + ": no rows"}
	}
	return nil, nil, &dataError{printable(s.Name) + ": no rows"}
}

// sourceRow is a row with the name of its source.
type sourceRow struct {
	Instance
	from string
}

// errStop stops reading a file.
var errStop = errors.New("enough rows")

// rows reads the rows with the given ids, and merges them into rows.
func (s Source) rows(ctx context.Context, missing map[string]bool, rows map[string]sourceRow) error {
	for i := 0; i < s.count() && len(missing) > 0; i++ {
		wanted := func(_ int, id string) (bool, error) { return missing[id], nil }
		err := s.read(ctx, i, wanted, func(in Instance) error {
			in.TaskDir = s.taskDirs[in.ID]
			row := sourceRow{in, printable(s.Name)}
			if first, ok := rows[in.ID]; ok {
				var err error
				if row, err = merge(first, row); err != nil {
					return err
				}
			}
			rows[in.ID] = row
			if delete(missing, in.ID); len(missing) == 0 {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			return err
		}
	}
	for id := range missing {
		return &dataError{fmt.Sprintf("%s: row %s disappeared while reading; is another program writing to the file?", printable(s.Name), id)}
	}
	return nil
}

// read calls want with the number and the id of every row of a file, and f with those rows for
// which want returns true.
func (s Source) read(ctx context.Context, i int, want func(row int, id string) (bool, error), f func(Instance) error) error {
	sh, err := s.open(ctx, i)
	if err != nil {
		return err
	}
	defer sh.close() //nolint:errcheck // read only
	kind, err := sh.kind()
	switch {
	case err != nil:
		return err
	case kind == kindParquet:
		err = readParquet(ctx, sh, want, f)
	default:
		err = sh.readJSON(ctx, kind, want, f)
	}
	return sh.wrapError(ctx, err)
}

func (sh *shard) readJSON(ctx context.Context, kind fileKind, want func(int, string) (bool, error), f func(Instance) error) error {
	r, err := sh.jsonReader(kind)
	if err != nil {
		return err
	}
	return eachRow(ctx, r, func(row int, raw []byte) error {
		columns, id, err := columnsOf(raw)
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		if wanted, err := want(row, id); err != nil || !wanted {
			return err
		}
		in, err := fromColumns(columns)
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		return f(in)
	})
}

// sum returns the checksum of the source, see SourceInfo.
func (s Source) sum(ctx context.Context) (string, error) {
	var lines bytes.Buffer
	for i := range s.count() {
		sum, err := s.fileSum(ctx, i)
		if err != nil || s.count() == 1 {
			return sum, err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, s.sumName(i))
	}
	sum := sha256.Sum256(lines.Bytes())
	return hex.EncodeToString(sum[:]), nil
}

func (s Source) fileSum(ctx context.Context, i int) (string, error) {
	if i < len(s.SHA256) && s.SHA256[i] != "" {
		return s.SHA256[i], nil
	}
	sh, err := s.open(ctx, i)
	if err != nil {
		return "", err
	}
	defer sh.close() //nolint:errcheck // read only
	sum := sha256.New()
	_, err = io.Copy(sum, &ctxReader{ctx, sh.reader()})
	return hex.EncodeToString(sum.Sum(nil)), sh.wrapError(ctx, err)
}

// ctxReader is a reader that fails when its context ends.
type ctxReader struct {
	ctx context.Context // for one call of io.Copy
	r   io.Reader
}

// Read implements io.Reader.
func (c *ctxReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
