package datasets

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Stdin is the name for Local of what comes from standard input.
const Stdin = "-"

// stdinPath is what standard input is called in messages.
const stdinPath = "/dev/stdin"

// IsStdin says whether a name means standard input, which gives its bytes only
// once.
func IsStdin(name string) bool {
	return slices.Contains([]string{Stdin, stdinPath, "/dev/fd/0", "/proc/self/fd/0"}, name)
}

// connect returns the pipe. Standard input is open already: to open it by its
// name anew would wait for a writer who may be done, and needs rights that
// whoever opened it had.
func (s *spool) connect(ctx context.Context) (*os.File, error) {
	if IsStdin(s.path) {
		return os.Stdin, nil
	}
	return openPipe(ctx, s.path)
}

// disconnect closes the pipe; standard input is not ours to close.
func disconnect(pipe *os.File) {
	if pipe != os.Stdin {
		_ = pipe.Close() // read only
	}
}

// drain copies what comes out of a pipe until its end, or that of the context.
func drain(ctx context.Context, to, pipe *os.File) (int64, error) {
	from := io.LimitReader(&heedful{ctx, pipe}, maxSpool+1)
	if pipe.SetReadDeadline(time.Time{}) == nil {
		// A deadline in the past wakes a read that waits for a writer who does
		// not write.
		stop := context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
		return io.Copy(to, from)
	}
	// What the program was started with blocks most often, and for others who
	// have it too it has to stay so. A read that still waits when the context
	// ends is left behind: the program is about to end.
	type copied struct {
		size int64
		err  error
	}
	done := make(chan copied, 1)
	go func() { // ends with the writer, or the program
		size, err := io.Copy(to, from)
		done <- copied{size, err}
	}()
	select {
	case c := <-done:
		return c.size, c.err
	case <-ctx.Done():
		return 0, fmt.Errorf("read the pipe: %w", context.Cause(ctx))
	}
}
