package helper

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/minibench/mini/env"
)

// The causes with which the client cancels the handler of a tool request.
var (
	// errOuterEnded is also the error of nested commands whose outer command has ended.
	errOuterEnded = fmt.Errorf("outer command has ended: %w", env.ErrClosed)
	errCallerGone = errors.New("caller of the tool has exited")
)

// toolServer handles the tool requests of one call. A nil toolServer handles none.
type toolServer struct {
	client   *Client
	call     *call
	tools    *env.Tools
	ctx      context.Context //nolint:containedctx // of the call's Execute, for the goroutines that the reader starts
	cancel   context.CancelCauseFunc
	handlers sync.WaitGroup

	// Guarded by the client's mu.
	lastNumber uint32
	running    map[uint32]func() // cancels the running requests, by number
	// sending is the number of responses that are not yet written.
	sending int
}

// maxSending is the number of unwritten responses at which a further request violates
// the protocol. A correct helper sends at most MaxToolRequests requests before it has
// read some responses.
const maxSending = 4 * MaxToolRequests

func newToolServer(ctx context.Context, c *Client, k *call, tools *env.Tools) *toolServer {
	s := &toolServer{client: c, call: k, tools: tools, running: map[uint32]func(){}}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// close cancels the running requests and waits for their handlers. The call has been
// unregistered, so that no more requests arrive.
func (s *toolServer) close() {
	if s == nil {
		return
	}
	s.cancel(errOuterEnded)
	s.handlers.Wait()
}

// acceptRequest processes a tool request or its cancellation.
func (c *Client) acceptRequest(f Frame) error {
	n, body, err := CutRequestNumber(f.Body)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[f.ID]
	if call == nil || call.tools == nil {
		return fmt.Errorf("%w: tool request of command %d, which may not call tools", ErrFrame, f.ID)
	}
	s := call.tools
	if f.Kind == KindToolCancel {
		if n > s.lastNumber || len(body) > 0 {
			return fmt.Errorf("%w: cancellation of request %d after %d", ErrFrame, n, s.lastNumber)
		}
		if cancel := s.running[n]; cancel != nil { // otherwise the response has just been sent
			cancel()
		}
		return nil
	}
	return s.start(n, body)
}

// start starts the handler of a request. The caller holds the lock.
func (s *toolServer) start(n uint32, body []byte) error {
	req, err := DecodeToolRequest(body)
	switch {
	case err != nil:
		return err
	case n != s.lastNumber+1:
		return fmt.Errorf("%w: request %d after %d", ErrFrame, n, s.lastNumber)
	case len(s.running) >= MaxToolRequests:
		return fmt.Errorf("%w: more than %d requests at once", ErrFrame, MaxToolRequests)
	case s.sending >= maxSending:
		return fmt.Errorf("%w: request while %d answers are not read", ErrFrame, s.sending)
	}
	s.lastNumber = n
	resume := s.call.deadline.Pause()
	ctx, cancel := context.WithCancelCause(s.ctx)
	s.running[n] = func() {
		resume()
		cancel(errCallerGone)
	}
	request := env.ToolRequest{
		Args: req.Args, Dir: req.Dir, Stdin: req.Stdin,
		Nested: &nestedEnv{client: s.client, outer: s.call, sem: make(chan struct{}, 1)},
	}
	s.handlers.Go(func() {
		defer cancel(nil)
		response := s.handle(ctx, request)
		s.client.mu.Lock()
		delete(s.running, n)
		s.sending++
		s.client.mu.Unlock()
		resume()
		s.send(n, response)
		s.client.mu.Lock()
		s.sending--
		s.client.mu.Unlock()
	})
	return nil
}

// handle calls Tools.Handle. It recovers a panic, because the request comes from the
// sandbox and must not crash the program.
func (s *toolServer) handle(ctx context.Context, r env.ToolRequest) (resp env.ToolResponse) {
	defer func() {
		if p := recover(); p != nil {
			resp = env.ToolResponse{Stderr: fmt.Appendf(nil, "the tool failed: %.500v\n", p), ExitCode: 1}
		}
	}()
	if s.tools.Handle == nil {
		return env.ToolResponse{Stderr: []byte("nobody answers here\n"), ExitCode: 1}
	}
	return s.tools.Handle(ctx, r)
}

// send sends a response, unless the command has ended.
func (s *toolServer) send(n uint32, resp env.ToolResponse) {
	body, err := truncate(resp).Encode()
	if err != nil {
		body, _ = ToolResponse{Stderr: []byte("the answer cannot be sent\n"), ExitCode: 1}.Encode() // cannot fail, it is short
	}
	select {
	case s.client.outbox <- Frame{Kind: KindToolResponse, ID: s.call.id, Body: WithRequestNumber(n, body)}:
	case <-s.client.done:
	case <-s.call.done:
	}
}

// truncate returns a response of at most env.MaxToolResponse bytes. If resp is longer,
// Stdout and Stderr each keep up to half of the room, and more where the other needs
// less; a note is appended to Stderr.
func truncate(resp env.ToolResponse) ToolResponse {
	stdout, stderr := resp.Stdout, resp.Stderr
	if len(stdout)+len(stderr) > env.MaxToolResponse {
		note := fmt.Appendf(nil, "\n[the answer was cut: %d bytes of output and %d of errors, and %d can be sent]\n", len(stdout), len(stderr), env.MaxToolResponse)
		room := env.MaxToolResponse - len(note)
		if len(stderr) > room/2 {
			stderr = stderr[:max(room/2, room-len(stdout))]
		}
		stdout = stdout[:min(len(stdout), room-len(stderr))]
		stderr = append(stderr[:len(stderr):len(stderr)], note...)
	}
	return ToolResponse{Stdout: stdout, Stderr: stderr, ExitCode: resp.ExitCode}
}

// nest makes k a nested command of outer. If it cannot, it returns an error or a Result
// with a Failure. The caller holds the lock.
func (c *Client) nest(k, outer *call) (env.Result, error) {
	k.outer, k.depth = outer, outer.depth+1
	nested := 0
	for _, other := range c.calls {
		if other.outer != nil {
			nested++
		}
	}
	switch {
	case c.err != nil:
		return env.Result{}, c.err
	case c.calls[outer.id] != outer:
		return env.Result{}, errOuterEnded
	case k.depth > MaxNesting:
		return notRun(fmt.Sprintf("commands run inside of each other %d deep at most", MaxNesting)), nil
	case nested >= MaxNested:
		return notRun(fmt.Sprintf("at most %d commands run inside of others at once", MaxNested)), nil
	}
	return env.Result{}, nil
}

func (k *call) outerDeadline() *PausableTimer {
	if k.outer == nil {
		return nil
	}
	return k.outer.deadline
}

// nestedEnv is the environment of a tool request: it runs commands nested in the
// command that made the request.
type nestedEnv struct {
	client *Client
	outer  *call
	sem    chan struct{} // semaphore of capacity 1 for Execute
}

var _ env.Environment = (*nestedEnv)(nil)

// Execute runs a nested command.
func (e *nestedEnv) Execute(ctx context.Context, cmd env.Command) (env.Result, error) {
	select {
	case e.sem <- struct{}{}:
		defer func() { <-e.sem }()
	case <-e.outer.done:
		return env.Result{}, errOuterEnded
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // select picks at random when both are ready
		return env.Result{}, context.Cause(ctx)
	}
	return e.client.execute(ctx, cmd, e.outer)
}

// Info returns the helper's description of the sandbox.
func (e *nestedEnv) Info() env.Info { return e.client.hello.Info() }

// Close does nothing: nested commands end with the outer command.
func (e *nestedEnv) Close(context.Context) error { return nil }

// WrapTools returns a copy of tools whose Handle gets requests with a wrapped
// ToolRequest.Nested: its Info returns info, and its Execute calls execute with the
// original nested environment. If tools is nil or has no Handle, WrapTools returns it
// unchanged.
func WrapTools(tools *env.Tools, info env.Info, execute func(ctx context.Context, nested env.Environment, c env.Command) (env.Result, error)) *env.Tools {
	if tools == nil || tools.Handle == nil {
		return tools
	}
	return &env.Tools{
		InSandbox: tools.InSandbox,
		Handle: func(ctx context.Context, r env.ToolRequest) env.ToolResponse {
			r.Nested = &wrappedEnv{Environment: r.Nested, info: info, execute: execute}
			return tools.Handle(ctx, r)
		},
	}
}

// wrappedEnv is a nested environment with replaced Info and Execute.
type wrappedEnv struct {
	env.Environment
	info    env.Info
	execute func(context.Context, env.Environment, env.Command) (env.Result, error)
}

// Execute calls the execute function of the wrapping environment.
func (e *wrappedEnv) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	c.Tools = WrapTools(c.Tools, e.info, e.execute)
	return e.execute(ctx, e.Environment, c)
}

// Info returns the Info of the wrapping environment.
func (e *wrappedEnv) Info() env.Info { return e.info }
