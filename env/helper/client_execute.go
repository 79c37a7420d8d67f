package helper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minibench/mini/env"
)

// maxTimeout is the maximum timeout of a command, below the 365 days that the helper
// accepts.
const maxTimeout = 300 * 24 * time.Hour

// Execute runs one command and returns its result. It waits for commands of other
// goroutines.
//
// An error that is neither the context's cause nor wraps env.ErrSink means that the
// connection has ended: it wraps ErrFrame, ErrDisconnected, ErrNoResponse,
// ErrHelperFailed, env.ErrClosed or the reason given to CloseWithError. When ctx ends
// while the command runs, the command is cancelled. Execute then waits for the report
// for a limited time and returns the partial result with the context's cause; if no
// report arrives, the error also wraps the reason why the connection ended, such as
// ErrNoResponse. A failing sink has the same effect as the end of ctx, but the error
// wraps env.ErrSink.
//
// Execute buffers no more output than the command's limit, or env.SubmissionLimit if
// that is larger and the command has submission markers. If cmd.Tools is not nil, up to
// MaxToolRequests requests are handled at once, and all handlers have returned when
// Execute returns.
func (c *Client) Execute(ctx context.Context, cmd env.Command) (env.Result, error) {
	if err := c.acquire(ctx); err != nil {
		return env.Result{}, err
	}
	defer func() { <-c.sem }()
	return c.execute(ctx, cmd, nil)
}

// execute runs a command, nested in outer unless that is nil.
func (c *Client) execute(ctx context.Context, cmd env.Command, outer *call) (env.Result, error) {
	if len(cmd.Script) > env.MaxScript {
		return notRun(fmt.Sprintf("the command has %d bytes; at most %d can be run", len(cmd.Script), env.MaxScript)), nil
	}
	if cmd.Bridge != nil && (cmd.Tools != nil || outer != nil) {
		return notRun("a command with a bridge can neither call tools nor be nested"), nil
	}
	run := c.settings(cmd)
	if outer != nil {
		run.Outer = outer.id
	}
	body, err := EncodeRun(run, cmd.Script)
	if errors.Is(err, ErrFrame) {
		return notRun("the command and its variables are too large to be run"), nil
	}
	if err != nil {
		return env.Result{}, err
	}
	call, result, err := c.newCall(ctx, run, cmd, outer)
	if call == nil {
		return result, err
	}
	res, err := c.await(ctx, call, Frame{Kind: KindRun, ID: call.id, Body: body}, run)
	c.removeCall(call)
	call.tools.close()
	call.bridge.close()
	if sinkErr := call.stream.close(); sinkErr != nil && !errors.Is(err, env.ErrSink) {
		err = errors.Join(err, sinkErr)
	}
	return res, err
}

