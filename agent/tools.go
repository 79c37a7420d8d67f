package agent

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// ToolServer handles the mini-tool requests of one session's commands. Package
// agent/tools implements it. Its methods are safe for concurrent use.
type ToolServer interface {
	// Capabilities returns the capabilities for the prompts. They do not
	// change.
	Capabilities() Capabilities
	// Handle handles one request. Errors are part of the response: a tool never
	// ends an attempt.
	Handle(ctx context.Context, req ToolRequest) ToolResponse
}

// preparer is a ToolServer that prepares a fresh sandbox before anything else
// runs there, for example by writing files.
type preparer interface {
	Prepare(ctx context.Context, sandbox env.Environment) error
}

// Capabilities are the optional tools and skills of a session.
type Capabilities struct {
	// Tools are the available tools; InSandbox those that mini-tool runs in the
	// sandbox itself (env.Tools).
	Tools     []Capability
	InSandbox []string
	// Skills are the available skills.
	Skills []Capability
}

// Capability is one tool or skill. Usage is its command line after "mini-tool
// ", Description one sentence on its purpose.
type Capability struct {
	Name, Usage, Description string
}

// ToolRequest is a mini-tool request with the attempt that it came from.
type ToolRequest struct {
	env.ToolRequest
	Attempt *Attempt
}

// ToolResponse is the response to a mini-tool request. Details is recorded
// beside the response, as JSON; nil means none.
type ToolResponse struct {
	env.ToolResponse
	Details any
}

// Attempt gives a tool access to the attempt that called it. Its methods are
// safe for concurrent use by tools.
type Attempt struct {
	mu           sync.Mutex
	run          *run
	spent        Spending // by subagents
	startedCalls int      // calls that subagents have started
}

// Session returns the attempt's session. Its Environment must not be used while
// a command of the attempt runs; see env.ToolRequest.Nested.
func (a *Attempt) Session() Session { return a.run.Session }

// Step returns the number of the model call whose reply has the command, from
// 1.
func (a *Attempt) Step() int { return a.run.steps }

// Append adds a record to the attempt's journal.
func (a *Attempt) Append(t trajectories.Type, data any) (trajectories.Record, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.run.record(t, data)
}

// Limits on all mini-tool requests of one command. Each request is recorded,
// and the time of requests does not count, so a loop would otherwise fill the
// disk and never time out.
const (
	maxToolCalls = 1000
	maxToolBytes = 16 << 20 // bytes of requests and responses
)

// toolUsage adds up the requests of a command.
type toolUsage struct {
	mu          sync.Mutex
	calls, size int
	recordErr   error // first error of recording a request
}

// admit counts a request and reports whether the command's requests are still
// within the limits.
func (u *toolUsage) admit(req env.ToolRequest) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls++
	u.size += len(req.Stdin)
	for _, arg := range req.Args {
		u.size += len(arg)
	}
	return u.calls <= maxToolCalls && u.size <= maxToolBytes
}

func (u *toolUsage) addResponse(resp env.ToolResponse, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.size += len(resp.Stdout) + len(resp.Stderr)
	if u.recordErr == nil {
		u.recordErr = err
	}
}

// tooManyRequests is the response to requests beyond the limits. It is not
// recorded.
var tooManyRequests = env.ToolResponse{Stderr: []byte(env.ToolProgram + ": this command has asked too much, and is not answered any more\n"), ExitCode: 1}

// withTools returns a command that can send requests to the tools. The returned
// function is called after the command and returns the first error of recording
// a request.
func (r *run) withTools(c env.Command) (_ env.Command, recordErr func() error) {
	if r.Tools == nil || !r.info.Tools {
		return c, func() error { return nil }
	}
	var usage toolUsage
	c.Tools = &env.Tools{
		InSandbox: r.Tools.Capabilities().InSandbox,
		Handle: func(ctx context.Context, req env.ToolRequest) env.ToolResponse {
			if !usage.admit(req) {
				return tooManyRequests
			}
			resp, err := r.handleRequest(ctx, req)
			usage.addResponse(resp, err)
			return resp
		},
	}
	return c, func() error { return usage.recordErr }
}

// handleRequest handles and records a request.
func (r *run) handleRequest(ctx context.Context, req env.ToolRequest) (env.ToolResponse, error) {
	start := time.Now()
	resp := r.Tools.Handle(ctx, ToolRequest{req, &r.toolAttempt})
	call := trajectories.ToolCall{
		Input: req.Stdin, Dir: req.Dir, Output: resp.Stdout, Errors: resp.Stderr, ExitCode: resp.ExitCode,
		Start: start, Duration: trajectories.Seconds(time.Since(start)),
	}
	if len(req.Args) > 0 {
		call.Name, call.Args = req.Args[0], req.Args[1:]
	}
	var err error
	if resp.Details != nil {
		if call.Details, err = json.Marshal(resp.Details); err != nil {
			return resp.ToolResponse, err
		}
	}
	_, err = r.toolAttempt.Append(trajectories.TypeTool, call)
	return resp.ToolResponse, err
}

// prepareTools prepares the sandbox for tools that need it.
func (r *run) prepareTools(ctx context.Context) error {
	p, ok := r.Tools.(preparer)
	if !ok {
		return nil
	}
	if err := p.Prepare(ctx, r.Environment); err != nil {
		return causeOrErr(ctx, err)
	}
	return nil
}

// capabilityValues returns capabilities as template values. It puts each
// description on one line, with one space between words.
func capabilityValues(all []Capability) []map[string]any {
	list := make([]map[string]any, len(all))
	for i, a := range all {
		list[i] = map[string]any{"name": a.Name, "usage": a.Usage, "about": strings.Join(strings.Fields(a.Description), " ")}
	}
	return list
}
