package transport

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/minibench/mini/model"
)

// idle ends a stream that has stopped coming. Before the first byte it waits:
// a server that thinks or queues in silence has not begun, and the timeout of
// the request is about that.
type idle struct {
	io.ReadCloser
	limit   time.Duration
	timer   *time.Timer // nil before the first byte
	cancel  context.CancelFunc
	stalled atomic.Bool
}

// newIdle watches a body whose request ends with cancel.
func newIdle(body io.ReadCloser, limit time.Duration, cancel context.CancelFunc) *idle {
	return &idle{ReadCloser: body, limit: limit, cancel: cancel}
}

// Read implements io.Reader. The clock runs while the reader waits for the
// server, and not while the server waits for the reader.
func (i *idle) Read(p []byte) (int, error) {
	if i.timer != nil {
		i.timer.Reset(i.limit)
	}
	n, err := i.ReadCloser.Read(p)
	switch {
	case i.timer != nil:
		i.timer.Stop()
	case n > 0:
		i.timer = time.AfterFunc(i.limit, i.stall)
		i.timer.Stop()
	}
	if err != nil && err != io.EOF && i.stalled.Load() {
		err = &model.Error{
			Status: model.ProviderError, Retryable: true,
			Err:  fmt.Errorf("the stream stopped coming: nothing within %v", i.limit),
			Hint: "raise model.stream_idle for a server that pauses longer",
		}
	}
	return n, err
}

func (i *idle) stall() {
	i.stalled.Store(true)
	i.cancel()
}

// Close implements io.Closer.
func (i *idle) Close() error {
	if i.timer != nil {
		i.timer.Stop()
	}
	defer i.cancel()
	return i.ReadCloser.Close()
}
