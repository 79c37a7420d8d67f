package helper

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/minibench/mini/env"
)

// call is a running command and the part of its result received so far.
type call struct {
	id       uint32
	limit    int    // maximum bytes of output
	received int64  // bytes of output received
	output   []byte // the output received, unless there is a sink
	stream   outputStream
	tools    *toolServer    // nil if the command may not call tools
	bridge   *bridge        // nil if the command has none
	outer    *call          // nil if the command is not nested
	depth    int            // nesting depth
	deadline *PausableTimer // for the report
	exit     Exit
	lost     error         // why there is no exit: the outer call or the connection ended
	done     chan struct{} // closed when the call is unregistered
}

// accept processes one frame. It returns an error if the frame violates the protocol or
// reports that the helper failed.
func (c *Client) accept(f Frame) error {
	switch f.Kind {
	case KindHello:
		return c.acceptHello(f)
	case KindOutput, KindExit:
		return c.acceptReport(f)
	case KindData, KindWindowUpdate, KindDone:
		return c.acceptTransfer(f)
	case KindToolRequest, KindToolCancel:
		return c.acceptRequest(f)
	case KindOpen, KindStreamData, KindStreamCredit, KindStreamClose:
		return c.acceptStream(f)
	case KindError:
		return fmt.Errorf("%w: %.1024q", ErrHelperFailed, f.Body)
	default:
		return fmt.Errorf("%w: unexpected kind %q", ErrFrame, byte(f.Kind))
	}
}

func (c *Client) acceptHello(f Frame) error {
	var h Hello
	if err := json.Unmarshal(f.Body, &h); err != nil {
		return fmt.Errorf("%w: hello: %w", ErrFrame, err)
	}
	if c.gotHello {
		return fmt.Errorf("%w: duplicate hello", ErrFrame)
	}
	c.gotHello = true
	c.hellos <- h
	return nil
}

func (c *Client) acceptReport(f Frame) error {
	call, err := c.storeReport(f)
	if err == nil && f.Kind == KindOutput {
		call.stream.write(f.Body) // without the lock, because it may block
	}
	return err
}

// storeReport validates a report and stores it in its call, except for the output of a
// call with a sink.
func (c *Client) storeReport(f Frame) (*call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[f.ID]
	switch {
	case call == nil:
		return nil, fmt.Errorf("%w: report for command %d, which is not running", ErrFrame, f.ID)
	case f.Kind == KindOutput && len(f.Body) > MaxChunk:
		return nil, fmt.Errorf("%w: chunk of %d bytes, allowed %d", ErrFrame, len(f.Body), MaxChunk)
	case f.Kind == KindOutput && call.received+int64(len(f.Body)) > int64(call.limit):
		return nil, fmt.Errorf("%w: more output than the requested %d bytes", ErrFrame, call.limit)
	case f.Kind == KindOutput:
		call.received += int64(len(f.Body))
		if call.stream.failures == nil {
			call.output = append(call.output, f.Body...)
		}
		return call, nil
	}
	if err := json.Unmarshal(f.Body, &call.exit); err != nil {
		return nil, fmt.Errorf("%w: exit: %w", ErrFrame, err)
	}
	if err := call.check(); err != nil {
		return nil, err
	}
	c.finish(call) // a second Exit is then rejected as one for a command that is not running
	return call, nil
}

// finish ends a call and the calls still nested in it, for which the helper sends no
// report. The caller holds the lock.
func (c *Client) finish(k *call) {
	delete(c.calls, k.id)
	for _, inner := range c.calls {
		if inner.outer == k {
			inner.lost = cmp.Or(c.err, errOuterEnded)
			c.finish(inner)
		}
	}
	close(k.done)
}

// check validates the exit against the output received before it.
func (k *call) check() error {
	exit, received := k.exit, k.received
	switch {
	case !exit.Truncated && exit.Bytes != received,
		exit.Truncated && exit.Bytes <= received:
		return fmt.Errorf("%w: %d bytes of output reported, %d received", ErrFrame, exit.Bytes, received)
	case exit.Truncated && (exit.Head < 0 || int64(exit.Head) > received):
		return fmt.Errorf("%w: head of %d bytes in an output of %d", ErrFrame, exit.Head, received)
	case exit.Chars < 0 || exit.Chars > exit.Bytes:
		return fmt.Errorf("%w: %d characters in %d bytes", ErrFrame, exit.Chars, exit.Bytes)
	case exit.Killed < 0 || exit.Survivors < 0 || exit.OOMKilled < -1 || len(exit.Background) > env.MaxBackground:
		return fmt.Errorf("%w: counts of the exit are out of range", ErrFrame)
	case exit.OuterEnded && k.outer == nil:
		return fmt.Errorf("%w: exit of a nested command for a command that is not nested", ErrFrame)
	}
	return nil
}

func (k *call) isFinished() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// report returns the result of a finished call, as far as it is known.
func (k *call) report(elapsed time.Duration) env.Result {
	if k.lost != nil {
		return k.partial(elapsed)
	}
	return k.result(elapsed)
}

// result returns the helper's result with the output. The duration is the helper's,
// restricted to 0 to elapsed.
func (k *call) result(elapsed time.Duration) env.Result {
	r := k.exit.Result
	r.Output, r.Duration = k.output, min(max(r.Duration, 0), elapsed)
	if !r.Truncated {
		r.Head = int(k.received)
	}
	return r
}

// partial returns the result of a command without a report from the helper.
func (k *call) partial(elapsed time.Duration) env.Result {
	return env.Result{
		Output:    k.output,
		Head:      int(k.received),
		Bytes:     k.received,
		ExitCode:  -1,
		Duration:  elapsed,
		OOMKilled: -1,
	}
}
