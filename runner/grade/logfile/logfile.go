// Package logfile reads saved logs, plain or packed by gzip, each into one piece
// of memory of the right size. Logs are what the tests of strangers print: what
// is no file, or too large, is an error before it costs memory.
//
//	data, err := logfile.Read("test_output.txt.gz", logfile.Most)
package logfile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Most is how long a log may be, unpacked, in bytes.
const Most = 1 << 30

// ErrTooLong is wrapped by the error for a log that is longer than it may be.
var ErrTooLong = errors.New("too long")

// ErrSize says that a packed log did not have the size that it claims. Its Size
// is known now, and it can be read.
var ErrSize = errors.New("not of the size that the file claims")

// File is a log that is open.
type File struct {
	f      *os.File
	packed bool
	size   int64 // of the text
	most   int64
}

// Open opens a log of at most so many bytes. Names that end in .gz are
// unpacked. The error wraps fs.ErrNotExist, ErrTooLong or is another one; it
// names the file.
func Open(path string, most int64) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would make the opening wait
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a file")}
	}
	f, err := os.Open(path) //nolint:gosec // reading what the caller names is what this is for
	if err != nil {
		return nil, err
	}
	return New(f, most)
}

// New is Open for a plain file that is open. The File closes it, and so does an
// error.
func New(f *os.File, most int64) (*File, error) {
	log := &File{f: f, packed: strings.HasSuffix(f.Name(), ".gz"), most: most}
	info, err := f.Stat()
	if err == nil {
		log.size = info.Size()
	}
	if log.packed && err == nil {
		log.size, err = log.claimed(info.Size())
	}
	if err == nil && log.size > most {
		err = tooLong(most)
	}
	if err != nil {
		return nil, errors.Join(log.wrong(err), f.Close())
	}
	return log, nil
}

func tooLong(most int64) error { return fmt.Errorf("%w: more than %d MiB", ErrTooLong, most>>20) }

// Size is how much memory reading takes, in bytes: how long the text is, as
// far as that is known. A file that is packed can be wrong about it, see Read.
func (l *File) Size() int64 { return l.size }

// Close closes the file.
func (l *File) Close() error { return l.f.Close() }

// Reader reads it from its start. The reader fails with ErrSize instead of
// giving more than Size bytes; then begin again.
func (l *File) Reader() (io.Reader, error) {
	if !l.packed {
		return io.NewSectionReader(l.f, 0, l.size), nil // it may have become longer or shorter
	}
	r, err := l.unpack()
	if err != nil {
		return nil, l.wrong(err)
	}
	return &bounded{log: l, r: r, left: l.size}, nil
}

// bounded is a packed log that is held to its size.
type bounded struct {
	log  *File
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, b.end()
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.log.wrong(err)
	}
	return n, err
}

// end looks whether there is more. The size is then found out, so that it is
// known when the log is read again.
func (b *bounded) end() error {
	n, err := io.ReadFull(b.r, make([]byte, 1))
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return io.EOF
	case n == 0:
		return b.log.wrong(err)
	}
	if b.log.size, err = b.log.counted(); err != nil {
		return b.log.wrong(err)
	}
	return ErrSize
}

// Of gzip: the fewest bytes that a file has, and how many times longer than
// the file a text can be.
const (
	leastPacked = 18
	mostPacking = 1032
)

// claimed is the size of the text, which a packed file has at its end. What
// cannot be true is counted instead.
func (l *File) claimed(packed int64) (int64, error) {
	if packed < leastPacked {
		return 0, errNotPacked
	}
	var end [4]byte
	if _, err := l.f.ReadAt(end[:], packed-int64(len(end))); err != nil {
		return 0, err
	}
	size := int64(binary.LittleEndian.Uint32(end[:]))
	if size > l.most || size > packed*mostPacking {
		return l.counted()
	}
	return size, nil
}

// counted unpacks the text only to see how long it is, and stops where that is
// too long.
func (l *File) counted() (int64, error) {
	r, err := l.unpack()
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r, l.most+1))
	if err == nil && n > l.most {
		err = tooLong(l.most)
	}
	return n, err
}

func (l *File) unpack() (io.Reader, error) {
	if _, err := l.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return gzip.NewReader(l.f)
}

var errNotPacked = errors.New("not a gzip file")

// wrong says what is the matter with a file.
func (l *File) wrong(err error) error {
	switch {
	case errors.Is(err, gzip.ErrHeader):
		err = errNotPacked
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the gzip file is cut off")
	}
	return fmt.Errorf("read %s: %w", l.f.Name(), err)
}

// Read reads the log at path. The error is one of Open's, or says what is
// wrong with the file.
func Read(path string, most int64) ([]byte, error) {
	l, err := Open(path, most)
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // read only
	data, err := l.all()
	if errors.Is(err, ErrSize) {
		data, err = l.all()
	}
	return data, err
}

func (l *File) all() ([]byte, error) {
	r, err := l.Reader()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(l.size) + bytes.MinRead) // or it grows to find the end
	_, err = b.ReadFrom(r)
	return b.Bytes(), err
}
