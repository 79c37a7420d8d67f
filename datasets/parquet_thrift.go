package datasets

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Bounds of the lists in one description. A column in a group of rows is one
// structure and some statistics; 100,000 of those are more than any set has.
const (
	maxItems   = 4 << 20 // in all lists together
	maxStructs = 400_000 // of them structures, which take half a KB each
	maxNesting = 64
)

// errThrift is for bytes that are not what they should be.
var errThrift = errors.New("it is not in Thrift's compact protocol")

// errLong is for a description that may be right, and is longer than allowed.
var errLong = errors.New("a description that is too long")

// walkThrift passes over one structure in Thrift's compact protocol, and
// returns its length in bytes. The library makes room for as many elements as a
// list claims to have before it looks at them, and memory that is not there
// ends a Go program at once; so a claim has to fit into the bytes that are
// left. Of these most may be used, and errLong is for what needs more. The
// protocol is told in Thrift's repository, doc/specs/thrift-compact-protocol.md.
func walkThrift(r *bufio.Reader, left, most int64) (int64, error) {
	w := &walker{r: r, left: left, most: most}
	err := w.structure(0)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return left - w.left, err
}

type walker struct {
	r              *bufio.Reader
	left           int64 // bytes that there are
	most           int64 // bytes that may still be read
	items, structs int
}

// The types of the protocol. A boolean field has its value in its type; in a
// list it is a byte.
const (
	thriftTrue = iota + 1
	thriftFalse
	thriftByte
	thriftInt16
	thriftInt32
	thriftInt64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
	thriftUUID
)

// ReadByte implements io.ByteReader.
func (w *walker) ReadByte() (byte, error) {
	switch {
	case w.left <= 0:
		return 0, io.ErrUnexpectedEOF
	case w.most <= 0:
		return 0, errLong
	}
	b, err := w.r.ReadByte()
	if err == nil {
		w.left--
		w.most--
	}
	return b, err
}

func (w *walker) skip(n int64) error {
	switch {
	case n > w.left:
		return fmt.Errorf("it claims %d bytes where %d are left", n, w.left)
	case n > w.most:
		return errLong
	}
	_, err := w.r.Discard(int(n))
	w.left -= n
	w.most -= n
	return err
}

// claim reads a number of elements, each of which has a byte at least.
func (w *walker) claim() (int64, error) {
	n, err := binary.ReadUvarint(w)
	switch {
	case err != nil:
		return 0, err
	case n > uint64(max(0, w.left)):
		return 0, fmt.Errorf("it claims %d elements where %d bytes are left", n, w.left)
	case n > uint64(max(0, w.most)):
		return 0, errLong
	}
	return int64(n), nil // not more than left
}

func (w *walker) structure(depth int) error {
	if depth > maxNesting {
		return errThrift
	}
	for {
		b, err := w.ReadByte()
		if err != nil || b == 0 {
			return err
		}
		if b>>4 == 0 { // the number of the field follows
			if _, err := binary.ReadUvarint(w); err != nil {
				return err
			}
		}
		kind := b & 0xf
		if kind == thriftTrue || kind == thriftFalse {
			continue
		}
		if err := w.value(kind, depth); err != nil {
			return err
		}
	}
}

func (w *walker) value(kind byte, depth int) error {
	switch kind {
	case thriftTrue, thriftFalse, thriftByte:
		return w.skip(1)
	case thriftInt16, thriftInt32, thriftInt64:
		_, err := binary.ReadUvarint(w)
		return err
	case thriftDouble:
		return w.skip(8)
	case thriftUUID:
		return w.skip(16)
	case thriftBinary:
		n, err := w.claim()
		if err != nil {
			return err
		}
		return w.skip(n)
	case thriftList, thriftSet:
		return w.list(depth + 1)
	case thriftMap:
		return w.pairs(depth + 1)
	case thriftStruct:
		return w.structure(depth + 1)
	}
	return errThrift
}

func (w *walker) list(depth int) error {
	b, err := w.ReadByte()
	if err != nil {
		return err
	}
	n := int64(b >> 4)
	if n == 0xf { // a longer list: its length follows
		if n, err = w.claim(); err != nil {
			return err
		}
	}
	return w.elements(n, depth, b&0xf)
}

func (w *walker) pairs(depth int) error {
	n, err := w.claim()
	if err != nil || n == 0 {
		return err
	}
	b, err := w.ReadByte()
	if err != nil {
		return err
	}
	return w.elements(n, depth, b>>4, b&0xf)
}

// elements passes over n elements, each of which has values of these types.
func (w *walker) elements(n int64, depth int, kinds ...byte) error {
	if depth > maxNesting {
		return errThrift
	}
	for range n {
		for _, kind := range kinds {
			w.items++
			if kind == thriftStruct {
				w.structs++
			}
			if w.items > maxItems || w.structs > maxStructs {
				return errors.New("it has more lists than any dataset needs")
			}
			if err := w.value(kind, depth); err != nil {
				return err
			}
		}
	}
	return nil
}
