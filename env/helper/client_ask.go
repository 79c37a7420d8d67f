package helper

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/minibench/mini/env"
)

// Why requests end before they are answered.
var (
	// errOver is of everything inside of a command that is over.
	errOver = fmt.Errorf("the command that was to be run inside of is over: %w", env.ErrClosed)
	errGone = errors.New("whoever asked is gone")
)

// desk answers the requests of one call. A nil desk has none to answer.
type desk struct {
	client *Client
	call   *call
	tools  *env.Tools
	ctx    context.Context //nolint:containedctx // of the call's Execute, for the goroutines that the reader starts
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	// Guarded by the client's mu.
	last  uint32
	under map[uint32]func() // the requests under way, and what ends them
	// sending counts the answers that the helper has not taken yet.
	sending int
}

// maxSending bounds answers that wait to be written: an honest helper asks no more
// than MaxAsks before it has taken some.
const maxSending = 4 * MaxAsks

func newDesk(ctx context.Context, c *Client, k *call, tools *env.Tools) *desk {
	d := &desk{client: c, call: k, tools: tools, under: map[uint32]func(){}}
	d.ctx, d.cancel = context.WithCancelCause(ctx)
	return d
}

// close ends what is under way, and waits for it. The reader has left the call.
func (d *desk) close() {
	if d == nil {
		return
	}
	d.cancel(errOver)
	d.work.Wait()
}

// acceptRequest files a request, or the news that nobody awaits its answer.
func (c *Client) acceptRequest(f Frame) error {
	n, body, err := CutNumber(f.Body)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[f.ID]
	if call == nil || call.desk == nil {
		return fmt.Errorf("%w: a request of command %d, which may not ask", ErrFrame, f.ID)
	}
	d := call.desk
	if f.Kind == KindGone {
		if n > d.last || len(body) > 0 {
			return fmt.Errorf("%w: request %d is gone, of %d", ErrFrame, n, d.last)
		}
		if end := d.under[n]; end != nil { // otherwise the answer crosses it on the way
			end()
		}
		return nil
	}
	return d.take(n, body)
}

// take begins to answer a request. The lock is held.
func (d *desk) take(n uint32, body []byte) error {
	ask, err := DecodeAsk(body)
	switch {
	case err != nil:
		return err
	case n != d.last+1:
		return fmt.Errorf("%w: request %d after %d", ErrFrame, n, d.last)
	case len(d.under) >= MaxAsks:
		return fmt.Errorf("%w: more than %d requests at once", ErrFrame, MaxAsks)
	case d.sending >= maxSending:
		return fmt.Errorf("%w: requests, and %d answers are not taken", ErrFrame, d.sending)
	}
	d.last = n
	release := d.call.clock.Hold()
	ctx, cancel := context.WithCancelCause(d.ctx)
	d.under[n] = func() {
		release()
		cancel(errGone)
	}
	request := env.ToolRequest{
		Args: ask.Args, Dir: ask.Dir, Input: ask.Input,
		Inside: &inside{client: d.client, outer: d.call, turn: make(chan struct{}, 1)},
	}
	d.work.Go(func() {
		defer cancel(nil)
		answer := d.answer(ctx, request)
		d.client.mu.Lock()
		delete(d.under, n)
		d.sending++
		d.client.mu.Unlock()
		release()
		d.send(n, answer)
		d.client.mu.Lock()
		d.sending--
		d.client.mu.Unlock()
	})
	return nil
}

// answer asks whoever knows. What panics there must not end the program: the
// request is the sandbox's.
func (d *desk) answer(ctx context.Context, r env.ToolRequest) (a env.ToolAnswer) {
	defer func() {
		if p := recover(); p != nil {
			a = env.ToolAnswer{Errors: fmt.Appendf(nil, "the tool failed: %.500v\n", p), ExitCode: 1}
		}
	}()
	if d.tools.Answer == nil {
		return env.ToolAnswer{Errors: []byte("nobody answers here\n"), ExitCode: 1}
	}
	return d.tools.Answer(ctx, r)
}

