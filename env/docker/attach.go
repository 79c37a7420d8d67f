package docker

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// attachment is the two-way stream to a container's PID 1. What arrives is
// stdout and stderr mixed by the engine; Read gives stdout alone, and the
// beginning of stderr is kept: the helper writes there only when it crashes.
type attachment struct {
	conn   types.HijackedResponse
	out    *io.PipeReader
	stderr *head
	worker sync.WaitGroup
}

var _ io.ReadWriteCloser = (*attachment)(nil)

func (e *Engine) attach(ctx context.Context, id string) (*attachment, error) {
	conn, err := e.api.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	out, in := io.Pipe()
	a := &attachment{conn: conn, out: out, stderr: &head{limit: 4 << 10}}
	a.worker.Go(func() {
		// conn.Reader may hold bytes that came along with the headers.
		_, err := stdcopy.StdCopy(in, a.stderr, heard{conn.Reader, e.pulse})
		in.CloseWithError(err) // nil becomes io.EOF
	})
	return a, nil
}

func (a *attachment) Read(p []byte) (int, error)  { return a.out.Read(p) }
func (a *attachment) Write(p []byte) (int, error) { return a.conn.Conn.Write(p) }

// Close ends both directions; the container's stdin ends with it. It does not
// wait, see wait.
func (a *attachment) Close() error {
	_ = a.out.Close() // never fails
	return a.conn.Conn.Close()
}

// wait returns when nothing of the attachment runs any more. Close comes first.
func (a *attachment) wait() { a.worker.Wait() }

// heard is a stream out of a container: what comes says that the engine lives.
type heard struct {
	io.Reader
	pulse *pulse
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.pulse.note()
	}
	return n, err
}

// head keeps the first bytes written to it and takes the rest.
type head struct {
	mu    sync.Mutex
	limit int
	kept  []byte
}

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = append(h.kept, p[:min(len(p), h.limit-len(h.kept))]...)
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.kept)
}
