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

// The reasons why a connection ends, besides ErrFrame (the other side violated the
// protocol), env.ErrClosed (Close was called) and the reason given to CloseWithError.
var (
	// ErrDisconnected means that the stream ended or failed, on this side or on the
	// helper's. The owner of the stream must find out why: a dead container and a dead
	// daemon have the same effect.
	ErrDisconnected = errors.New("stream to the sandbox ended")
	// ErrNoResponse means that an expected frame did not arrive in time.
	ErrNoResponse = errors.New("sandbox does not respond")
	// ErrHelperFailed means that the helper reported an error and exited; the helper's
	// message is appended.
	ErrHelperFailed = errors.New("helper failed")
	// ErrMismatch means that a different helper, or another version of it, is running.
	ErrMismatch = errors.New("unexpected helper")
)

const (
	// DefaultTimeout is the timeout of commands if neither the command nor the
	// ClientConfig sets one.
	DefaultTimeout = time.Minute
	// ReportGrace is how long the report of a command may take after the command's
	// timeout, on the client's clock. Then the sandbox counts as unresponsive.
	ReportGrace = 90 * time.Second
	// HandshakeTimeout is how long the helper's Hello may take.
	HandshakeTimeout = 30 * time.Second
	// cancelTimeout is how long the report of a cancelled command may take. Killing its
	// processes may take 40 s on a busy machine.
	cancelTimeout = 45 * time.Second
	// transferTimeout is how long each wait of a file transfer for the helper may take.
	transferTimeout = time.Minute
)

// ClientConfig configures a Client. The zero value is usable.
type ClientConfig struct {
	// Setup is sent first; Dial sets its Version. The client sends four keepalive
	// frames per lease.
	Setup Setup
	// Hash is the expected SHA-256 of the helper's binary, in hex. Empty means any.
	Hash string
	// Timeout is the timeout of commands that set none; zero means DefaultTimeout.
	Timeout time.Duration
	// ExtendDeadline, if not nil, is called when a report is late or a file transfer
	// stalls. It returns how much longer to wait, for example because the sandbox was
	// paused; zero means that the deadline stands. The deadline of a cancelled command
	// or transfer is final.
	ExtendDeadline func() time.Duration
}

// readBufferSize is large enough for the frames of a small command, so that one read
// gets them. Larger reads bypass the buffer. It stays small because there may be
// hundreds of sandboxes, each with a buffer for its whole life.
const readBufferSize = 2 << 10

// Client runs commands and transfers files through a helper, one at a time, except for
// nested commands. Its methods are safe for concurrent use.
type Client struct {
	cfg      ClientConfig
	stream   io.ReadWriteCloser
	hello    Hello
	sem      chan struct{} // semaphore of capacity 1 for Execute, Put and Get
	outbox   chan Frame
	streams  chan Frame    // frames of streams, which are sent when outbox has none
	hellos   chan Hello    // capacity 1
	gotHello bool          // used by the reader only
	done     chan struct{} // closed when the connection has ended
	workers  sync.WaitGroup

	mu       sync.Mutex
	err      error
	calls    map[uint32]*call // the running command, if any, and its nested commands
	transfer *transfer        // the running file transfer, if any
	lastID   uint32

	extending sync.Mutex // serializes calls of ExtendDeadline for commands
}

// Dial opens the connection: it sends Setup, waits for Hello and verifies the helper.
// The client then owns the stream, even if Dial fails. Closing the stream must unblock
// its Read and Write.
func Dial(ctx context.Context, stream io.ReadWriteCloser, cfg ClientConfig) (*Client, error) {
	cfg.Setup.Version = Version
	cfg.Timeout = orDefault(cfg.Timeout, DefaultTimeout)
	c := &Client{
		cfg:    cfg,
		stream: stream,
		sem:    make(chan struct{}, 1),
		outbox: make(chan Frame), streams: make(chan Frame),
		hellos: make(chan Hello, 1),
		done:   make(chan struct{}),
		calls:  map[uint32]*call{},
	}
	c.workers.Go(c.read)
	c.workers.Go(c.write)
	if err := c.handshake(ctx); err != nil {
		_ = c.Close() // Close returns no error
		return nil, fmt.Errorf("connect to helper: %w", err)
	}
	return c, nil
}

// Hello returns the helper's description of itself and its sandbox.
func (c *Client) Hello() Hello { return c.hello }

// Err returns the reason why the connection has ended; nil while it is open.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection. The helper then kills its commands and exits. The error of
// a running command or transfer wraps env.ErrClosed.
func (c *Client) Close() error {
	c.end(env.ErrClosed)
	c.workers.Wait()
	return nil
}

// MapError returns the error to report for a command or transfer that returned err. It
// is err if err is nil or the connection is open, env.ErrClosed after Close, and
// lost(reason) if the connection was lost for that reason. The latter two are joined
// with the cause of ctx if ctx has ended.
func (c *Client) MapError(ctx context.Context, err error, lost func(reason error) error) error {
	reason := c.Err()
	switch {
	case err == nil || reason == nil:
		return err
	case errors.Is(reason, env.ErrClosed):
		return errors.Join(context.Cause(ctx), env.ErrClosed)
	}
	return errors.Join(context.Cause(ctx), lost(reason))
}

// CloseWithError ends the connection with a reason that the caller knows and the stream
// does not show, such as the exit of the container. Err returns this reason, and the
// error of a running command or transfer wraps it.
func (c *Client) CloseWithError(reason error) { c.end(reason) }

// end closes the stream and records the reason. Only the first call has an effect.
func (c *Client) end(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = reason
	close(c.done)
	_ = c.stream.Close() // the stream is not used any more
}

// read handles incoming frames. It always reads while the connection is open, except
// while Command.Sink or OnOutput blocks, so that the helper is not blocked and
// unexpected frames are noticed at once.
func (c *Client) read() {
	r := bufio.NewReaderSize(c.stream, readBufferSize)
	for {
		f, err := ReadFrame(r, MaxHelperFrame)
		switch {
		case errors.Is(err, ErrFrame):
			c.end(err)
			return
		case err != nil:
			c.end(fmt.Errorf("%w: %w", ErrDisconnected, err))
			return
		}
		if err := c.accept(f); err != nil {
			c.end(err)
			return
		}
	}
}

// write sends all outgoing frames. It is the only writer, so that a keepalive does not
// interrupt another frame.
func (c *Client) write() {
	var tick <-chan time.Time
	if lease := time.Duration(c.cfg.Setup.LeaseSeconds) * time.Second; lease > 0 {
		t := time.NewTicker(lease / 4)
		defer t.Stop()
		tick = t.C
	}
	for {
		f := Frame{Kind: KindKeepalive}
		select {
		case <-c.done:
			return
		case f = <-c.outbox:
		case <-tick:
		default: // frames of streams never delay others
			select {
			case <-c.done:
				return
			case f = <-c.outbox:
			case <-tick:
			case f = <-c.streams:
			}
		}
		if err := WriteFrame(c.stream, f); err != nil {
			c.end(fmt.Errorf("%w: %w", ErrDisconnected, err))
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
