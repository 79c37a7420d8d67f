package helper

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/sink"
)

// call is a command under way and what has come of it so far.
type call struct {
	id     uint32
	limit  int          // bytes of output that were asked for
	kept   int64        // how many arrived
	output []byte       // they, unless there is a sink
	sink   *sink.Sink   // nil where nobody asked for one
	watch  watch        // likewise
	broken <-chan error // why the sink is of no use any more; nil without one
	desk   *desk        // answers its requests; nil where it may not ask
	outer  *call        // what it runs inside of; nil where it runs by itself
	depth  int          // how many calls it is inside of
	clock  *Clock       // when its report is late
	exit   Exit
	lost   error         // why no exit came: its outer call ended
	done   chan struct{} // closed when exit or lost is set
}

// accept files one frame where it belongs, or says which rule it breaks.
func (c *Client) accept(f Frame) error {
	switch f.Kind {
	case KindHello:
		return c.acceptHello(f)
	case KindOutput, KindExit:
		return c.acceptReport(f)
	case KindData, KindMore, KindDone:
		return c.acceptTransfer(f)
	case KindAsk, KindGone:
		return c.acceptRequest(f)
	case KindFault:
		return fmt.Errorf("%w: %.1024q", ErrFault, f.Body)
	default:
		return fmt.Errorf("%w: unexpected kind %q", ErrFrame, byte(f.Kind))
	}
}

func (c *Client) acceptHello(f Frame) error {
	var h Hello
	if err := json.Unmarshal(f.Body, &h); err != nil {
		return fmt.Errorf("%w: hello: %w", ErrFrame, err)
	}
	if c.met {
		return fmt.Errorf("%w: a second hello", ErrFrame)
	}
	c.met = true
	c.greeted <- h
	return nil
}

func (c *Client) acceptReport(f Frame) error {
	call, err := c.file(f)
	if err == nil && f.Kind == KindOutput {
		call.watch.see(f.Body)
		if call.sink != nil {
			// Without the lock: it may take its time. Execute is told when it fails.
			_, _ = call.sink.Write(f.Body)
		}
	}
	return err
}

// file puts a report where it belongs, but for the output of a call with a
// sink.
func (c *Client) file(f Frame) (*call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[f.ID]
	return call, c.takeReport(call, f)
}

// takeReport holds a report against the rules, and keeps it. The lock is held.
func (c *Client) takeReport(call *call, f Frame) error {
	switch {
	case call == nil:
		return fmt.Errorf("%w: report on command %d, which does not run", ErrFrame, f.ID)
	case f.Kind == KindOutput && len(f.Body) > MaxChunk:
		return fmt.Errorf("%w: chunk of %d bytes, allowed %d", ErrFrame, len(f.Body), MaxChunk)
	case f.Kind == KindOutput && call.kept+int64(len(f.Body)) > int64(call.limit):
		return fmt.Errorf("%w: more output than the %d bytes asked for", ErrFrame, call.limit)
	case f.Kind == KindOutput:
		call.kept += int64(len(f.Body))
		if call.sink == nil {
			call.output = append(call.output, f.Body...)
		}
		return nil
	}
	if err := json.Unmarshal(f.Body, &call.exit); err != nil {
		return fmt.Errorf("%w: exit: %w", ErrFrame, err)
	}
	if err := call.check(); err != nil {
		return err
	}
	c.finish(call) // a second exit is a report on what does not run
	return nil
}

// finish ends a call, and those inside of it that have not ended: the helper
// says nothing more of them. The lock is held.
func (c *Client) finish(k *call) {
	delete(c.calls, k.id)
	for _, inner := range c.calls {
		if inner.outer == k {
			inner.lost = cmp.Or(c.err, errOver)
			c.finish(inner)
		}
	}
	close(k.done)
}

// check holds the report against the output that came before it.
func (k *call) check() error {
	x, kept := k.exit, k.kept
	switch {
	case !x.Truncated && x.Bytes != kept,
		x.Truncated && x.Bytes <= kept:
		return fmt.Errorf("%w: %d bytes of output reported, %d arrived", ErrFrame, x.Bytes, kept)
	case x.Truncated && (x.Head < 0 || int64(x.Head) > kept):
		return fmt.Errorf("%w: head of %d bytes in an output of %d", ErrFrame, x.Head, kept)
	case x.Chars < 0 || x.Chars > x.Bytes:
		return fmt.Errorf("%w: %d characters in %d bytes", ErrFrame, x.Chars, x.Bytes)
	case x.Killed < 0 || x.Survivors < 0 || x.OOMKilled < -1 || len(x.Background) > env.MaxBackground:
		return fmt.Errorf("%w: counts of the exit are out of bounds", ErrFrame)
	case x.Over && k.outer == nil:
		return fmt.Errorf("%w: a command that ran inside of none ended with another one", ErrFrame)
	}
	return nil
}

func (k *call) finished() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// report is what is known of a call that is done.
func (k *call) report(elapsed time.Duration) env.Result {
	if k.lost != nil {
		return k.partial(elapsed)
	}
	return k.result(elapsed)
}

// result is the report, with the output. The duration is the helper's, unless it claims
// more than has passed here.
func (k *call) result(elapsed time.Duration) env.Result {
	r := k.exit.Result
	r.Output, r.Duration = k.output, min(max(r.Duration, 0), elapsed)
	if !r.Truncated {
		r.Head = int(k.kept)
	}
	return r
}

// partial is what is known of a command whose report never came.
func (k *call) partial(elapsed time.Duration) env.Result {
	return env.Result{
		Output:    k.output,
		Head:      int(k.kept),
		Bytes:     k.kept,
		ExitCode:  -1,
		Duration:  elapsed,
		OOMKilled: -1,
	}
}
