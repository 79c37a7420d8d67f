package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/parquet-go/parquet-go"
)

// idColumn is read separately, before the other columns.
const idColumn = "instance_id"

// table is an open parquet file.
type table struct {
	file *parquet.File
	from io.ReaderAt
	size int64
	id   int // index of the id column
}

// openTable reads the footer of the file.
func (sh *shard) openTable() (*table, error) {
	if err := checkFooter(sh.from, sh.size); err != nil {
		return nil, err
	}
	t := &table{from: sh.from, size: sh.size}
	err := recoverPanic(func() (err error) {
		// Skip the page index: in a hostile file it can refer to pages that checkPages
		// did not check. Reading from the start of a row group is fast enough.
		t.file, err = parquet.OpenFile(sh.from, sh.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		return err
	})
	if err != nil {
		return nil, parquetError(err)
	}
	var names []string
	for _, c := range t.file.Root().Columns() {
		if c.Name() == idColumn && c.Leaf() && !c.Repeated() && c.Type().Kind() == parquet.ByteArray {
			t.id = c.Index()
			return t, nil
		}
		names = append(names, c.Name())
	}
	return nil, fmt.Errorf("no text column %s; the columns are %s", idColumn, joinNames(names))
}

func damagedError(err error) error { return fmt.Errorf("damaged; fetch it again (%w)", err) }

func parquetError(err error) error {
	return fmt.Errorf("not a parquet file, or a damaged one: %w", err)
}

// recoverPanic calls f, which uses the parquet library, and converts a panic to an error.
// The library panics on some invalid files, and its unsafe code may cause memory faults,
// which SetPanicOnFault converts to panics.
func recoverPanic(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return f()
}

// parquetIDs calls f with the id of every row. It reads only the id column.
func (sh *shard) parquetIDs(ctx context.Context, f func(row int, id string) error) error {
	t, err := sh.openTable()
	if err != nil {
		return err
	}
	row := 0
	for g := range t.file.RowGroups() {
		ids, err := t.ids(ctx, g)
		if err != nil {
			return fmt.Errorf("after row %d: %w", row, err)
		}
		for _, id := range ids {
			row++
			if err := CheckID(id); err != nil {
				return fmt.Errorf("row %d: %w", row, err)
			}
			if err := f(row, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// ids reads the ids of a row group.
func (t *table) ids(ctx context.Context, g int) ([]string, error) {
	group := t.file.RowGroups()[g]
	if _, err := t.checkPages(ctx, g, t.id); err != nil {
		return nil, err
	}
	var ids []string
	err := recoverPanic(func() error {
		pages := group.ColumnChunks()[t.id].Pages()
		defer pages.Close() //nolint:errcheck // read only
		values := make([]parquet.Value, 512)
		for ctx.Err() == nil {
			page, err := pages.ReadPage()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			ids, err = appendIDs(ids, page, values)
			parquet.Release(page)
			if err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	})
	if err == nil && int64(len(ids)) != group.NumRows() {
		err = fmt.Errorf("a row group has %d rows instead of %d", len(ids), group.NumRows())
	}
	if err != nil {
		return nil, damagedError(err)
	}
	return ids, nil
}

func appendIDs(ids []string, page parquet.Page, values []parquet.Value) ([]string, error) {
	r := page.Values()
	for {
		n, err := r.ReadValues(values) // may return values together with io.EOF
		for _, v := range values[:n] {
			id := ""
			if v.Kind() == parquet.ByteArray { // the library does not check the kind
				b := v.ByteArray()
				id = string(b[:min(len(b), maxID+1)]) // CheckID rejects a longer id
			}
			ids = append(ids, id)
		}
		switch {
		case errors.Is(err, io.EOF):
			return ids, nil
		case err != nil:
			return nil, err
		case n == 0:
			return nil, io.ErrNoProgress
		case len(ids) > maxRows:
			return nil, fmt.Errorf("more than %d rows", maxRows)
		}
	}
}
