package helper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Put sends a tar stream to the helper, which unpacks it into dir (see env.Files). It
// waits for a running command.
//
// After an error of dir, of the stream, of the files, or of ctx, the connection remains
// usable if the helper confirms the end of the transfer in time; any other error means
// that the connection has ended, as in Execute. Files unpacked before the error remain,
// each of them complete. The caller's goroutine reads tree; ctx is checked between
// reads.
func (c *Client) Put(ctx context.Context, dir string, tree io.Reader) error {
	err := c.exchange(ctx, KindPut, dir, func(t *transfer) error { return c.send(ctx, t, tree) })
	if err != nil {
		return fmt.Errorf("put files into %q: %w", dir, err)
	}
	return nil
}

// Get writes the files at path to tree as a tar stream (see env.Files). It waits for a
// running command. Its errors are those of Put, and one that wraps fs.ErrNotExist if
// path does not exist.
func (c *Client) Get(ctx context.Context, path string, tree io.Writer) error {
	err := c.exchange(ctx, KindGet, path, func(t *transfer) error { return c.receive(ctx, t, tree) })
	if err != nil {
		return fmt.Errorf("get files from %q: %w", path, err)
	}
	return nil
}

// exchange starts a transfer, runs it and waits for its end.
func (c *Client) exchange(ctx context.Context, kind Kind, path string, run func(*transfer) error) error {
	t, err := c.startTransfer(ctx, kind, path)
	if err != nil {
		return err
	}
	defer c.removeTransfer(t)
	return c.finishTransfer(t, run(t))
}

// errEnded means that the Done frame has arrived; transfer.err returns the transfer's
// error.
var errEnded = errors.New("transfer ended")

// startTransfer acquires the semaphore, which removeTransfer releases, and sends the
// request.
func (c *Client) startTransfer(ctx context.Context, kind Kind, path string) (*transfer, error) {
	if len(path) == 0 || len(path) > MaxPath {
		return nil, fmt.Errorf("path has %d bytes; 1 to %d are allowed", len(path), MaxPath)
	}
	if err := c.acquire(ctx); err != nil {
		return nil, err
	}
	t := &transfer{kind: kind, ended: make(chan struct{})}
	if kind == KindGet {
		t.chunks = make(chan []byte, Window)
	} else {
		t.credit = NewCredit(Window)
	}
	c.mu.Lock()
	t.id = c.nextID()
	c.transfer = t
	c.mu.Unlock()
	if err := c.sendFrame(ctx, t, Frame{Kind: kind, ID: t.id, Body: []byte(path)}); err != nil {
		c.removeTransfer(t)
		return nil, err
	}
	return t, nil
}

func (c *Client) removeTransfer(t *transfer) {
	c.mu.Lock()
	if c.transfer == t {
		c.transfer = nil
	}
	c.mu.Unlock()
	<-c.sem
}

// sendFrame passes a frame to the writer. For a data frame it first waits for credit.
func (c *Client) sendFrame(ctx context.Context, t *transfer, f Frame) error {
	timer := time.NewTimer(transferTimeout)
	defer timer.Stop()
	outbox, credit := c.outbox, Credit(nil) // a nil channel is never ready
	if f.Kind == KindData {
		outbox, credit = nil, t.credit
	}
	for {
		select {
		case <-credit:
			outbox, credit = c.outbox, nil
		case outbox <- f:
			return nil
		case <-t.ended:
			return errEnded
		case <-c.done:
			if t.isFinished() { // Done was the last frame
				return errEnded
			}
			return c.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			if !c.extendTimer(timer) {
				return c.endStalled(transferTimeout)
			}
		}
	}
}

// extendTimer asks ClientConfig.ExtendDeadline for more time when a transfer stalls,
// and reports whether there is more.
func (c *Client) extendTimer(timer *time.Timer) bool {
	if c.cfg.ExtendDeadline == nil {
		return false
	}
	extension := c.cfg.ExtendDeadline()
	if extension > 0 {
		timer.Reset(extension)
	}
	return extension > 0
}

// endStalled ends the connection because a transfer stalls.
func (c *Client) endStalled(after time.Duration) error {
	c.end(fmt.Errorf("%w: file transfer stalled for %s", ErrNoResponse, after))
	return c.Err()
}

func (c *Client) send(ctx context.Context, t *transfer, tree io.Reader) error {
	// Two buffers: when the writer accepts a frame, the previous one has been written.
	buffers := [2][]byte{make([]byte, MaxChunk), make([]byte, MaxChunk)}
	for i := 0; ; i = 1 - i {
		n, readErr := fill(tree, buffers[i])
		if readErr != nil && readErr != io.EOF { //nolint:errorlint // an error that wraps io.EOF is not the end
			return fmt.Errorf("read tar stream: %w", readErr)
		}
		if n > 0 {
			if err := c.sendFrame(ctx, t, Frame{Kind: KindData, ID: t.id, Body: buffers[i][:n]}); err != nil {
				return err
			}
		}
		if readErr != nil {
			return c.sendFrame(ctx, t, Frame{Kind: KindData, ID: t.id})
		}
	}
}

// fill reads until p is full or r returns an error.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = r.Read(p[n:])
		n += more
	}
	return n, err
}

func (c *Client) receive(ctx context.Context, t *transfer, tree io.Writer) error {
	timer := time.NewTimer(transferTimeout)
	defer timer.Stop()
	var usage ReceivedChunks
	ended := t.ended
	for {
		var chunk []byte
		select {
		case chunk = <-t.chunks:
		default: // check for other events only if no chunk is waiting
			if ended == nil {
				return errEnded
			}
			select {
			case chunk = <-t.chunks:
			case <-ended:
				ended = nil // first process the chunks that arrived before Done
				continue
			case <-c.done:
				if !t.isFinished() {
					return c.Err()
				}
				ended = nil // Done was the last frame
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-timer.C:
				if !c.extendTimer(timer) {
					return c.endStalled(transferTimeout)
				}
				continue
			}
		}
		if _, err := tree.Write(chunk); err != nil {
			return fmt.Errorf("write tar stream: %w", err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if update := usage.Add(); update != nil && ended != nil {
			if err := c.sendFrame(ctx, t, Frame{Kind: KindWindowUpdate, ID: t.id, Body: update}); err != nil && !errors.Is(err, errEnded) {
				return err
			}
		}
		timer.Reset(transferTimeout)
	}
}

// finishTransfer waits for the helper's Done frame. After a failed transfer it sends a
// cancellation first.
func (c *Client) finishTransfer(t *transfer, err error) error {
	if errors.Is(err, errEnded) {
		return t.err()
	}
	outbox, wait := c.outbox, cancelTimeout
	if err == nil {
		outbox, wait = nil, transferTimeout
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case outbox <- Frame{Kind: KindCancel, ID: t.id}:
			outbox = nil
		case <-t.ended:
			if err == nil {
				return t.err()
			}
			return err
		case <-c.done:
			if err == nil && t.isFinished() { // Done was the last frame
				return t.err()
			}
			return joinDistinct(err, c.Err())
		case <-timer.C:
			if err == nil && c.extendTimer(timer) { // the deadline of a cancelled transfer is final
				continue
			}
			return joinDistinct(err, c.endStalled(wait))
		}
	}
}

// joinDistinct joins the error of a transfer, if any, with the reason for the end of
// the connection. If err wraps reason, it returns only reason.
func joinDistinct(err, reason error) error {
	if err == nil || errors.Is(err, reason) {
		return reason
	}
	return errors.Join(err, reason)
}
