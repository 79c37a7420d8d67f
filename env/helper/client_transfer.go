package helper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// transfer is a Put or Get under way.
type transfer struct {
	id     uint32
	kind   Kind
	in     chan []byte // of a Get: what has come; of capacity Window
	credit Credit      // of a Put
	done   Done
	ended  chan struct{} // closed when done is set
}

// acceptTransfer files a frame about files, or says which rule it breaks.
func (c *Client) acceptTransfer(f Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.transfer
	switch {
	case t == nil:
		return fmt.Errorf("%w: kind %q of transfer %d while none is under way", ErrFrame, byte(f.Kind), f.ID)
	case f.ID != t.id:
		return fmt.Errorf("%w: kind %q of transfer %d during %d", ErrFrame, byte(f.Kind), f.ID, t.id)
	case f.Kind == KindMore && t.kind == KindPut:
		return t.credit.Grant(f.Body)
	case f.Kind == KindData && t.kind == KindGet:
		return t.take(f.Body)
	case f.Kind != KindDone:
		return fmt.Errorf("%w: kind %q from the side that does not send it", ErrFrame, byte(f.Kind))
	}
	if err := json.Unmarshal(f.Body, &t.done); err != nil {
		return fmt.Errorf("%w: done: %w", ErrFrame, err)
	}
	c.transfer = nil // a second Done is one while no transfer is under way
	close(t.ended)
	return nil
}

// take never waits: what finds no room was sent without credit.
func (t *transfer) take(chunk []byte) error {
	if len(chunk) == 0 || len(chunk) > MaxChunk {
		return fmt.Errorf("%w: chunk of %d bytes, allowed 1 to %d", ErrFrame, len(chunk), MaxChunk)
	}
	select {
	case t.in <- chunk:
		return nil
	default:
		return fmt.Errorf("%w: more than %d chunks on their way", ErrFrame, Window)
	}
}

func (t *transfer) finished() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// verdict translates Done.
func (t *transfer) verdict() error {
	switch {
	case t.done.Missing:
		return fs.ErrNotExist
	case t.done.Failure != "":
		return fmt.Errorf("%.4096q", t.done.Failure)
	case t.done.Cancelled:
		return errors.New("the helper gave up without being asked to")
	}
	return nil
}
