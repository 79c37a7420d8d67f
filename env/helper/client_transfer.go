package helper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// transfer is a running Put or Get.
type transfer struct {
	id     uint32
	kind   Kind
	chunks chan []byte // the data of a Get; capacity Window
	credit Credit      // for the data of a Put
	done   Done
	ended  chan struct{} // closed when done is set
}

// acceptTransfer processes a frame of a file transfer. It returns an error if the
// frame violates the protocol.
func (c *Client) acceptTransfer(f Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.transfer
	switch {
	case t == nil:
		return fmt.Errorf("%w: kind %q of transfer %d while none is running", ErrFrame, byte(f.Kind), f.ID)
	case f.ID != t.id:
		return fmt.Errorf("%w: kind %q of transfer %d during %d", ErrFrame, byte(f.Kind), f.ID, t.id)
	case f.Kind == KindWindowUpdate && t.kind == KindPut:
		return t.credit.Grant(f.Body)
	case f.Kind == KindData && t.kind == KindGet:
		return t.addChunk(f.Body)
	case f.Kind != KindDone:
		return fmt.Errorf("%w: kind %q from the wrong side", ErrFrame, byte(f.Kind))
	}
	if err := json.Unmarshal(f.Body, &t.done); err != nil {
		return fmt.Errorf("%w: done: %w", ErrFrame, err)
	}
	c.transfer = nil // a second Done is a frame without a transfer
	close(t.ended)
	return nil
}

// addChunk does not block: if the channel is full, the chunk was sent without credit.
func (t *transfer) addChunk(chunk []byte) error {
	if len(chunk) == 0 || len(chunk) > MaxChunk {
		return fmt.Errorf("%w: chunk of %d bytes, allowed 1 to %d", ErrFrame, len(chunk), MaxChunk)
	}
	select {
	case t.chunks <- chunk:
		return nil
	default:
		return fmt.Errorf("%w: more than %d chunks in flight", ErrFrame, Window)
	}
}

func (t *transfer) isFinished() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}

// err returns the error of a transfer that has ended.
func (t *transfer) err() error {
	switch {
	case t.done.Missing:
		return fs.ErrNotExist
	case t.done.Failure != "":
		return fmt.Errorf("%.4096q", t.done.Failure)
	case t.done.Cancelled:
		return errors.New("helper cancelled the transfer")
	}
	return nil
}
