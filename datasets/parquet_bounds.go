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

// Limits for the sizes that a parquet file declares: the library allocates memory for
// these sizes. Real datasets are far below the limits. Compressed bytes have no limit,
// because downloads have checksums.
const (
	maxFooter = 256 << 20 // bytes
	maxList   = 1 << 20   // elements of a list in the footer, such as columns of row groups
	maxLeaves = 1000      // leaf columns
	// maxOpen limits the sum of the largest pages of all columns of a row group, in
	// bytes: the library assembles rows from one page per column. Pages usually have
	// about a megabyte, or some hundred megabytes for large rows.
	maxOpen   = 512 << 20
	maxValues = 1 << 24 // per page
)

// sizeHint is the hint for a valid file with too large parts.
const sizeHint = "; write it with smaller groups of rows, or as .jsonl"

var (
	errTruncated = errors.New("not a parquet file, or cut off; fetch it again")
	errTooLarge  = fmt.Errorf("its pages unpack to more than %d MB at a time"+sizeHint, maxOpen>>20)
)

// checkFooter decodes the footer with limits, before the library decodes it without
// limits: a Go program cannot recover from running out of memory.
func checkFooter(r io.ReaderAt, size int64) error {
	var tail [8]byte
	if size < 12 {
		return errTruncated
	}
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return fmt.Errorf("read the footer: %w", err)
	}
	length := int64(binary.LittleEndian.Uint32(tail[:4]))
	switch {
	case string(tail[4:]) == "PARE":
		return errors.New("an encrypted parquet file; mini cannot read it")
	case string(tail[4:]) != "PAR1" || length > size-12:
		return errTruncated
	case length > maxFooter:
		return fmt.Errorf("the footer is longer than %d MB; write it without statistics, or as .jsonl", maxFooter>>20)
	}
	footer := make([]byte, length)
	if _, err := r.ReadAt(footer, size-8-length); err != nil {
		return fmt.Errorf("read the footer: %w", err)
	}
	var meta format.FileMetaData
	if err := decodeThrift(bytes.NewReader(footer), &meta); err != nil {
		return parquetError(err)
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

// boundedLists is a thrift.Reader that rejects lists which declare more than maxList
// elements: the decoder allocates memory for all elements before it reads the first.
type boundedLists struct{ thriftReader }

// thriftReader gives the embedded field another name: thrift.Reader has a method Reader.
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
	return recoverPanic(func() error {
		return thrift.NewDecoder(boundedLists{new(thrift.CompactProtocol).NewReader(r)}).Decode(v)
	})
}

// checkRows checks the page headers of all columns of a row group. It must be called before
// the library reads the pages.
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

// checkPages checks the page headers of a column in a row group against the limits, and
// returns the uncompressed size of the largest page, in bytes.
func (t *table) checkPages(ctx context.Context, group, column int) (largest int64, err error) {
	var chunk *format.ColumnMetaData
	if err := recoverPanic(func() error {
		chunk = &t.file.Metadata().RowGroups[group].Columns[column].MetaData
		return nil
	}); err != nil {
		return 0, damagedError(err)
	}
	start, size := chunk.DataPageOffset, chunk.TotalCompressedSize
	if chunk.DictionaryPageOffset != 0 {
		start = chunk.DictionaryPageOffset
	}
	if start < 0 || size < 0 || start > t.size-size {
		return 0, errTruncated
	}
	pages := io.NewSectionReader(t.from, start, size)
	buf := bufio.NewReaderSize(nil, 4096)
	for offset := int64(0); offset < size; {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		rest := io.NewSectionReader(pages, offset, size-offset)
		buf.Reset(rest)
		var h format.PageHeader
		if err := decodeThrift(buf, &h); err != nil {
			return 0, damagedError(fmt.Errorf("page header: %w", err))
		}
		read, err := rest.Seek(0, io.SeekCurrent)
		if err != nil {
			return 0, fmt.Errorf("read page header: %w", err)
		}
		offset += read - int64(buf.Buffered())
		if err := checkPage(&h, size-offset); err != nil {
			return 0, err
		}
		offset += int64(h.CompressedPageSize)
		largest = max(largest, int64(h.UncompressedPageSize))
	}
	return largest, nil
}

// checkPage checks the sizes in a page header; left is how many bytes of the column chunk
// follow the header.
func checkPage(h *format.PageHeader, left int64) error {
	v2 := h.DataPageHeaderV2.V
	values := max(h.DataPageHeader.V.NumValues, v2.NumValues, h.DictionaryPageHeader.V.NumValues)
	levels := int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength)
	switch {
	case h.CompressedPageSize < 0, h.UncompressedPageSize < 0:
		return damagedError(errors.New("a page of negative size"))
	case h.UncompressedPageSize > maxOpen:
		return errTooLarge
	case int64(h.CompressedPageSize) > left, levels > int64(h.CompressedPageSize):
		return errTruncated
	case values > maxValues:
		return fmt.Errorf("a page of more than %d values"+sizeHint, maxValues)
	}
	return nil
}
