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

// maxSpool bounds what is copied from a pipe, in bytes.
const maxSpool = 64 << 30

// spool keeps what came out of a pipe, so that it can be read twice: in a
// temporary file without a name, which is gone with the process, whichever way
// that ends.
type spool struct {
	path string

	mu   sync.Mutex
	file *os.File
	size int64
}

// open returns the bytes of the pipe, which it empties the first time.
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

// fill copies what comes out of the pipe until its end, or that of the context.
func (s *spool) fill(ctx context.Context) error {
	file, err := os.CreateTemp("", "mini-rows-")
	if err != nil {
		return fmt.Errorf("keep what %s gives: %w", printable(s.path), err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return errors.Join(err, file.Close())
	}
	type copied struct {
		size int64
		err  error
	}
	done := make(chan copied, 1)
	// This ends with the writer. One that still waits when the context ends is
	// left behind: what has been interrupted is about to end.
	stdin := os.Stdin
	go func() {
		size, err := s.drain(file, stdin)
		done <- copied{size, err}
	}()
	select {
	case c := <-done:
		settle(ctx)
		s.size, err = c.size, c.err
	case <-ctx.Done():
		return fmt.Errorf("read %s: %w", printable(s.path), context.Cause(ctx))
	}
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("read %s: %w", printable(s.path), context.Cause(ctx))
	case err == nil && s.size > maxSpool:
		err = &badData{fmt.Sprintf("%s: more than %d GB came out of the pipe", printable(s.path), maxSpool>>30)}
	case err != nil:
		err = fmt.Errorf("keep what %s gives in %s: %w", printable(s.path), os.TempDir(), err)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.file = file
	return nil
}

// drain copies the pipe. Standard input is open already: to open it by its name
// anew would wait for a writer who may be done, and needs rights that whoever
// opened it had.
func (s *spool) drain(to io.Writer, pipe *os.File) (int64, error) {
	if !IsStdin(s.path) {
		var err error
		if pipe, err = os.Open(s.path); err != nil { // takes until somebody writes
			return 0, err
		}
		defer pipe.Close() //nolint:errcheck // read only
	}
	return io.Copy(to, io.LimitReader(pipe, maxSpool+1))
}

// settleTime is how far the end of a writer may be ahead of the news why.
const settleTime = 50 * time.Millisecond

// settle waits whether the context ends too: Ctrl-C goes to a whole pipeline,
// and the end of its first part may be seen before the signal. What came so
// far is then not all there was to come.
func settle(ctx context.Context) {
	t := time.NewTimer(settleTime)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// heedful ends a copy when its context does.
type heedful struct {
	ctx context.Context // stored, but for one call of io.Copy only
	r   io.Reader
}

// Read implements io.Reader.
func (h *heedful) Read(p []byte) (int, error) {
	if h.ctx.Err() != nil {
		return 0, context.Cause(h.ctx)
	}
	return h.r.Read(p)
}

// Stdin is the name for Local of what comes from standard input.
const Stdin = "-"

// stdinPath is what standard input is called in messages.
const stdinPath = "/dev/stdin"

// IsStdin says whether a name means standard input, which gives its bytes only
// once.
func IsStdin(name string) bool {
	return slices.Contains([]string{Stdin, stdinPath, "/dev/fd/0", "/proc/self/fd/0"}, name)
}
