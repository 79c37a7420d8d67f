package datasets

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Bounds of the pages of a group of rows. A page is unpacked as a whole, and
// the rows are put together from one page of every column at a time.
const (
	// maxHeader is in bytes of a page's description. Its statistics can have
	// the largest value and the smallest, each twice: room for 64 MB of one.
	maxHeader = 4*64<<20 + 1<<20
	// maxOpen is in bytes. Writers cut pages at about a megabyte; those of
	// large rows have some hundred.
	maxOpen   = 512 << 20
	maxValues = 1 << 24 // in a page, and in the lists of the rows that are read at once
)

// load is what a column of a group of rows takes while it is read.
type load struct {
	bytes  int64 // its largest page with its description, and its dictionary
	values int64 // of all pages
}

// checkRows looks at the pages of all columns of a group before any is read.
func (t *table) checkRows(ctx context.Context, group int) error {
	rows := t.file.RowGroups()[group].NumRows()
	var sum load
	var lists []int // columns that have more values than rows
	for column := range t.root.leaves() {
		l, err := t.checkPages(ctx, group, column)
		if err != nil {
			return err
		}
		sum.bytes += l.bytes
		sum.values += max(0, l.values-rows)
		if l.values > rows {
			lists = append(lists, column)
		}
		if sum.bytes > maxOpen {
			return errTooLarge
		}
	}
	if sum.values <= maxValues {
		return nil
	}
	return t.checkLists(ctx, group, lists) // one row could have them all
}

// advice is for a file that is right, and too large in one of its parts.
const advice = "; write it with smaller groups of rows, or as .jsonl"

var errTooLarge = fmt.Errorf("its pages unpack to more than %d MB at a time"+advice, maxOpen>>20)

// checkPages walks over the pages of a column in a group, and refuses what
// claims more than any machine should give. It reads descriptions only, but
// for gzip, which does not say what it unpacks to.
func (t *table) checkPages(ctx context.Context, group, column int) (load, error) {
	var chunk, first *format.ColumnMetaData
	if err := guard(func() error {
		groups := t.file.Metadata().RowGroups
		chunk = &groups[group].Columns[column].MetaData
		first = &groups[0].Columns[column].MetaData
		return nil
	}); err != nil {
		return load{}, err
	}
	at := chunk.DataPageOffset
	if chunk.DictionaryPageOffset != 0 {
		at = chunk.DictionaryPageOffset
	}
	if at < 0 || chunk.TotalCompressedSize < 0 || at > t.size-chunk.TotalCompressedSize {
		return load{}, errCut
	}
	// The library takes the compression of the first group for that of all.
	w := pageWalk{from: io.NewSectionReader(t.from, at, chunk.TotalCompressedSize), codec: first.Codec, buf: bufio.NewReaderSize(nil, 4096)}
	for w.at < w.from.Size() {
		if ctx.Err() != nil {
			return load{}, context.Cause(ctx)
		}
		if err := w.next(); err != nil {
			return load{}, err
		}
		if w.page+w.dictionary > maxOpen {
			return load{}, errTooLarge
		}
	}
	return load{bytes: w.page + w.dictionary, values: w.values}, nil
}

// pageWalk is a place in the pages of a column.
type pageWalk struct {
	from  *io.SectionReader
	at    int64
	codec format.CompressionCodec
	buf   *bufio.Reader

	page, dictionary int64 // bytes of the largest ones
	values           int64 // in all pages
}

func (w *pageWalk) next() error {
	left := w.from.Size() - w.at
	w.buf.Reset(io.NewSectionReader(w.from, w.at, left))
	length, err := walkThrift(w.buf, left, maxHeader)
	if errors.Is(err, errLong) {
		return fmt.Errorf("a page is described in more than %d MB; write it without statistics of pages, or as .jsonl", maxHeader>>20)
	}
	if err != nil {
		return damaged(fmt.Errorf("page header: %w", err))
	}
	text := make([]byte, length)
	if _, err := w.from.ReadAt(text, w.at); err != nil {
		return fmt.Errorf("read page header: %w", err)
	}
	var h format.PageHeader
	err = guard(func() error {
		return thrift.NewDecoder(new(thrift.CompactProtocol).NewReaderFromBytes(text)).Decode(&h)
	})
	if err != nil {
		return damaged(fmt.Errorf("page header: %w", err))
	}
	w.at += length
	values, err := checkPage(&h, left-length)
	if err != nil {
		return err
	}
	size, err := w.unpacked(&h)
	if err != nil {
		return err
	}
	w.at += int64(h.CompressedPageSize)
	// Beside its bytes a value has levels, and a length or a place in the
	// dictionary.
	size += 10*values + length
	if h.Type == format.DictionaryPage {
		w.dictionary = max(w.dictionary, size)
		return nil
	}
	w.page = max(w.page, size)
	w.values += values
	return nil
}

// checkPage returns how many values a page says it has; left bytes are there
// for it.
func checkPage(h *format.PageHeader, left int64) (int64, error) {
	v1, v2, dictionary := h.DataPageHeader, h.DataPageHeaderV2, h.DictionaryPageHeader
	values := max(v1.V.NumValues, v2.V.NumValues, dictionary.V.NumValues)
	levels := int64(v2.V.RepetitionLevelsByteLength) + int64(v2.V.DefinitionLevelsByteLength)
	switch {
	case h.CompressedPageSize < 0, h.UncompressedPageSize < 0, values < 0, v2.V.RepetitionLevelsByteLength < 0, v2.V.DefinitionLevelsByteLength < 0:
		return 0, errors.New("a page of negative size")
	case v1.Valid != (h.Type == format.DataPage), v2.Valid != (h.Type == format.DataPageV2), dictionary.Valid != (h.Type == format.DictionaryPage):
		return 0, damaged(errors.New("a page of two kinds"))
	case h.UncompressedPageSize > maxOpen:
		return 0, errTooLarge
	case int64(h.CompressedPageSize) > left, levels > int64(h.CompressedPageSize):
		return 0, errCut
	case values > maxValues:
		return 0, fmt.Errorf("a page of more than %d values"+advice, maxValues)
	}
	return int64(values), nil
}
