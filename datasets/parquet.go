package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/parquet-go/parquet-go"
)

// idRow is the id column of a parquet file, which is read separately.
type idRow struct {
	ID string `parquet:"instance_id,optional"`
}

// readParquet calls want with every id, then f with the wanted rows. It skips the pages of the
// others, so that rows may be larger than the memory.
func readParquet(ctx context.Context, sh *shard, want func(int, string) (bool, error), f func(Instance) error) error {
	var file *parquet.File
	var ids *parquet.GenericReader[idRow]
	err := recoverPanic(func() (err error) {
		// The page index has the largest and smallest values, which may be whole rows.
		if file, err = parquet.OpenFile(sh.from, sh.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true)); err == nil {
			ids = parquet.NewGenericReader[idRow](file)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("not a parquet file, or damaged; fetch it again (%w)", err)
	}
	defer ids.Close() //nolint:errcheck // read only
	if err := checkIDColumn(file); err != nil {
		return err
	}
	var wanted []int64
	batch := make([]idRow, 512)
	for row := int64(0); row < file.NumRows(); {
		n := 0
		err := recoverPanic(func() (err error) {
			n, err = ids.Read(batch)
			return err
		})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && !errors.Is(err, io.EOF) || n == 0 {
			return fmt.Errorf("after row %d: %w", row, damagedError(err))
		}
		for _, r := range batch[:n] {
			if err := CheckID(r.ID); err != nil {
				return fmt.Errorf("row %d: %w", row+1, err)
			}
			ok, err := want(int(row)+1, r.ID)
			if err != nil {
				return err
			}
			if ok {
				wanted = append(wanted, row)
			}
			row++
		}
	}
	return parquetRows(ctx, file, wanted, f)
}

// checkIDColumn returns an error if the file has no column of ids.
func checkIDColumn(file *parquet.File) error {
	var names []string
	for _, c := range file.Root().Columns() {
		if c.Name() == "instance_id" && c.Leaf() && !c.Repeated() && c.Type().Kind() == parquet.ByteArray {
			return nil
		}
		names = append(names, c.Name())
	}
	return fmt.Errorf("no text column instance_id; the columns are %s", joinNames(names))
}

// parquetRows calls f with the rows of these numbers, which are sorted.
func parquetRows(ctx context.Context, file *parquet.File, wanted []int64, f func(Instance) error) error {
	if len(wanted) == 0 {
		return nil
	}
	rows := parquet.NewGenericReader[any](file)
	defer rows.Close() //nolint:errcheck // read only
	buf := make([]parquet.Row, 1)
	next := int64(0)
	for _, row := range wanted {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		columns := map[string]any{}
		err := recoverPanic(func() error {
			if row != next {
				if err := rows.SeekToRow(row); err != nil {
					return err
				}
			}
			if n, err := rows.ReadRows(buf); n == 0 {
				return err
			}
			return file.Schema().Reconstruct(&columns, buf[0])
		})
		if err != nil {
			return fmt.Errorf("row %d: %w", row+1, damagedError(err))
		}
		next = row + 1
		in, err := parquetInstance(file, columns)
		if err != nil {
			return fmt.Errorf("row %d: %w", row+1, err)
		}
		if err := f(in); err != nil {
			return err
		}
	}
	return nil
}

func damagedError(err error) error {
	if err == nil {
		err = io.ErrNoProgress
	}
	return fmt.Errorf("damaged; fetch it again (%w)", err)
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
