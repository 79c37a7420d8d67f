package datasets

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/minibench/mini/internal/text"
)

// shard is an open file of a source.
type shard struct {
	label string // for messages
	from  io.ReaderAt
	size  int64
	close func() error
}

// open opens a file of the source. It first copies a pipe to a file.
func (s Source) open(ctx context.Context, i int) (*shard, error) {
	sh := &shard{label: s.label(i), close: func() error { return nil }}
	switch {
	case s.spool != nil:
		r, err := s.spool.open(ctx)
		if err != nil {
			return nil, err
		}
		sh.from, sh.size = r, r.Size()
		return sh, nil
	case len(s.Files) == 0:
		sh.from, sh.size = bytes.NewReader(s.data), int64(len(s.data))
		return sh, nil
	}
	f := os.Stdin
	if !IsStdin(s.Files[i]) { // stdin is already open
		var err error
		if f, err = os.Open(s.Files[i]); err != nil {
			return nil, sh.openError(err)
		}
		sh.close = f.Close
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a file")
	}
	if err != nil {
		_ = sh.close() // nothing was read
		return nil, sh.openError(err)
	}
	sh.from, sh.size = f, info.Size()
	return sh, nil
}

// openError converts an error of opening or reading a file.
func (sh *shard) openError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sh.errorf("no such file")
	case errors.Is(err, fs.ErrPermission):
		return sh.errorf("permission denied; run chmod +r, or ask its owner")
	}
	return fmt.Errorf("read dataset %s: %s", sh.label, cause(err))
}

// errorf returns an error about this file.
func (sh *shard) errorf(format string, args ...any) error {
	return &dataError{sh.label + ": " + fmt.Sprintf(format, args...)}
}

// wrapError adds the file to an error of reading rows. It returns errStop, and errors that
// wrap ErrData and so have a complete message, unchanged.
func (sh *shard) wrapError(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, errStop), errors.Is(err, ErrData):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("read %s: %w", sh.label, context.Cause(ctx))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return sh.errorf("%s: the file is truncated; download it again", errorText(err))
	}
	return sh.errorf("%s", errorText(err))
}

// errorText returns the text of an error that may quote untrusted data: one line, limited.
func errorText(err error) string { return text.Printable(text.Clip(err.Error(), 300)) }

// fileKind is the format of a file.
type fileKind int

const (
	kindJSON fileKind = iota
	kindGzip
	kindParquet
)

// kind detects the format from the first bytes. Common mistakes have their own messages.
func (sh *shard) kind() (fileKind, error) {
	start := make([]byte, 512)
	n, err := sh.from.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, sh.openError(err)
	}
	start = start[:n]
	hasPrefix := func(magic string) bool { return bytes.HasPrefix(start, []byte(magic)) }
	lower := bytes.ToLower(bytes.TrimSpace(start))
	switch {
	case n == 0:
		return 0, sh.errorf("no rows")
	case hasPrefix("PAR1"):
		return kindParquet, nil
	case hasPrefix("\x1f\x8b"):
		return kindGzip, nil
	case hasPrefix("PARE"):
		return 0, sh.errorf("an encrypted parquet file; mini cannot read it")
	case hasPrefix("\x28\xb5\x2f\xfd"):
		return 0, sh.errorf("compressed with zstd; unpack it first: unzstd")
	case hasPrefix("PK\x03\x04"):
		return 0, sh.errorf("a zip archive; unpack it first: unzip")
	case hasPrefix("ARROW1"):
		return 0, sh.errorf("an Arrow file; write the dataset as parquet or as JSON lines")
	case hasPrefix("version https://git-lfs"):
		return 0, sh.errorf("a Git LFS pointer, not the data; run git lfs pull")
	case bytes.HasPrefix(lower, []byte("<!doctype")), bytes.HasPrefix(lower, []byte("<html")):
		return 0, sh.errorf("a web page, not the data; download the file itself")
	case strings.HasSuffix(sh.label, ".parquet"):
		return 0, sh.errorf("not a parquet file")
	case strings.HasSuffix(sh.label, ".gz"):
		return 0, sh.errorf("not a gzip file")
	}
	return kindJSON, nil
}

// jsonReader returns a reader of the JSON text.
func (sh *shard) jsonReader(kind fileKind) (*bufio.Reader, error) {
	r := sh.reader()
	if kind == kindGzip {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, sh.errorf("not a gzip file: %s", errorText(err))
		}
		r = z
	}
	b := bufio.NewReaderSize(r, 1<<20)
	if kind == kindGzip {
		if start, err := b.Peek(4); err == nil && string(start) == "PAR1" {
			return nil, sh.errorf("a parquet file within gzip; unpack it first: gunzip")
		}
	}
	return b, nil
}

// reader returns a reader of the whole file.
func (sh *shard) reader() io.Reader { return io.NewSectionReader(sh.from, 0, sh.size) }
