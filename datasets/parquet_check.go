package datasets

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Bounds of what a parquet file may claim before the library makes room for it.
// Those of real sets are far below: a description of some hundred KB, ten to
// thirty columns, pages of some MB.
const (
	maxFooter  = 64 << 20 // bytes
	maxColumns = 10_000   // with those within columns
	maxDepth   = 50       // of columns within columns
	maxChunks  = 5_000_000
	maxPage    = 1 << 30 // bytes, unpacked; writers cut pages by rows, and rows may be large
	maxValues  = 1 << 24 // in a page
)

// errCut is for a file that is shorter than it should be.
var errCut = errors.New("not a parquet file, or cut off; fetch it again")

// checkFooter looks at the description at the end of the file before the
// library does, whose memory grows with the square of the depth of columns.
func checkFooter(r io.ReaderAt, size int64) error {
	var tail [8]byte
	if size < 12 {
		return errCut
	}
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return fmt.Errorf("read the description: %w", err)
	}
	length := int64(binary.LittleEndian.Uint32(tail[:4]))
	switch {
	case string(tail[4:]) == "PARE":
		return errors.New("an encrypted parquet file; mini cannot read it")
	case string(tail[4:]) != "PAR1" || length > size-12:
		return errCut
	case length > maxFooter:
		return fmt.Errorf("the description of the columns is longer than %d MB", maxFooter>>20)
	}
	footer := make([]byte, length)
	if _, err := r.ReadAt(footer, size-8-length); err != nil {
		return fmt.Errorf("read the description: %w", err)
	}
	var meta format.FileMetaData
	err := guard(func() error {
		return thrift.NewDecoder(new(thrift.CompactProtocol).NewReaderFromBytes(footer)).Decode(&meta)
	})
	if err != nil {
		return notParquet(err)
	}
	return checkSchema(&meta)
}

func checkSchema(meta *format.FileMetaData) error {
	if len(meta.Schema) > maxColumns || len(meta.RowGroups)*len(meta.Schema) > maxChunks {
		return fmt.Errorf("%d columns in %d groups of rows: more than any dataset", len(meta.Schema), len(meta.RowGroups))
	}
	if meta.NumRows > maxRows {
		return fmt.Errorf("more than %d rows", maxRows)
	}
	var open []int32 // children yet to come, at each depth
	for _, e := range meta.Schema {
		if len(open) > maxDepth {
			return fmt.Errorf("columns within columns, more than %d deep", maxDepth)
		}
		if e.NumChildren.Valid && e.NumChildren.V > 0 {
			open = append(open, e.NumChildren.V)
			continue
		}
		for len(open) > 0 {
			if open[len(open)-1]--; open[len(open)-1] > 0 {
				break
			}
			open = open[:len(open)-1]
		}
	}
	for i := range meta.RowGroups {
		// The library finds the columns of a group by this number.
		if n := meta.RowGroups[i].NumRows; n < 0 || n > maxRows {
			return fmt.Errorf("a group says that it has %d rows", n)
		}
	}
	return nil
}

// checkPages walks over the pages of a column in a group, and refuses those
// that claim more than any machine should give. It reads their headers only.
func (t *table) checkPages(group, column int) error {
	var chunk *format.ColumnMetaData
	if err := guard(func() error {
		chunk = &t.file.Metadata().RowGroups[group].Columns[column].MetaData
		return nil
	}); err != nil {
		return err
	}
	at := chunk.DataPageOffset
	if chunk.DictionaryPageOffset != 0 {
		at = chunk.DictionaryPageOffset
	}
	if at < 0 || chunk.TotalCompressedSize < 0 || at > t.size-chunk.TotalCompressedSize {
		return errCut
	}
	section := io.NewSectionReader(t.from, at, chunk.TotalCompressedSize)
	buf := bufio.NewReaderSize(nil, 512)
	for offset := int64(0); offset < section.Size(); {
		if _, err := section.Seek(offset, io.SeekStart); err != nil {
			return err
		}
		buf.Reset(section)
		var header format.PageHeader
		counted := &countingReader{r: buf}
		err := guard(func() error {
			return thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(counted)).Decode(&header)
		})
		if err != nil {
			return damaged(fmt.Errorf("page header: %w", err))
		}
		if err := checkPage(&header); err != nil {
			return err
		}
		offset += counted.n + int64(header.CompressedPageSize)
	}
	return nil
}

func checkPage(h *format.PageHeader) error {
	values := max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues)
	switch {
	case h.CompressedPageSize < 0 || h.UncompressedPageSize < 0 || values < 0:
		return errors.New("a page of negative size")
	case h.CompressedPageSize > maxPage || h.UncompressedPageSize > maxPage:
		return fmt.Errorf("a page of more than %d MB", maxPage>>20)
	case values > maxValues:
		return fmt.Errorf("a page of more than %d values", maxValues)
	}
	return nil
}

// countingReader counts what is taken from a buffer. It is an io.ByteReader,
// so that nothing is read ahead.
type countingReader struct {
	r *bufio.Reader
	n int64
}

// Read implements io.Reader.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// ReadByte implements io.ByteReader.
func (c *countingReader) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}
