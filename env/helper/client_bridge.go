package helper

import (
	"fmt"
	"io"
)

// bridge passes the streams of one call to env.Command.Bridge. A nil bridge has none.
type bridge struct {
	open    func() io.ReadWriteCloser
	streams *Streams
}

// close closes all streams. The call has been unregistered, so that no more arrive.
func (b *bridge) close() {
	if b != nil {
		b.streams.Close()
	}
}

// acceptStream processes a frame of a stream. At most one call has a bridge.
func (c *Client) acceptStream(f Frame) error {
	b := c.findBridge()
	switch {
	case b == nil:
		return fmt.Errorf("%w: kind %q while no command has a bridge", ErrFrame, byte(f.Kind))
	case f.Kind != KindOpen:
		return b.streams.Accept(f)
	case len(f.Body) > 0:
		return fmt.Errorf("%w: open with a body", ErrFrame)
	}
	return b.streams.Add(f.ID, b.open(), nil)
}

func (c *Client) findBridge() *bridge {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		if call.bridge != nil {
			return call.bridge
		}
	}
	return nil
}

// sendStream sends a frame of a stream when no other frame is waiting. The body may be
// reused when it returns, so it is copied.
func (c *Client) sendStream(f Frame) error {
	f.Body = append([]byte(nil), f.Body...)
	select {
	case c.streams <- f:
		return nil
	case <-c.done:
		return c.Err()
	}
}
