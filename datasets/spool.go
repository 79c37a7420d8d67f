package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// maxSpool limits how much is copied from a pipe, in bytes.
const maxSpool = 64 << 30

// spool copies a pipe to a temporary file, so that it can be read twice. The file is
// unlinked at once, so it disappears when the process exits.
type spool struct {
	path string

	mu   sync.Mutex
	file *os.File
	size int64
}

// open returns the content of the pipe. The first call reads it.
func (s *spool) open(ctx context.Context) (*io.SectionReader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		if err := s.fill(ctx); err != nil {
			return nil, err
		}
	}
	return io.NewSectionReader(s.file, 0, s.size), nil
}

// fill copies the pipe until its end, or until ctx ends.
func (s *spool) fill(ctx context.Context) error {
	file, err := os.CreateTemp("", "mini-rows-")
	if err != nil {
		return fmt.Errorf("create temporary file for %s: %w", printable(s.path), err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return errors.Join(err, file.Close())
	}
	type copied struct {
		size int64
		err  error
	}
	done := make(chan copied, 1)
	// The goroutine ends when the writer closes the pipe. If ctx ends first, fill does
	// not wait for the goroutine, because the process is about to exit.
	stdin := os.Stdin
	go func() {
		size, err := s.copyPipe(file, stdin)
		done <- copied{size, err}
	}()
	select {
	case c := <-done:
		waitForCancel(ctx)
		s.size, err = c.size, c.err
	case <-ctx.Done():
		return fmt.Errorf("read %s: %w", printable(s.path), context.Cause(ctx))
	}
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("read %s: %w", printable(s.path), context.Cause(ctx))
	case err == nil && s.size > maxSpool:
		err = &dataError{fmt.Sprintf("%s: more than %d GB in the pipe", printable(s.path), maxSpool>>30)}
	case err != nil:
		err = fmt.Errorf("copy %s to %s: %w", printable(s.path), os.TempDir(), err)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.file = file
	return nil
}

// copyPipe copies the pipe. It does not reopen standard input by name: that would wait
// for another writer, and may need more permissions.
func (s *spool) copyPipe(to io.Writer, pipe *os.File) (int64, error) {
	if !IsStdin(s.path) {
		var err error
		if pipe, err = os.Open(s.path); err != nil { // blocks until a writer opens the pipe
			return 0, err
		}
		defer pipe.Close() //nolint:errcheck // read only
	}
	return io.Copy(to, io.LimitReader(pipe, maxSpool+1))
}

// cancelDelay is how long to wait for a signal after the end of the pipe.
const cancelDelay = 50 * time.Millisecond

// waitForCancel waits briefly for ctx to end. Ctrl-C interrupts all processes of a
// pipeline, and the pipe may close before this process receives the signal; the data is
// then incomplete.
func waitForCancel(ctx context.Context) {
	t := time.NewTimer(cancelDelay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// ctxReader is a reader that fails when its context ends.
type ctxReader struct {
	ctx context.Context // for one call of io.Copy
	r   io.Reader
}

// Read implements io.Reader.
func (c *ctxReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// Stdin is the name of standard input for Local.
const Stdin = "-"

// stdinPath is the path of standard input in Source.Files and in messages.
const stdinPath = "/dev/stdin"

// IsStdin reports whether a name means standard input.
func IsStdin(name string) bool {
	return slices.Contains([]string{Stdin, stdinPath, "/dev/fd/0", "/proc/self/fd/0"}, name)
}
