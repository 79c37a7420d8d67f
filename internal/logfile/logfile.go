// Package logfile reads saved logs, plain or compressed with gzip, into memory.
// Logs are untrusted: before it allocates memory for a log, it rejects irregular
// files and files that are too large.
//
//	data, err := logfile.Read("test_output.txt.gz", logfile.MaxSize)
package logfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/minibench/mini/internal/rootdir"
)

// MaxSize is the maximum size of a decompressed log, in bytes.
const MaxSize = 1 << 30

// ErrTooLong is wrapped by the error for a log that exceeds its maximum size.
var ErrTooLong = errors.New("too long")

// File is an open log.
type File struct {
	f          *os.File
	compressed bool
	size       int64 // decompressed
	maxSize    int64 // decompressed
}

// Open opens a log of at most maxSize bytes. It decompresses files whose names
// end in .gz. The error contains the path; it may wrap fs.ErrNotExist or
// ErrTooLong.
func Open(path string, maxSize int64) (*File, error) {
	f, err := rootdir.OpenRegular(path, 0)
	if err != nil {
		return nil, err
	}
	return New(f, maxSize)
}

// New is like Open for a regular file that is already open. Closing the File
// closes f; on an error, New closes f.
func New(f *os.File, maxSize int64) (*File, error) {
	log := &File{f: f, compressed: strings.HasSuffix(f.Name(), ".gz"), maxSize: maxSize}
	info, err := f.Stat()
	if err == nil {
		log.size = info.Size()
	}
	if log.compressed && err == nil {
		log.size, err = log.decompressedSize()
	}
	if err == nil && log.size > maxSize {
		err = errTooLong(maxSize)
	}
	if err != nil {
		return nil, errors.Join(log.wrapError(err), f.Close())
	}
	return log, nil
}

func errTooLong(maxSize int64) error {
	return fmt.Errorf("%w: more than %d MiB", ErrTooLong, maxSize>>20)
}

// Size returns the decompressed size of the log, in bytes.
func (l *File) Size() int64 { return l.size }

// Close closes the file.
func (l *File) Close() error { return l.f.Close() }

// Reader returns a reader of the decompressed log from its start. It yields at
// most Size bytes, even if the file has grown.
func (l *File) Reader() (io.Reader, error) {
	if !l.compressed {
		return io.NewSectionReader(l.f, 0, l.size), nil
	}
	r, err := l.decompress()
	if err != nil {
		return nil, l.wrapError(err)
	}
	return io.LimitReader(r, l.size), nil
}

// decompressedSize decompresses the log to determine its size, because the size
// in a gzip file is unreliable. It stops when the size exceeds the maximum.
func (l *File) decompressedSize() (int64, error) {
	r, err := l.decompress()
	if err != nil {
		return 0, err
	}
	return io.Copy(io.Discard, io.LimitReader(r, l.maxSize+1))
}

func (l *File) decompress() (io.Reader, error) {
	if _, err := l.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return gzip.NewReader(l.f)
}

var errNotGzip = errors.New("not a gzip file")

// wrapError adds the path to an error, and says what is wrong with a gzip file.
func (l *File) wrapError(err error) error {
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, io.EOF):
		err = errNotGzip
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("truncated gzip file")
	}
	return fmt.Errorf("read %s: %w", l.f.Name(), err)
}

// Read reads the log at path. It returns the errors of Open, Reader and reading.
func Read(path string, maxSize int64) ([]byte, error) {
	l, err := Open(path, maxSize)
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // read only
	r, err := l.Reader()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(l.size) + bytes.MinRead) // avoids growing the buffer at the end
	_, err = b.ReadFrom(r)
	return b.Bytes(), err
}
