package helper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/sink"
)

// maxTimeout is the longest timeout that the helper accepts, with room to spare.
const maxTimeout = 300 * 24 * time.Hour

// Execute runs one command and returns its report. It waits its turn behind
// commands of other goroutines.
//
// An error that is not the context's cause means that the conversation is
// over: it wraps ErrFrame, ErrLost, ErrSilent, ErrFault or env.ErrClosed. When
// ctx ends in mid-command the command is cancelled, its report awaited for a
// bounded time, and the context's cause returned with what is known; when the
// report does not come the error wraps ErrSilent as well. A sink that fails does
// the same, with an error that wraps env.ErrSink.
//
// No more output is ever held than the command asked for. Where cmd.Tools is not
// nil, requests are answered, MaxAsks at once, and the last one has been when
// Execute returns.
func (c *Client) Execute(ctx context.Context, cmd env.Command) (env.Result, error) {
	if err := c.take(ctx); err != nil {
		return env.Result{}, err
	}
	defer func() { <-c.turn }()
	return c.execute(ctx, cmd, nil)
}

// execute runs a command by itself, in its turn, or inside of a call.
func (c *Client) execute(ctx context.Context, cmd env.Command, outer *call) (env.Result, error) {
	if len(cmd.Script) > env.MaxScript {
		return refused(fmt.Sprintf("the command has %d bytes; at most %d can be run", len(cmd.Script), env.MaxScript)), nil
	}
	run := c.settings(cmd)
	if outer != nil {
		run.Inside = outer.id
	}
	body, err := EncodeRun(run, cmd.Script)
	if errors.Is(err, ErrFrame) {
		return refused("the command and its variables are too large to be run"), nil
	}
	if err != nil {
		return env.Result{}, err
	}
	call, why, err := c.begin(ctx, run, cmd, outer)
	if call == nil {
		return why, err
	}
	defer call.watch.end()
	defer call.desk.close()
	defer c.leave(call)
	res, err := c.await(ctx, call, Frame{Kind: KindRun, ID: call.id, Body: body}, run)
	if call.sink != nil {
		// The first failure is the one that ended the command.
		if failed := call.sink.Close(); failed != nil && !errors.Is(err, env.ErrSink) {
			err = errors.Join(err, failed)
		}
	}
	return res, err
}

