package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// checkLists bounds the elements of the rows that are read at once, in these
// columns of a group together. Where a row ends is told by its values only, so
// that the pages are unpacked for it, one at a time; checkPages has been there.
func (t *table) checkLists(ctx context.Context, group int, columns []int) error {
	sum := int64(0)
	for _, column := range columns {
		n, err := t.elements(ctx, group, column)
		if err != nil {
			return err
		}
		if sum += n; sum > maxValues {
			return fmt.Errorf("lists of more than %d elements in %d rows; leave the longest out", maxValues, batch)
		}
	}
	return nil
}

// elements is the most values that a column has in as many rows on end as are
// read at once.
func (t *table) elements(ctx context.Context, group, column int) (int64, error) {
	var w window
	err := guard(func() error {
		pages := t.file.RowGroups()[group].ColumnChunks()[column].Pages()
		defer pages.Close() //nolint:errcheck // read only
		for ctx.Err() == nil {
			page, err := pages.ReadPage()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			levels := page.RepetitionLevels()
			if levels == nil { // no lists after all: more values than rows is damage
				parquet.Release(page)
				return errLevels
			}
			w.add(levels)
			parquet.Release(page)
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return 0, damaged(err)
	}
	return w.most, nil
}

// window counts the values of the last rows, of which the newest goes on.
type window struct {
	counts    [batch]int64
	at        int
	sum, most int64
}

// add takes the repetition levels of more values; 0 begins a row.
func (w *window) add(levels []byte) {
	for _, level := range levels {
		if level == 0 {
			w.at = (w.at + 1) % batch
			w.sum -= w.counts[w.at]
			w.counts[w.at] = 0
		}
		w.counts[w.at]++
		w.sum++
		w.most = max(w.most, w.sum)
	}
}
