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
)

// shard is one file of a source, open.
type shard struct {
	label string // in messages
	from  io.ReaderAt
	size  int64
	close func() error
}

// open opens a file of the source; a pipe is emptied first.
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
	if !IsStdin(s.Files[i]) { // else it is open, and read from its start whatever its place
		var err error
		if f, err = os.Open(s.Files[i]); err != nil {
			return nil, sh.unreadable(err)
		}
		sh.close = f.Close
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a file")
	}
	if err != nil {
		_ = sh.close() // nothing was read
		return nil, sh.unreadable(err)
	}
	sh.from, sh.size = f, info.Size()
	return sh, nil
}

// unreadable tells the user's mistakes from those of the machine.
func (sh *shard) unreadable(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sh.bad("no such file")
	case errors.Is(err, fs.ErrPermission):
		return sh.bad("this user may not read it; chmod +r, or ask its owner")
	}
	return fmt.Errorf("read dataset %s: %s", sh.label, cause(err))
}

// bad is a mistake in this file.
func (sh *shard) bad(format string, args ...any) error {
	return &badData{sh.label + ": " + fmt.Sprintf(format, args...)}
}

// wrong is bad for an error that came up while reading. An error that has its
// full text already, and the end of the context, are returned as they are.
func (sh *shard) wrong(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, errEnough), errors.Is(err, ErrData):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("read %s: %w", sh.label, context.Cause(ctx))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return sh.bad("%s: the file is cut off; fetch it again", clean(err))
	}
	return sh.bad("%s", clean(err))
}

// clean is the text of an error that quotes foreign data: one line, bounded.
func clean(err error) string {
	text := strings.Map(func(r rune) rune {
		if unprintable(r) {
			return '?'
		}
		return r
	}, err.Error())
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// content is what a file holds.
type content int

const (
	rowsJSON content = iota
	rowsZipped
	rowsParquet
)

// content goes by the first bytes. What people have instead of data, now and
// then, is answered with what it is.
func (sh *shard) content() (content, error) {
	start := make([]byte, 512)
	n, err := sh.from.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, sh.unreadable(err)
	}
	start = start[:n]
	is := func(magic string) bool { return bytes.HasPrefix(start, []byte(magic)) }
	text := bytes.ToLower(bytes.TrimSpace(start))
	switch {
	case n == 0:
		return 0, sh.bad("no rows")
	case is("PAR1"):
		return rowsParquet, nil
	case is("\x1f\x8b"):
		return rowsZipped, nil
	case is("PARE"):
		return 0, sh.bad("an encrypted parquet file; mini cannot read it")
	case is("\x28\xb5\x2f\xfd"):
		return 0, sh.bad("compressed with zstd; unpack it first: unzstd")
	case is("PK\x03\x04"):
		return 0, sh.bad("a zip archive; unpack it first: unzip")
	case is("ARROW1"):
		return 0, sh.bad("an Arrow file; write the dataset as parquet or as JSON lines")
	case is("version https://git-lfs"):
		return 0, sh.bad("a Git LFS pointer, not the data; fetch it: git lfs pull")
	case bytes.HasPrefix(text, []byte("<!doctype")), bytes.HasPrefix(text, []byte("<html")):
		return 0, sh.bad("a web page, not the data; download the file itself")
	case strings.HasSuffix(sh.label, ".parquet"):
		return 0, sh.bad("not a parquet file")
	case strings.HasSuffix(sh.label, ".gz"):
		return 0, sh.bad("not a gzip file")
	}
	return rowsJSON, nil
}

// text is a reader of the JSON in the file, which is seen by tee on its way.
func (sh *shard) text(kind content, tee io.Writer) (*bufio.Reader, error) {
	r := io.TeeReader(sh.all(), tee)
	if kind == rowsZipped {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, sh.bad("not a gzip file: %s", clean(err))
		}
		r = z
	}
	b := bufio.NewReaderSize(r, 1<<20)
	if kind == rowsZipped {
		if start, err := b.Peek(4); err == nil && string(start) == "PAR1" {
			return nil, sh.bad("a parquet file within gzip; unpack it first: gunzip")
		}
	}
	return b, nil
}

// all reads the file from its start.
func (sh *shard) all() io.Reader { return io.NewSectionReader(sh.from, 0, sh.size) }