// take waits for the turn. Receiving from c.turn gives it back.
func (c *Client) take(ctx context.Context) error {
	if err := c.Err(); err != nil {
		return err
	}
	select {
	case c.turn <- struct{}{}:
	case <-c.over:
		return c.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if ctx.Err() != nil { // select picks at random when both are ready
		<-c.turn
		return context.Cause(ctx)
	}
	return nil
}

// await sends the request and waits for its report, for the end of its time,
// or for the end of everything, whichever comes first.
func (c *Client) await(ctx context.Context, call *call, request Frame, run Run) (env.Result, error) {
	start := time.Now()
	budget := c.budget(run)
	late := call.clock.Expired()
	defer call.clock.Stop()
	outbox, cancelled, overdue := c.outbox, ctx.Done(), c.reprieve
	broken, why := call.broken, error(nil)
	for {
		select {
		case outbox <- request:
			outbox = nil // sent; a nil channel is never ready
		case <-call.done:
			return call.report(time.Since(start)), c.verdict(call, why)
		case <-cancelled:
			why = context.Cause(ctx)
		case why = <-broken:
		case <-c.over:
			if call.finished() { // the report was the last thing to come
				return call.report(time.Since(start)), c.verdict(call, why)
			}
			c.leave(call)
			return call.partial(time.Since(start)), errors.Join(why, c.Err())
		case <-late:
			if overdue != nil && overdue(call) {
				continue
			}
			c.end(fmt.Errorf("%w: no report of a command in %s", ErrSilent, budget))
			c.leave(call)
			return call.partial(time.Since(start)), errors.Join(why, c.Err())
		}
		if why == nil || broken == nil && cancelled == nil {
			continue // nothing is to be cancelled, or it was
		}
		if outbox != nil && request.Kind == KindRun { // it never left
			return env.Result{}, why
		}
		broken, cancelled, overdue = nil, nil, nil // nobody waits for it much longer
		outbox, request = c.outbox, Frame{Kind: KindCancel, ID: call.id}
		budget = cancelWait
		timer := time.NewTimer(budget)
		defer timer.Stop()
		late = timer.C
	}
}

// verdict is what is wrong with a report that has come; why is what the client
// had against the command. Where it had nothing, and the helper ended the command
// all the same, the helper has lost its client, be it only on one of the ways
// between them: what it killed half way has no result.
func (c *Client) verdict(k *call, why error) error {
	switch {
	case k.lost != nil:
		return errors.Join(why, k.lost)
	case k.exit.Over:
		return errors.Join(why, errOver)
	case why != nil || !k.exit.Cancelled:
		return why
	}
	c.end(fmt.Errorf("%w: the helper took the conversation for ended, and killed the command", ErrLost))
	return c.Err()
}

// settings fills in what the command leaves open. The bounds are those the
// helper keeps; the client holds it to them.
func (c *Client) settings(cmd env.Command) Run {
	timeout := min(orDefault(cmd.Timeout, c.cfg.Timeout), maxTimeout)
	limit := cmd.OutputLimit
	if limit <= 0 {
		limit = env.DefaultOutputLimit
	}
	most := env.SubmissionLimit
	if cmd.Sink != nil {
		most = env.SinkLimit
	}
	r := Run{
		Dir:           cmd.Dir,
		Env:           cmd.Env,
		Interpreter:   cmd.Interpreter,
		TimeoutMillis: max(timeout.Milliseconds(), 1),
		OutputLimit:   min(max(limit, env.MinOutputLimit), most),
		Markers:       cmd.Markers,
	}
	if cmd.Tools != nil {
		r.Asks, r.Local = true, cmd.Tools.Local
	}
	return r
}

// begin makes a call, or says why not.
func (c *Client) begin(ctx context.Context, run Run, cmd env.Command, outer *call) (*call, env.Result, error) {
	limit := run.OutputLimit
	if len(run.Markers) > 0 {
		limit = max(limit, env.SubmissionLimit)
	}
	k := &call{limit: limit, done: make(chan struct{})}
	k.watch.show = cmd.Watch
	c.mu.Lock()
	defer c.mu.Unlock()
	k.id = c.nextID()
	if outer != nil {
		if why, err := c.enter(k, outer); why.Failure != "" || err != nil {
			return nil, why, err
		}
	}
	k.clock = NewClock(c.budget(run), k.outerClock())
	if cmd.Tools != nil {
		k.desk = newDesk(ctx, c, k, cmd.Tools)
	}
	if w := cmd.Sink; w != nil {
		broken := make(chan error, 1)
		k.broken, k.sink = broken, sink.New(w, func(err error) { broken <- err })
	}
	c.calls[k.id] = k
	return k, env.Result{}, nil
}

// budget is how long a report may take.
func (c *Client) budget(run Run) time.Duration {
	return time.Duration(run.TimeoutMillis)*time.Millisecond + Grace
}

// reprieve says that there is a reason why the report of a call is late, and
// waits longer. One reason is good for every call under way.
func (c *Client) reprieve(k *call) bool {
	if c.cfg.Overdue == nil {
		return false
	}
	c.excusing.Lock()
	defer c.excusing.Unlock()
	if k.clock.Left() > 0 {
		return true // another call's reason was good for this one
	}
	more := c.cfg.Overdue()
	if more <= 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.calls {
		other.clock.Extend(more)
	}
	return true
}

// nextID is called with the lock held.
func (c *Client) nextID() uint32 {
	c.last++
	if c.last == 0 { // 0 means "no command"
		c.last++
	}
	return c.last
}

// leave makes sure that the reader no longer touches the call.
func (c *Client) leave(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[k.id] == k {
		c.finish(k)
	}
}

func refused(why string) env.Result {
	return env.Result{ExitCode: -1, OOMKilled: -1, Failure: why}
}
