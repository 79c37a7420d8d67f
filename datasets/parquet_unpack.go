package datasets

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"
)

var errPacked = errors.New("damaged: a page is not compressed as it says")

// unpacked is how many bytes a page takes. The library unpacks as much as there
// is, whatever the page's header says of it: what counts is what the compressed
// bytes say themselves.
func (w *pageWalk) unpacked(h *format.PageHeader) (int64, error) {
	claim := max(int64(h.UncompressedPageSize), int64(h.CompressedPageSize))
	levels := int64(0)
	if v2 := h.DataPageHeaderV2; v2.Valid { // its levels are never compressed
		if v2.V.IsCompressed.Valid && !v2.V.IsCompressed.V {
			return claim, nil
		}
		levels = int64(v2.V.RepetitionLevelsByteLength) + int64(v2.V.DefinitionLevelsByteLength)
	}
	data := io.NewSectionReader(w.from, w.at+levels, int64(h.CompressedPageSize)-levels)
	if data.Size() == 0 {
		return claim, nil
	}
	var size int64
	var err error
	switch w.codec {
	case format.Uncompressed:
	case format.Snappy:
		size, err = snappySize(data)
	case format.Zstd:
		size, err = zstdSize(data)
	case format.Gzip:
		size, err = gzipSize(data)
	default: // of these the library takes any amount
		return 0, fmt.Errorf("compressed with %s, which mini does not read; write it with Snappy, zstd or gzip", w.codec)
	}
	if err == nil && size > maxOpen {
		err = errTooLarge
	}
	return max(claim, size+levels), err
}

// snappySize reads the length that a block of Snappy begins with.
func snappySize(data *io.SectionReader) (int64, error) {
	var start [binary.MaxVarintLen64]byte
	n, _ := data.ReadAt(start[:], 0) // a read that fails gives too few bytes
	size, used := binary.Uvarint(start[:n])
	if used <= 0 {
		return 0, errPacked
	}
	return int64(min(size, maxOpen+1)), nil
}

// gzipSize unpacks: the length at the end of a gzip file is only a hint.
func gzipSize(data *io.SectionReader) (int64, error) {
	z, err := gzip.NewReader(data)
	if err != nil {
		return 0, errPacked
	}
	n, err := io.Copy(io.Discard, io.LimitReader(z, maxOpen+1))
	if err != nil {
		return 0, errPacked
	}
	return n, nil
}

// zstdSize adds up what the frames say that they unpack to, as in RFC 8878.
func zstdSize(data *io.SectionReader) (int64, error) {
	total := int64(0)
	for at := int64(0); at < data.Size() && total <= maxOpen; {
		size, length, err := zstdFrame(data, at)
		if err != nil {
			return 0, err
		}
		total += size
		at += length
	}
	return total, nil
}

// zstdFrame returns what a frame unpacks to, and its length.
func zstdFrame(data *io.SectionReader, at int64) (size, length int64, err error) {
	var b [18]byte // the longest header
	n, _ := data.ReadAt(b[:], at)
	if n < 8 {
		return 0, 0, errPacked
	}
	switch magic := binary.LittleEndian.Uint32(b[:]); {
	case magic&^0xf == 0x184d2a50: // to be skipped
		return 0, 8 + int64(binary.LittleEndian.Uint32(b[4:])), nil
	case magic != 0xfd2fb528:
		return 0, 0, errPacked
	}
	flags := b[4]
	single := flags>>5&1 == 1
	header := 5 + []int{0, 1, 2, 4}[flags&3] // with the number of a dictionary
	if !single {
		header++ // the size of the window
	}
	said := []int{0, 2, 4, 8}[flags>>6]
	if said == 0 && single {
		said = 1
	}
	var field [8]byte
	copy(field[:], b[header:header+said])
	known := binary.LittleEndian.Uint64(field[:])
	if said == 2 {
		known += 256
	}
	blocks, length, err := zstdBlocks(data, at+int64(header+said))
	if err != nil {
		return 0, 0, err
	}
	length += int64(header + said)
	if flags>>2&1 == 1 {
		length += 4 // a checksum
	}
	if said > 0 { // the library holds it to that
		return int64(min(known, maxOpen+1)), length, nil
	}
	return blocks, length, nil
}

// zstdBlocks returns what the blocks of a frame unpack to at most, and their
// length.
func zstdBlocks(data *io.SectionReader, at int64) (most, length int64, err error) {
	const block = 128 << 10 // bytes, the most that a compressed one may have
	for start := at; ; {
		var b [4]byte
		if _, err := data.ReadAt(b[:3], at); err != nil {
			return 0, 0, errPacked
		}
		header := binary.LittleEndian.Uint32(b[:])
		size := int64(header >> 3)
		at += 3
		switch header >> 1 & 3 {
		case 0: // as it is
			most += size
			at += size
		case 1: // one byte, again and again
			most += size
			at++
		case 2:
			most += block
			at += size
		default:
			return 0, 0, errPacked
		}
		if most > maxOpen {
			most = maxOpen + 1
		}
		if header&1 == 1 {
			return most, at - start, nil
		}
	}
}
