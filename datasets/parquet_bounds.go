package datasets

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Bounds of what a parquet file may claim before the library makes room for it.
// Those of real sets are far below. The compressed bytes themselves are trusted:
// downloads are checked by their checksums.
const (
	maxFooter = 256 << 20 // bytes
	maxList   = 1 << 20   // elements of a list in the footer, such as columns in groups of rows
	maxLeaves = 1000      // columns with values of their own
	// maxOpen bounds the largest pages of all columns of a group together, in
	// bytes: rows are put together from one page of every column at a time.
	// Writers cut pages at about a megabyte; those of large rows have some hundred.
	maxOpen   = 512 << 20
	maxValues = 1 << 24 // in a page
)

// advice is for a file that is right, and too large in one of its parts.
const advice = "; write it with smaller groups of rows, or as .jsonl"

var (
	errCut      = errors.New("not a parquet file, or cut off; fetch it again")
	errTooLarge = fmt.Errorf("its pages unpack to more than %d MB at a time"+advice, maxOpen>>20)
)

// checkFooter decodes the footer with bounds before the library decodes it
// without: memory that is not there ends a Go program at once.
func checkFooter(r io.ReaderAt, size int64) error {
	var tail [8]byte
	if size < 12 {
		return errCut
	}
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return fmt.Errorf("read the footer: %w", err)
	}
	length := int64(binary.LittleEndian.Uint32(tail[:4]))
	switch {
	case string(tail[4:]) == "PARE":
		return errors.New("an encrypted parquet file; mini cannot read it")
	case string(tail[4:]) != "PAR1" || length > size-12:
		return errCut
	case length > maxFooter:
		return fmt.Errorf("the footer is longer than %d MB; write it without statistics, or as .jsonl", maxFooter>>20)
	}
	footer := make([]byte, length)
	if _, err := r.ReadAt(footer, size-8-length); err != nil {
		return fmt.Errorf("read the footer: %w", err)
	}
	var meta format.FileMetaData
	if err := decodeThrift(bytes.NewReader(footer), &meta); err != nil {
		return notParquet(err)
	}
	if meta.NumRows > maxRows {
		return fmt.Errorf("more than %d rows", maxRows)
	}
	if leaves := len(meta.Schema); leaves > 0 {
		for _, e := range meta.Schema {
			if e.NumChildren.V > 0 {
				leaves--
			}
		}
		if leaves > maxLeaves {
			return fmt.Errorf("more than %d columns: mini reads none of so many", maxLeaves)
		}
	}
	return nil
}

// boundedLists refuses a list that claims more elements than any dataset needs:
// the decoder makes room for all of them before it reads the first.
type boundedLists struct{ thriftReader }

// thriftReader has another name than the method that it has.
type thriftReader = thrift.Reader

// ReadList implements thrift.Reader.
func (r boundedLists) ReadList() (thrift.List, error) {
	l, err := r.thriftReader.ReadList()
	if err == nil && (l.Size < 0 || l.Size > maxList) {
		err = fmt.Errorf("a list claims %d elements", l.Size)
	}
	return l, err
}

func decodeThrift(r io.Reader, v any) error {
	return guard(func() error {
		return thrift.NewDecoder(boundedLists{new(thrift.CompactProtocol).NewReader(r)}).Decode(v)
	})
}

// checkRows looks at the page headers of all columns of a group before any page
// is read.
func (t *table) checkRows(ctx context.Context, group int) error {
	sum := int64(0)
	for column := range t.file.Schema().Columns() {
		largest, err := t.checkPages(ctx, group, column)
		if err != nil {
			return err
		}
		if sum += largest; sum > maxOpen {
			return errTooLarge
		}
	}
	return nil
}

// checkPages reads the page headers of a column in a group, refuses what claims
// more than any machine should give, and returns the size of the largest page.
func (t *table) checkPages(ctx context.Context, group, column int) (largest int64, err error) {
	var chunk *format.ColumnMetaData
	if err := guard(func() error {
		chunk = &t.file.Metadata().RowGroups[group].Columns[column].MetaData
		return nil
	}); err != nil {
		return 0, damaged(err)
	}
	start, size := chunk.DataPageOffset, chunk.TotalCompressedSize
	if chunk.DictionaryPageOffset != 0 {
		start = chunk.DictionaryPageOffset
	}
	if start < 0 || size < 0 || start > t.size-size {
		return 0, errCut
	}
	pages := io.NewSectionReader(t.from, start, size)
	buf := bufio.NewReaderSize(nil, 4096)
	for at := int64(0); at < size; {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		rest := io.NewSectionReader(pages, at, size-at)
		buf.Reset(rest)
		var h format.PageHeader
		if err := decodeThrift(buf, &h); err != nil {
			return 0, damaged(fmt.Errorf("page header: %w", err))
		}
		read, err := rest.Seek(0, io.SeekCurrent)
		if err != nil {
			return 0, fmt.Errorf("read page header: %w", err)
		}
		at += read - int64(buf.Buffered())
		if err := checkPage(&h, size-at); err != nil {
			return 0, err
		}
		at += int64(h.CompressedPageSize)
		largest = max(largest, int64(h.UncompressedPageSize))
	}
	return largest, nil
}

// checkPage refuses a page that claims too much, or more than the left bytes.
func checkPage(h *format.PageHeader, left int64) error {
	v2 := h.DataPageHeaderV2.V
	values := max(h.DataPageHeader.V.NumValues, v2.NumValues, h.DictionaryPageHeader.V.NumValues)
	levels := int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength)
	switch {
	case h.CompressedPageSize < 0, h.UncompressedPageSize < 0:
		return damaged(errors.New("a page of negative size"))
	case h.UncompressedPageSize > maxOpen:
		return errTooLarge
	case int64(h.CompressedPageSize) > left, levels > int64(h.CompressedPageSize):
		return errCut
	case values > maxValues:
		return fmt.Errorf("a page of more than %d values"+advice, maxValues)
	}
	return nil
}
