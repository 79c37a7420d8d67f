package transport

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/minibench/mini/model"
)

// idleReader ends a stream in which no data arrives for too long. Before the
// first byte only the timeout of the request applies: the server may be queueing
// or thinking.
type idleReader struct {
	io.ReadCloser
	limit   time.Duration
	timer   *time.Timer // nil before the first byte
	cancel  context.CancelFunc
	stalled atomic.Bool
}

// newIdleReader wraps the body of a response; cancel ends the request.
func newIdleReader(body io.ReadCloser, limit time.Duration, cancel context.CancelFunc) *idleReader {
	return &idleReader{ReadCloser: body, limit: limit, cancel: cancel}
}

// Read implements io.Reader. The timer runs only while a Read waits for the
// server.
func (i *idleReader) Read(p []byte) (int, error) {
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
			Err:  fmt.Errorf("stream stalled: no data for %v", i.limit),
			Hint: "raise model.stream_idle for a server that pauses longer",
		}
	}
	return n, err
}

func (i *idleReader) stall() {
	i.stalled.Store(true)
	i.cancel()
}

// Close implements io.Closer.
func (i *idleReader) Close() error {
	if i.timer != nil {
		i.timer.Stop()
	}
	defer i.cancel()
	return i.ReadCloser.Close()
}
