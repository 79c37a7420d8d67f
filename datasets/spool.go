package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
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

func (s *spool) fill(ctx context.Context) error {
	pipe, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer disconnect(pipe)
	file, err := os.CreateTemp("", "mini-rows-")
	if err != nil {
		return fmt.Errorf("keep what %s gives: %w", printable(s.path), err)
	}
	err = os.Remove(file.Name())
	if err == nil {
		s.size, err = drain(ctx, file, pipe)
	}
	settle(ctx)
	if err == nil && s.size > maxSpool {
		err = &badData{fmt.Sprintf("%s: more than %d GB came out of the pipe", printable(s.path), maxSpool>>30)}
	}
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("read %s: %w", printable(s.path), context.Cause(ctx))
	case err != nil:
		err = fmt.Errorf("keep what %s gives in %s: %w", printable(s.path), os.TempDir(), err)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.file = file
	return nil
}

type opened struct {
	file *os.File
	err  error
}

// openPipe opens a pipe, which takes until somebody writes to it, or until the
// context ends.
func openPipe(ctx context.Context, path string) (*os.File, error) {
	done := make(chan opened, 1)
	go func() { // ends when the pipe has a writer, if only that of wake
		file, err := os.Open(path) //nolint:gosec // the user named it
		done <- opened{file, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, fmt.Errorf("read dataset: %w", o.err)
		}
		return o.file, nil
	case <-ctx.Done():
		for range wakeTries {
			if wake(path, done) {
				break
			}
		}
		return nil, fmt.Errorf("read %s: %w", printable(path), context.Cause(ctx))
	}
}

const (
	wakeEvery = 10 * time.Millisecond
	wakeTries = 20
)

// wake gives a writer to whoever waits for one, for a moment, and says whether
// that was enough. Where it never is, since the pipe is gone or may only be
// read, the one that waits is left behind: what has been interrupted is about
// to end, and the system ends the wait with it.
func wake(path string, done <-chan opened) bool {
	if w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { //nolint:gosec // as above
		defer w.Close() //nolint:errcheck // nothing was written
	}
	select {
	case o := <-done:
		if o.err == nil {
			_ = o.file.Close() // nothing was read
		}
		return true
	case <-time.After(wakeEvery):
		return false
	}
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