// send brings an answer on its way, unless there is nobody left for it.
func (d *desk) send(n uint32, a env.ToolAnswer) {
	body, err := bounded(a).Encode()
	if err != nil {
		body, _ = Answer{Errors: []byte("the answer cannot be sent\n"), ExitCode: 1}.Encode() // it is short
	}
	select {
	case d.client.outbox <- Frame{Kind: KindAnswer, ID: d.call.id, Body: WithNumber(n, body)}:
	case <-d.client.over:
	case <-d.call.done:
	}
}

// bounded cuts an answer to env.MaxToolAnswer, first what is longer: output or
// errors. The errors say so.
func bounded(a env.ToolAnswer) Answer {
	out, errs := a.Output, a.Errors
	if len(out)+len(errs) > env.MaxToolAnswer {
		word := fmt.Appendf(nil, "\n[the answer was cut: %d bytes of output and %d of errors, and %d can be sent]\n", len(out), len(errs), env.MaxToolAnswer)
		room := env.MaxToolAnswer - len(word)
		if len(errs) > room/2 {
			errs = errs[:max(room/2, room-len(out))]
		}
		out = out[:min(len(out), room-len(errs))]
		errs = append(errs[:len(errs):len(errs)], word...)
	}
	return Answer{Output: out, Errors: errs, ExitCode: a.ExitCode}
}

// enter puts k inside of outer, or says why it cannot be there. The lock is
// held.
func (c *Client) enter(k, outer *call) (env.Result, error) {
	k.outer, k.depth = outer, outer.depth+1
	inside := 0
	for _, other := range c.calls {
		if other.outer != nil {
			inside++
		}
	}
	switch {
	case c.err != nil:
		return env.Result{}, c.err
	case c.calls[outer.id] != outer:
		return env.Result{}, errOver
	case k.depth > MaxDepth:
		return refused(fmt.Sprintf("commands run inside of each other %d deep at most", MaxDepth)), nil
	case inside >= MaxInside:
		return refused(fmt.Sprintf("at most %d commands run inside of others at once", MaxInside)), nil
	}
	return env.Result{}, nil
}

func (k *call) outerClock() *Clock {
	if k.outer == nil {
		return nil
	}
	return k.outer.clock
}

// inside is the sandbox as a request sees it.
type inside struct {
	client *Client
	outer  *call
	turn   chan struct{} // of capacity one: who has put a token in may run
}

var _ env.Environment = (*inside)(nil)

// Execute runs one command within the asking one.
func (i *inside) Execute(ctx context.Context, cmd env.Command) (env.Result, error) {
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-i.outer.done:
		return env.Result{}, errOver
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // select picks at random when both are ready
		return env.Result{}, context.Cause(ctx)
	}
	return i.client.execute(ctx, cmd, i.outer)
}

// Info is what the helper says.
func (i *inside) Info() env.Info { return i.client.hello.Info() }

// Close does nothing: it ends with the asking command.
func (i *inside) Close(context.Context) error { return nil }

// Inside has the requests of tools see the sandbox as its owner shows it: with
// its Info, and with commands run by execute, which is given the sandbox as the
// client has it. tools may be nil, and then so is what comes back.
func Inside(tools *env.Tools, info env.Info, execute func(ctx context.Context, within env.Environment, c env.Command) (env.Result, error)) *env.Tools {
	if tools == nil || tools.Answer == nil {
		return tools
	}
	return &env.Tools{
		Local: tools.Local,
		Answer: func(ctx context.Context, r env.ToolRequest) env.ToolAnswer {
			r.Inside = &shown{Environment: r.Inside, info: info, execute: execute}
			return tools.Answer(ctx, r)
		},
	}
}

// shown is an environment as its owner shows it.
type shown struct {
	env.Environment
	info    env.Info
	execute func(context.Context, env.Environment, env.Command) (env.Result, error)
}

// Execute is the owner's.
func (s *shown) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	c.Tools = Inside(c.Tools, s.info, s.execute)
	return s.execute(ctx, s.Environment, c)
}

// Info is the owner's.
func (s *shown) Info() env.Info { return s.info }
