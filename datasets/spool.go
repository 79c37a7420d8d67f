package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// spool copies a pipe to a temporary file, so that it can be read twice. The file is
// unlinked at once, so it disappears when the process exits.
type spool struct {
	path string
	file *os.File
	size int64
}

// open returns the content of the pipe. The first call reads it.
func (s *spool) open(ctx context.Context) (*io.SectionReader, error) {
	if s.file == nil {
		file, err := os.CreateTemp("", "mini-rows-")
		if err != nil {
			return nil, fmt.Errorf("create temporary file for %s: %w", printable(s.path), err)
		}
		err = os.Remove(file.Name())
		if err == nil {
			s.size, err = s.copyPipe(ctx, file)
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		s.file = file
	}
	return io.NewSectionReader(s.file, 0, s.size), nil
}

// copyPipe copies the pipe until its end, or until ctx ends. It does not reopen standard input
// by name: that would wait for another writer, and may need more permissions.
func (s *spool) copyPipe(ctx context.Context, to io.Writer) (int64, error) {
	type copied struct {
		size int64
		err  error
	}
	done := make(chan copied, 1)
	pipe := os.Stdin
	// The goroutine ends when the writer closes the pipe. If ctx ends first, copyPipe does
	// not wait for the goroutine, because the process is about to exit.
	go func() {
		var c copied
		if !IsStdin(s.path) {
			if pipe, c.err = os.Open(s.path); c.err == nil { // blocks until a writer opens the pipe
				defer pipe.Close() //nolint:errcheck // read only
			}
		}
		if c.err == nil {
			c.size, c.err = io.Copy(to, pipe)
		}
		done <- c
	}()
	select {
	case c := <-done:
		if c.err != nil {
			c.err = fmt.Errorf("copy %s to %s: %w", printable(s.path), os.TempDir(), c.err)
		}
		return c.size, c.err
	case <-ctx.Done():
		return 0, fmt.Errorf("read %s: %w", printable(s.path), context.Cause(ctx))
	}
}

// Stdin is the name of standard input for Local.
const Stdin = "-"

// stdinPath is the path of standard input in Source.Files and in messages.
const stdinPath = "/dev/stdin"

// IsStdin reports whether a name means standard input.
func IsStdin(name string) bool {
	return slices.Contains([]string{Stdin, stdinPath, "/dev/fd/0", "/proc/self/fd/0"}, name)
}
