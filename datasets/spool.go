package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

func (s *spool) fill(ctx context.Context) error {
	pipe, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("read dataset: %w", err)
	}
	defer pipe.Close() //nolint:errcheck // read only
	file, err := os.CreateTemp("", "mini-rows-")
	if err != nil {
		return fmt.Errorf("keep what %s gives: %w", s.path, err)
	}
	// A deadline in the past wakes a read that waits for a writer who does not
	// write. Where the pipe cannot have one, the read ends with the writer.
	stop := context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err = os.Remove(file.Name())
	if err == nil {
		s.size, err = io.Copy(file, io.LimitReader(&heedful{ctx, pipe}, maxSpool+1))
	}
	if err == nil && s.size > maxSpool {
		err = &badData{fmt.Sprintf("%s: more than %d GB came out of the pipe", printable(s.path), maxSpool>>30)}
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return errors.Join(fmt.Errorf("keep what %s gives in %s: %w", s.path, os.TempDir(), err), file.Close())
	}
	s.file = file
	return nil
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
