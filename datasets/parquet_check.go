package datasets

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Bounds of what a parquet file may claim before the library makes room for it.
// Those of real sets are far below: a description of some hundred KB, ten to
// thirty columns, pages of some MB. But a writer that keeps statistics puts the
// largest value of every column and group there, up to four times.
const (
	maxFooter  = maxHeader // bytes
	maxColumns = 10_000    // with those within columns
	maxLeaves  = 1000      // columns with values of their own
	maxDepth   = 50        // of columns within columns
	maxChunks  = 1_000_000
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
		return fmt.Errorf("the description of the columns is longer than %d MB; write it without statistics, or as .jsonl", maxFooter>>20)
	}
	footer := make([]byte, length)
	if _, err := r.ReadAt(footer, size-8-length); err != nil {
		return fmt.Errorf("read the description: %w", err)
	}
	if _, err := walkThrift(bufio.NewReader(bytes.NewReader(footer)), length, length); err != nil {
		return notParquet(err)
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
	leaves := 0
	var open []int32 // children yet to come, at each depth
	for _, e := range meta.Schema {
		if len(open) > maxDepth {
			return fmt.Errorf("columns within columns, more than %d deep", maxDepth)
		}
		if e.NumChildren.Valid && e.NumChildren.V > 0 {
			open = append(open, e.NumChildren.V)
			continue
		}
		if leaves++; leaves > maxLeaves {
			return fmt.Errorf("more than %d columns: mini reads none of so many", maxLeaves)
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
