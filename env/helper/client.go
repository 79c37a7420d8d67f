package helper

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/minibench/mini/env"
)

// The ways a conversation ends, besides ErrFrame (the other side broke the
// rules) and env.ErrClosed (Close was called).
var (
	// ErrLost says that the stream ended or failed. Why is for the owner of
	// the stream to find out: a dead container and a dead daemon look alike.
	ErrLost = errors.New("stream to the sandbox ended")
	// ErrSilent says that an answer did not come within its time.
	ErrSilent = errors.New("sandbox does not answer")
	// ErrFault says that the helper itself gave up; its words follow.
	ErrFault = errors.New("helper gave up")
	// ErrMismatch says that another helper, or another version of it,
	// answered than the one that was sent.
	ErrMismatch = errors.New("not the helper that was sent")
)

const (
	// DefaultTimeout bounds commands for which neither they nor the
	// ClientConfig say anything.
	DefaultTimeout = time.Minute
	// Grace is how long after a command's timeout its report may take, on
	// the client's clock, before the sandbox counts as silent.
	Grace = 30 * time.Second
	// HandshakeWait is how long the helper's first answer may take.
	HandshakeWait = 30 * time.Second
	// cancelWait is how long a cancelled command's report may take.
	cancelWait = 10 * time.Second
	// transferWait is how long files may stand still on the helper's side.
	transferWait = time.Minute
)

// ClientConfig says how a Client talks. The zero value works.
type ClientConfig struct {
	// Setup is sent first; its Version is filled in. Its lease also sets how
	// often the client says that it is alive: four times per lease.
	Setup Setup
	// Hash is the SHA-256, in hex, of the binary that must be answering.
	// Empty means any.
	Hash string
	// Timeout bounds commands that name none; zero means DefaultTimeout.
	Timeout time.Duration
	// Overdue, where it is not nil, is asked when a report is late, or files stand
	// still: it may know that the sandbox was paused. It returns how much longer to wait; zero
	// means no longer.
	Overdue func() time.Duration
}

// readAhead holds the frames of a small command, so that they take one read;
// what is larger passes it by. It is held for as long as a sandbox lives, by
// hundreds of them.
const readAhead = 2 << 10

// Client runs commands and carries files through a helper, one at a time, but for
// commands inside of commands. Its methods are safe for concurrent use.
type Client struct {
	cfg     ClientConfig
	stream  io.ReadWriteCloser
	hello   Hello
	turn    chan struct{} // of capacity one: who has put a token in may run
	outbox  chan Frame
	greeted chan Hello    // of capacity one
	met     bool          // a Hello came; the reader's own
	over    chan struct{} // closed when the conversation is over
	workers sync.WaitGroup

	mu       sync.Mutex
	err      error
	calls    map[uint32]*call // the command under way, if any, and those inside of it
	transfer *transfer        // the files under way, if any
	last     uint32

	excusing sync.Mutex // of calls whose reports are late, one at a time
}

// Dial opens the conversation: it sends Setup, waits for Hello and checks who
// answers. Afterwards the stream belongs to the client, also when Dial fails;
// closing the stream must unblock its Read and Write.
func Dial(ctx context.Context, stream io.ReadWriteCloser, cfg ClientConfig) (*Client, error) {
	cfg.Setup.Version = Version
	cfg.Timeout = orDefault(cfg.Timeout, DefaultTimeout)
	c := &Client{
		cfg:     cfg,
		stream:  stream,
		turn:    make(chan struct{}, 1),
		outbox:  make(chan Frame),
		greeted: make(chan Hello, 1),
		over:    make(chan struct{}),
		calls:   map[uint32]*call{},
	}
	c.workers.Go(c.read)
	c.workers.Go(c.write)
	if err := c.handshake(ctx); err != nil {
		_ = c.Close() // the handshake's error is the one that matters
		return nil, fmt.Errorf("greet helper: %w", err)
	}
	return c, nil
}

// Hello returns what the helper said of itself and its sandbox.
func (c *Client) Hello() Hello { return c.hello }

// Err returns why the conversation is over, nil while it is not.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the conversation and with it the helper, which kills what it
// runs at the end of its input. A command under way returns env.ErrClosed.
func (c *Client) Close() error {
	c.end(env.ErrClosed)
	c.workers.Wait()
	return nil
}

// Outcome returns the error of a command or a transfer, or, where the conversation
// is over, what lost makes of the reason, and env.ErrClosed after Close; both come
// with the cause of ctx, if that has ended.
func (c *Client) Outcome(ctx context.Context, err error, lost func(why error) error) error {
	over := c.Err()
	switch {
	case err == nil || over == nil:
		return err
	case errors.Is(over, env.ErrClosed):
		return errors.Join(context.Cause(ctx), env.ErrClosed)
	}
	return errors.Join(context.Cause(ctx), lost(over))
}

// Abandon ends the conversation for a reason of the caller's, who knows of the
// sandbox what its stream does not tell. Err returns it, and so does a command
// under way.
func (c *Client) Abandon(reason error) { c.end(reason) }

// end closes the stream; the first reason is the one that is kept.
func (c *Client) end(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = reason
	close(c.over)
	_ = c.stream.Close() // nothing more is expected of it
}

// read owns the incoming half. It never stops reading while the conversation
// lasts, so that the helper is never blocked and a frame that nobody asked for
// is noticed when it comes.
func (c *Client) read() {
	r := bufio.NewReaderSize(c.stream, readAhead)
	for {
		f, err := ReadFrame(r, MaxReply)
		switch {
		case errors.Is(err, ErrFrame):
			c.end(err)
			return
		case err != nil:
			c.end(fmt.Errorf("%w: %w", ErrLost, err))
			return
		}
		if err := c.accept(f); err != nil {
			c.end(err)
			return
		}
	}
}

// write owns the outgoing half; alone, so that a keep-alive never lands inside
// another frame.
func (c *Client) write() {
	var tick <-chan time.Time
	if lease := time.Duration(c.cfg.Setup.LeaseSeconds) * time.Second; lease > 0 {
		t := time.NewTicker(lease / 4)
		defer t.Stop()
		tick = t.C
	}
	for {
		f := Frame{Kind: KindAlive}
		select {
		case <-c.over:
			return
		case f = <-c.outbox:
		case <-tick:
		}
		if err := WriteFrame(c.stream, f); err != nil {
			c.end(fmt.Errorf("%w: %w", ErrLost, err))
			return
		}
	}
}

func orDefault(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}
