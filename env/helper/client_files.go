package helper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Put sends a tar stream to the helper, which unpacks it below dir (see
// env.Files). It waits its turn behind commands.
//
// An error of the stream or of the files, or the context's cause, leaves the
// conversation usable; any other ends it, as in Execute. What was unpacked until
// then stays, each file whole. tree is read by the caller's goroutine: ctx is
// heeded between two reads.
func (c *Client) Put(ctx context.Context, dir string, tree io.Reader) error {
	err := c.exchange(ctx, KindPut, dir, func(t *transfer) error { return c.send(ctx, t, tree) })
	if err != nil {
		return fmt.Errorf("put files into %q: %w", dir, err)
	}
	return nil
}

// Get writes what is at path as a tar stream (see env.Files). It waits its turn
// behind commands; its errors are those of Put, and one that wraps
// fs.ErrNotExist.
func (c *Client) Get(ctx context.Context, path string, tree io.Writer) error {
	err := c.exchange(ctx, KindGet, path, func(t *transfer) error { return c.receive(ctx, t, tree) })
	if err != nil {
		return fmt.Errorf("get files from %q: %w", path, err)
	}
	return nil
}

// exchange opens a transfer, runs it and waits for its end.
func (c *Client) exchange(ctx context.Context, kind Kind, path string, run func(*transfer) error) error {
	t, err := c.open(ctx, kind, path)
	if err != nil {
		return err
	}
	defer c.leaveTransfer(t)
	return c.conclude(t, run(t))
}

// errEnded says that Done has come; what it says is the transfer's.
var errEnded = errors.New("transfer ended")

// open takes the turn, which leaveTransfer gives back, and sends the request.
func (c *Client) open(ctx context.Context, kind Kind, path string) (*transfer, error) {
	if len(path) == 0 || len(path) > MaxPath {
		return nil, fmt.Errorf("a path of %d bytes; 1 to %d can be sent", len(path), MaxPath)
	}
	if err := c.take(ctx); err != nil {
		return nil, err
	}
	t := &transfer{kind: kind, ended: make(chan struct{})}
	if kind == KindGet {
		t.in = make(chan []byte, Window)
	} else {
		t.credit = NewCredit()
	}
	c.mu.Lock()
	t.id = c.nextID()
	c.transfer = t
	c.mu.Unlock()
	if err := c.offer(ctx, t, Frame{Kind: kind, ID: t.id, Body: []byte(path)}); err != nil {
		c.leaveTransfer(t)
		return nil, err
	}
	return t, nil
}

func (c *Client) leaveTransfer(t *transfer) {
	c.mu.Lock()
	if c.transfer == t {
		c.transfer = nil
	}
	c.mu.Unlock()
	<-c.turn
}

// offer hands a frame to the writer, data only on credit.
func (c *Client) offer(ctx context.Context, t *transfer, f Frame) error {
	late := time.NewTimer(transferWait)
	defer late.Stop()
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
		case <-c.over:
			if t.finished() { // Done was the last thing to come
				return errEnded
			}
			return c.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late.C:
			if !c.excused(late) {
				return c.stalled(transferWait)
			}
		}
	}
}

// excused says that there is a reason why files stand still, and waits longer.
func (c *Client) excused(late *time.Timer) bool {
	if c.cfg.Overdue == nil {
		return false
	}
	more := c.cfg.Overdue()
	if more > 0 {
		late.Reset(more)
	}
	return more > 0
}

// stalled ends the conversation with a helper that does not go on.
func (c *Client) stalled(after time.Duration) error {
	c.end(fmt.Errorf("%w: files stood still for %s", ErrSilent, after))
	return c.Err()
}

func (c *Client) send(ctx context.Context, t *transfer, tree io.Reader) error {
	// Two buffers: by the time a frame is taken, the one before it is written.
	buffers := [2][]byte{make([]byte, MaxChunk), make([]byte, MaxChunk)}
	for turn := 0; ; turn = 1 - turn {
		n, end := fill(tree, buffers[turn])
		if end != nil && end != io.EOF { //nolint:errorlint // an error that wraps io.EOF is no end
			return fmt.Errorf("read what is to be sent: %w", end)
		}
		if n > 0 {
			if err := c.offer(ctx, t, Frame{Kind: KindData, ID: t.id, Body: buffers[turn][:n]}); err != nil {
				return err
			}
		}
		if end != nil {
			return c.offer(ctx, t, Frame{Kind: KindData, ID: t.id})
		}
	}
}

// fill reads until p is full or r says why it cannot be.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = r.Read(p[n:])
		n += more
	}
	return n, err
}

func (c *Client) receive(ctx context.Context, t *transfer, tree io.Writer) error {
	late := time.NewTimer(transferWait)
	defer late.Stop()
	var used Usage
	ended := t.ended
	for {
		var chunk []byte
		select {
		case chunk = <-t.in:
		default: // only when nothing has come does it matter what else is
			if ended == nil {
				return errEnded
			}
			select {
			case chunk = <-t.in:
			case <-ended:
				ended = nil // what came before it is taken first
				continue
			case <-c.over:
				if !t.finished() {
					return c.Err()
				}
				ended = nil // Done was the last thing to come
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-late.C:
				if !c.excused(late) {
					return c.stalled(transferWait)
				}
				continue
			}
		}
		if _, err := tree.Write(chunk); err != nil {
			return fmt.Errorf("write what has come: %w", err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if more := used.Another(); more != nil && ended != nil {
			if err := c.offer(ctx, t, Frame{Kind: KindMore, ID: t.id, Body: more}); err != nil && !errors.Is(err, errEnded) {
				return err
			}
		}
		late.Reset(transferWait)
	}
}

// conclude awaits the helper's last word: after a transfer that went well what
// it came to, after one that was given up its consent.
func (c *Client) conclude(t *transfer, err error) error {
	if errors.Is(err, errEnded) {
		return t.verdict()
	}
	outbox, wait := c.outbox, cancelWait
	if err == nil {
		outbox, wait = nil, transferWait
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	for {
		select {
		case outbox <- Frame{Kind: KindCancel, ID: t.id}:
			outbox = nil
		case <-t.ended:
			if err == nil {
				return t.verdict()
			}
			return err
		case <-c.over:
			if err == nil && t.finished() { // Done was the last thing to come
				return t.verdict()
			}
			return lasting(err, c.Err())
		case <-late.C:
			if err == nil && c.excused(late) { // nobody waits much longer for what was given up
				continue
			}
			return lasting(err, c.stalled(wait))
		}
	}
}

// lasting joins the reason to give up with the end of the conversation, unless
// they are the same.
func lasting(err, over error) error {
	if err == nil || errors.Is(err, over) {
		return over
	}
	return errors.Join(err, over)
}