// acquire waits for the semaphore. Receiving from c.sem releases it.
func (c *Client) acquire(ctx context.Context) error {
	if err := c.Err(); err != nil {
		return err
	}
	select {
	case c.sem <- struct{}{}:
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if ctx.Err() != nil { // select picks at random when both are ready
		<-c.sem
		return context.Cause(ctx)
	}
	return nil
}

// await sends the request and waits for the command's report, the deadline of the
// report, or the end of the connection, whichever comes first. If ctx ends or the sink
// fails meanwhile, await cancels the command and waits at most cancelTimeout longer.
func (c *Client) await(ctx context.Context, call *call, request Frame, run Run) (env.Result, error) {
	start := time.Now()
	wait := reportTimeout(run)
	expired := call.deadline.C()
	defer call.deadline.Stop()
	outbox, cancelled, extend := c.outbox, ctx.Done(), c.extendDeadline
	failures, reason := call.stream.failures, error(nil) // reason is why the command is cancelled
	for {
		select {
		case outbox <- request:
			outbox = nil // sent; a nil channel is never ready
		case <-call.done:
			return call.report(time.Since(start)), c.reportError(call, reason)
		case <-cancelled:
			reason = context.Cause(ctx)
		case reason = <-failures:
		case <-c.done:
			if call.isFinished() { // the report was the last frame
				return call.report(time.Since(start)), c.reportError(call, reason)
			}
			c.removeCall(call)
			return call.partial(time.Since(start)), errors.Join(reason, c.Err())
		case <-expired:
			if extend != nil && extend(call) {
				continue
			}
			c.end(fmt.Errorf("%w: no report of a command in %s", ErrNoResponse, wait))
			c.removeCall(call)
			return call.partial(time.Since(start)), errors.Join(reason, c.Err())
		}
		if reason == nil || failures == nil && cancelled == nil {
			continue // not cancelled, or cancelled before
		}
		if outbox != nil && request.Kind == KindRun { // the command was not sent
			return env.Result{}, reason
		}
		failures, cancelled, extend = nil, nil, nil // the deadline is final now
		outbox, request = c.outbox, Frame{Kind: KindCancel, ID: call.id}
		wait = cancelTimeout
		timer := time.NewTimer(wait)
		defer timer.Stop()
		expired = timer.C
	}
}

// reportError returns the error of a command whose report has arrived; reason is why
// the client cancelled it, if it did. If the helper reports a command as cancelled that
// the client did not cancel, the result is not valid: the helper has seen the end of
// one of the two streams and believes that the client is gone.
func (c *Client) reportError(k *call, reason error) error {
	switch {
	case k.lost != nil:
		return errors.Join(reason, k.lost)
	case k.exit.OuterEnded:
		return errors.Join(reason, errOuterEnded)
	case reason != nil || !k.exit.Cancelled:
		return reason
	}
	c.end(fmt.Errorf("%w: helper considered the connection closed and killed the command", ErrDisconnected))
	return c.Err()
}

// settings converts a command to a Run, fills in defaults and restricts the limits to
// what the helper accepts. The client verifies that the helper respects the limits.
func (c *Client) settings(cmd env.Command) Run {
	timeout := min(orDefault(cmd.Timeout, c.cfg.Timeout), maxTimeout)
	limit := cmd.OutputLimit
	if limit <= 0 {
		limit = env.DefaultOutputLimit
	}
	maxLimit := env.SubmissionLimit
	if cmd.Sink != nil {
		maxLimit = env.SinkLimit
	}
	r := Run{
		Dir:           cmd.Dir,
		Env:           cmd.Env,
		User:          cmd.User,
		Interpreter:   cmd.Interpreter,
		TimeoutMillis: max(timeout.Milliseconds(), 1),
		OutputLimit:   min(max(limit, env.MinOutputLimit), maxLimit),
		Markers:       cmd.SubmissionMarkers,
		Bridge:        cmd.Bridge != nil,
	}
	if cmd.Tools != nil {
		r.AllowTools, r.LocalTools = true, cmd.Tools.InSandbox
	}
	return r
}

// newCall creates and registers a call. If it cannot, it returns nil and either an
// error or a Result with a Failure.
func (c *Client) newCall(ctx context.Context, run Run, cmd env.Command, outer *call) (*call, env.Result, error) {
	limit := run.OutputLimit
	if len(run.Markers) > 0 {
		limit = max(limit, env.SubmissionLimit)
	}
	k := &call{limit: limit, done: make(chan struct{})}
	k.stream.onOutput = cmd.OnOutput
	c.mu.Lock()
	defer c.mu.Unlock()
	k.id = c.nextID()
	if outer != nil {
		if result, err := c.nest(k, outer); result.Failure != "" || err != nil {
			return nil, result, err
		}
	}
	k.deadline = NewPausableTimer(reportTimeout(run), k.outerDeadline())
	if cmd.Tools != nil {
		k.tools = newToolServer(ctx, c, k, cmd.Tools)
	}
	if cmd.Bridge != nil {
		k.bridge = &bridge{open: cmd.Bridge, streams: NewStreams(c.sendStream, false)}
	}
	if w := cmd.Sink; w != nil {
		k.stream.sink, k.stream.failures = w, make(chan error, 1)
	}
	c.calls[k.id] = k
	return k, env.Result{}, nil
}

// reportTimeout returns how long the report of a command may take.
func reportTimeout(run Run) time.Duration {
	return time.Duration(run.TimeoutMillis)*time.Millisecond + ReportGrace
}

// extendDeadline asks ClientConfig.ExtendDeadline for more time when the report of a
// call is late, and reports whether there is more. The time is added to the deadlines
// of all calls.
func (c *Client) extendDeadline(k *call) bool {
	if c.cfg.ExtendDeadline == nil {
		return false
	}
	c.extending.Lock()
	defer c.extending.Unlock()
	if k.deadline.Remaining() > 0 {
		return true // extended for another call
	}
	extension := c.cfg.ExtendDeadline()
	if extension <= 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.calls {
		other.deadline.Extend(extension)
	}
	return true
}

// nextID returns a new id. The caller holds the lock.
func (c *Client) nextID() uint32 {
	c.lastID++
	if c.lastID == 0 { // 0 means "no command"
		c.lastID++
	}
	return c.lastID
}

// removeCall unregisters a call, so that the reader no longer accesses it.
func (c *Client) removeCall(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[k.id] == k {
		c.finish(k)
	}
}

func notRun(reason string) env.Result {
	return env.Result{ExitCode: -1, OOMKilled: -1, Failure: reason}
}
