package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/parquet-go/parquet-go"
)

// idColumn is the one column that is read on its own.
const idColumn = "instance_id"

// table is an open parquet file.
type table struct {
	file *parquet.File
	from io.ReaderAt
	size int64
	id   int // which leaf holds the ids
}

// openTable reads the description at the end of the file.
func (sh *shard) openTable() (*table, error) {
	if err := checkFooter(sh.from, sh.size); err != nil {
		return nil, err
	}
	t := &table{from: sh.from, size: sh.size}
	err := guard(func() (err error) {
		// The index of pages would let a hostile file point anywhere, past
		// what checkPages has looked at; rows are read from the start of their
		// group, which hub files keep small.
		t.file, err = parquet.OpenFile(sh.from, sh.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		return err
	})
	if err != nil {
		return nil, notParquet(err)
	}
	var names []string
	for _, c := range t.file.Root().Columns() {
		if c.Name() == idColumn && c.Leaf() && !c.Repeated() && c.Type().Kind() == parquet.ByteArray {
			t.id = c.Index()
			return t, nil
		}
		names = append(names, c.Name())
	}
	return nil, fmt.Errorf("no text column %s; the columns are %s", idColumn, listed(names))
}

func damaged(err error) error { return fmt.Errorf("damaged; fetch it again (%w)", err) }

func notParquet(err error) error { return fmt.Errorf("not a parquet file, or a damaged one: %w", err) }

// guard runs code of the parquet library. The file may be hostile, and the
// library answers some mistakes with a panic; it also reads memory in ways of
// its own, so that a fault there is to be a panic too.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return f()
}

// parquetIDs calls f with the id of every row, and reads that column only.
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

// ids reads the ids of one group of rows.
func (t *table) ids(ctx context.Context, g int) ([]string, error) {
	group := t.file.RowGroups()[g]
	if _, err := t.checkPages(ctx, g, t.id); err != nil {
		return nil, err
	}
	var ids []string
	err := guard(func() error {
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
		err = fmt.Errorf("a group says %d rows and has %d", group.NumRows(), len(ids))
	}
	if err != nil {
		return nil, damaged(err)
	}
	return ids, nil
}

func appendIDs(ids []string, page parquet.Page, values []parquet.Value) ([]string, error) {
	r := page.Values()
	for {
		n, err := r.ReadValues(values) // gives values and io.EOF together
		for _, v := range values[:n] {
			id := ""
			if v.Kind() == parquet.ByteArray { // the library does not check
				b := v.ByteArray()
				id = string(b[:min(len(b), maxID+1)]) // too long is too long
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
