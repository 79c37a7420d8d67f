package agent

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
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

// Attempt gives a tool access to the attempt that called it. Its methods are
// safe for concurrent use by tools.
type Attempt struct {
	mu           sync.Mutex
	run          *run
	startedCalls int // calls that subagents have started
}

// Session returns the attempt's session. Its Environment must not be used while
// a command of the attempt runs; see env.ToolRequest.Nested.
func (a *Attempt) Session() Session { return a.run.Session }

// Step returns the number of the model call whose reply has the command, from
// 1.
func (a *Attempt) Step() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.run.steps()
}

// Step is a reply of the model and the messages that answer it.
type Step struct {
	// Number counts replies from 1, as ExecutedCommand.Step does.
	Number int
	Reply  model.Message
	// Commands are the commands of the reply, run or not.
	Commands []string
	// Answers are the messages up to the next reply: results and other
	// messages. The newest step has none while its command runs.
	Answers []model.Message
}

// Steps returns all steps so far, including steps of earlier sessions and those
// that compaction has removed from the prompt. A tool may call it while the
// command that called the tool runs. The caller owns the result, except for its
// images.
func (a *Attempt) Steps() []Step {
	return stepsOf(a.run.attempt.Conversation().AllMessages(), a.run.protocol)
}

// stepsOf splits a history into steps.
func stepsOf(history []model.Message, p protocol.Protocol) []Step {
	var list []Step
	for _, m := range history {
		m.ToolCalls = slices.Clone(m.ToolCalls)
		if m.Role == model.Assistant {
			n := len(list) + 1
			list = append(list, Step{Number: n, Reply: m, Commands: p.Parse(model.Reply{Message: m}, n).Commands()})
		} else if n := len(list); n > 0 {
			list[n-1].Answers = append(list[n-1].Answers, m)
		}
	}
	return list
}

// Append adds a record to the attempt's journal.
func (a *Attempt) Append(t trajectories.Type, data any) (trajectories.Record, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.run.recordLocked(t, data)
}

// RecordCall records a model call that ReserveCall has reserved, as a step of the attempt
// itself, with its tokens; nil if they are not known.
func (a *Attempt) RecordCall(call trajectories.Call, tokens *model.Tokens) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	call.Tokens = a.run.attempt.RecordTokens(tokens)
	a.startedCalls = max(a.startedCalls-1, a.run.attempt.Totals.Children.Steps)
	_, err := a.run.recordLocked(trajectories.TypeCall, call)
	return err
}

// RecordChildCall records a subagent's call, which counts as the attempt's
// spending.
func (a *Attempt) RecordChildCall(s trajectories.ChildCall) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.run.recordLocked(trajectories.TypeChildCall, s)
	a.startedCalls = max(a.startedCalls, a.run.attempt.Totals.Children.Steps)
	return err
}

// Warn adds a warning to the outcome.
func (a *Attempt) Warn(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.run.warnings = append(a.run.warnings, text)
}

// Spending is the number of steps, and the usage and cost of all model calls.
type Spending = trajectories.Spending

// Remaining returns what the attempt may still spend; 0 means no limit. The
// error is ErrLimitsExceeded if nothing is left.
func (a *Attempt) Remaining() (Limits, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.remaining()
}

func (a *Attempt) remaining() (Limits, error) {
	totals := &a.run.attempt.Totals
	l, steps, cost := a.run.limits, totals.Own.Steps+a.startedCalls, totals.Own.Cost+totals.Children.Cost
	if limitReached(l, steps, cost) {
		return Limits{}, ErrLimitsExceeded
	}
	if l.Steps > 0 {
		l.Steps -= steps
	}
	if l.Cost > 0 {
		l.Cost -= float64(cost)
	}
	return l, nil
}

// ReserveCall is the Session.ReserveCall of subagents. It counts a subagent's
// call as a step of this attempt and of its parents. The step limit is exact.
// The calls under way when the cost limit is reached may exceed it.
func (a *Attempt) ReserveCall() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.checkLimits(a.run.ReserveCall)
	if err == nil {
		a.startedCalls++
	}
	return err
}

// CheckBudget returns an error if this attempt or the run has reached a limit.
// It is the Session.CheckBudget of subagents.
func (a *Attempt) CheckBudget() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.checkLimits(a.run.CheckBudget)
}

// checkLimits is run.checkLimits for subagents.
func (a *Attempt) checkLimits(budget func() error) error {
	if _, err := a.remaining(); err != nil || budget == nil {
		return err
	}
	return budget()
}
