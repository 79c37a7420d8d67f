package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// parquetRows calls f with the wanted rows. It skips row groups without any.
func (sh *shard) parquetRows(ctx context.Context, want func(string) bool, f func(Instance) bool) error {
	t, err := sh.openTable()
	if err != nil {
		return err
	}
	row := 0 // rows before this group
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
				err = errors.New("the id column differs from the row")
			}
			if err != nil {
				return fmt.Errorf("row %d: %w", row+i+1, err)
			}
			if !f(in) {
				return errStop
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

// batchSize is how many rows to read at once: a row may have megabytes.
const batchSize = 8

// rows calls f with the first n rows of a row group.
func (t *table) rows(ctx context.Context, g, n int, f func(i int, values parquet.Row) error) error {
	if n == 0 {
		return nil
	}
	if err := t.checkRows(ctx, g); err != nil {
		return err
	}
	var rows parquet.Rows
	err := recoverPanic(func() error {
		rows = t.file.RowGroups()[g].Rows()
		return nil
	})
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // read only
	buf := make([]parquet.Row, batchSize)
	for i := 0; i < n; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		got := 0
		ended := false
		err := recoverPanic(func() (err error) {
			got, err = rows.ReadRows(buf) // may return rows together with io.EOF
			if ended = errors.Is(err, io.EOF); ended {
				return nil
			}
			return err
		})
		if err != nil {
			return damagedError(err)
		}
		for _, row := range buf[:min(got, n-i)] {
			if err := f(i, row); err != nil {
				return err
			}
			i++
		}
		if i < n && (ended || got == 0) {
			return damagedError(fmt.Errorf("a row group ends after %d of %d rows", i, n))
		}
	}
	return nil
}
