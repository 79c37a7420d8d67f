package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// parquetRows calls f with the wanted rows. Groups without any are passed over.
func (sh *shard) parquetRows(ctx context.Context, want func(string) bool, f func(Instance) bool) error {
	t, err := sh.openTable()
	if err != nil {
		return err
	}
	row := 0 // how many came before this group
	for g := range t.file.RowGroups() {
		ids, err := t.ids(ctx, g)
		if err != nil {
			return fmt.Errorf("after row %d: %w", row, err)
		}
		last := -1
		wanted := make([]bool, len(ids))
		for i, id := range ids {
			if wanted[i] = want(id); wanted[i] {
				last = i
			}
		}
		err = t.rows(ctx, g, last+1, func(i int, values parquet.Row) error {
			if !wanted[i] {
				return nil
			}
			in, err := t.instance(values)
			if err == nil && in.ID != ids[i] {
				err = errors.New("the columns are not in step")
			}
			if err != nil {
				return fmt.Errorf("row %d: %w", row+i+1, err)
			}
			if !f(in) {
				return errEnough
			}
			return nil
		})
		if err != nil {
			return err
		}
		row += len(ids)
	}
	return nil
}

// batch is how many rows are read at once: a row may have megabytes.
const batch = 8

// rows calls f with the first n rows of a group.
func (t *table) rows(ctx context.Context, g, n int, f func(i int, values parquet.Row) error) error {
	if n == 0 {
		return nil
	}
	if err := t.checkRows(ctx, g); err != nil {
		return err
	}
	var rows parquet.Rows
	err := guard(func() error {
		rows = t.file.RowGroups()[g].Rows()
		return nil
	})
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // read only
	buf := make([]parquet.Row, batch)
	for i := 0; i < n; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		got := 0
		ended := false
		err := guard(func() (err error) {
			got, err = rows.ReadRows(buf) // gives rows and io.EOF together
			if ended = errors.Is(err, io.EOF); ended {
				return nil
			}
			return err
		})
		if err != nil {
			return damaged(err)
		}
		for _, row := range buf[:min(got, n-i)] {
			if err := f(i, row); err != nil {
				return err
			}
			i++
		}
		if i < n && (ended || got == 0) {
			return damaged(fmt.Errorf("a group of rows ends after %d of %d", i, n))
		}
	}
	return nil
}
