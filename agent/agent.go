// Package agent runs a language model on a task in a sandbox. It asks the model
// for a command, runs the command, shows the model the output, and repeats
// until the attempt ends, for example with a submission or at a limit.
//
// The package depends on an environment and a model, both as interfaces. A
// Recorder receives every record as it is made. The history is linear: messages
// are appended and never changed. Package agent/protocol defines how a model
// writes its commands.
//
//	a, err := agent.New(cfg)
//	out := a.Run(ctx, agent.Session{Model: m, Environment: e, Recorder: journal, Task: task})
package agent

import (
	"context"
	"errors"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Agent is a validated configuration. It holds no session state and can run any
// number of sessions concurrently.
type Agent struct {
	cfg       Config
	templates templates
	protocol  protocol.Protocol
}

// WithLimits returns a copy of the agent whose limits are at most l; 0 means no limit.
func (a *Agent) WithLimits(l Limits) *Agent {
	limited := *a
	limited.cfg.StepLimit = lowerLimit(a.cfg.StepLimit, l.Steps)
	limited.cfg.CostLimit = lowerLimit(a.cfg.CostLimit, l.Cost)
	return &limited
}

// LimitWallTime returns a copy of the agent whose time limit is at most this number of
// seconds; 0 means no limit.
func (a *Agent) LimitWallTime(seconds float64) *Agent {
	limited := *a
	limited.cfg.WallTimeLimit = lowerLimit(a.cfg.WallTimeLimit, seconds)
	return &limited
}

func lowerLimit[T int | float64](a, b T) T {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Session holds what an attempt works with. A resumed attempt has several
// sessions, one after the other.
type Session struct {
	Model       model.Model
	Environment env.Environment
	// Repository answers for the repository in Environment; nil means git there.
	Repository Repository
	Recorder   Recorder
	Task       Task
	// Instructions follow the task in the first prompt; "" in batches.
	Instructions string
	// StartupTime is how long the sandbox took to start, for the outcome's
	// times.
	StartupTime time.Duration
	// Resume is the state to resume from; nil starts a new attempt.
	Resume *ResumeState
	// SummaryModel writes summaries (see Config.Compaction); nil means Model.
	SummaryModel model.Model
	// CheckBudget is called after a compaction, whose model call, if any, does
	// not count as a step. An error ends the attempt. nil means no budget.
	CheckBudget func() error
	// ReserveCall is called before each step's model call. An error, such as
	// ErrBudgetExhausted, ends the attempt. nil means no budget.
	ReserveCall func() error
	// OnEnd is called with the error that ended the attempt (see OutcomeOf); may be nil.
	OnEnd func(error)
	// Approver decides on each command before it runs; nil allows all commands.
	Approver Approver
	// Tools handles the mini-tool requests of commands; nil means no tools.
	// Requests are handled only where the sandbox supports tools
	// (env.Info.Tools).
	Tools ToolServer
	// User answers the questions of an interactive session; nil means there is
	// no user.
	User User
	// Inbox delivers messages to the attempt while it works; may be nil.
	Inbox *Inbox
	// Observer and the subscribers of Events receive the same events; both may be
	// nil. Events also publishes pieces of replies and outputs as they are
	// streamed. StartEvent is the first event; the agent fills in the task, the
	// folder and the step.
	Observer   Observer
	Events     *events.Bus
	StartEvent events.RunStarted
	// NewChild creates the journal of a subagent of another agent (RunLoop); nil keeps
	// none.
	NewChild func(trajectories.Parent) (ChildJournal, error)
	// RecordTreeHashes records the hash of the working tree during model calls,
	// so that a rebuilt sandbox can be compared with these hashes.
	RecordTreeHashes bool
}

// Task is what the model is asked to do.
type Task struct {
	Text string
	// Instance holds the columns of the dataset row, for templates; may be nil.
	Instance map[string]any
}

// Run works on one task until something ends the attempt, and returns the
// outcome. It does not close the sandbox. Whatever ended the attempt, also a panic, Run
// records the working diff if the repository was opened and the sandbox is
// still alive, then the outcome as the last record. To stop an attempt in an
// orderly way, cancel ctx with cause ErrInterrupted.
func (a *Agent) Run(ctx context.Context, s Session) (out trajectories.Outcome) {
	r := a.newRun(s)
	defer func() { out = r.finish(ctx, recover()) }()
	workCtx, stop := r.workContext(ctx)
	defer stop()
	r.err = r.prepare(workCtx)
	for next := r.start; r.err == nil; next = r.step {
		r.err = r.handleStepError(workCtx, next(workCtx))
	}
	return out
}

// RunLoop is Run for another agent: loop works in the place of the steps. The preparation
// of the sandbox, the limits, the diff and the outcome are those of Run, and so are the
// errors that end an attempt, one of which loop returns. There are no prompts, tools or
// approvals.
func (a *Agent) RunLoop(ctx context.Context, s Session, loop func(ctx context.Context, a *Attempt) error) (out trajectories.Outcome) {
	s.Tools, s.Approver = nil, nil
	r := a.newRun(s)
	defer func() { out = r.finish(ctx, recover()) }()
	workCtx, stop := r.workContext(ctx)
	defer stop()
	if r.err = r.prepare(workCtx); r.err == nil {
		r.notify(events.PhaseStarted{Phase: events.PhaseRunning})
		r.err = loop(workCtx, &r.toolAttempt)
	}
	return out
}

// step makes one model call and runs the actions of the reply.
func (r *run) step(ctx context.Context) error {
	if err := r.checkInbox(ctx); err != nil {
		return err
	}
	if err := r.checkLimits(r.ReserveCall); err != nil {
		return err
	}
	if err := r.compact(ctx); err != nil {
		return err
	}
	reply, err := r.query(ctx)
	if err != nil {
		return r.handleCallError(ctx, err)
	}
	actions, err := r.parseReply(reply)
	if err != nil {
		return err
	}
	return r.runActions(ctx, actions)
}

// handleStepError handles the errors that end a step but not the attempt. It
// returns nil if the attempt continues.
func (r *run) handleStepError(ctx context.Context, err error) error {
	var feedback *Feedback
	var submitted *Submitted
	var turn *userTurn
	switch {
	case errors.As(err, &turn):
		return r.handleStepError(ctx, r.askForAnswer(ctx, turn))
	case errors.As(err, &feedback):
		return r.recordMessages(feedback.Messages)
	case errors.Is(err, ErrLimitsExceeded):
		return r.raiseLimits(ctx, err)
	case errors.As(err, &submitted):
		return r.continueAfterSubmission(ctx, submitted)
	}
	return err
}

// runActions runs the actions of a reply in order.
func (r *run) runActions(ctx context.Context, actions []protocol.Action) error {
	for i, a := range actions {
		if err := r.runAction(ctx, a); err != nil {
			return r.skipActions(actions[i:], err)
		}
	}
	return nil
}

// runAction runs one command, if it is allowed, and reports the result to the
// model or submits it.
func (r *run) runAction(ctx context.Context, a protocol.Action) error {
	command, err := r.requestApproval(ctx, a)
	if err != nil {
		return err
	}
	result, interrupted, err := r.execute(ctx, command, false)
	if err != nil {
		return err
	}
	if text, ok := ParseSubmission(result); ok && !interrupted {
		return r.submit(ctx, a, text)
	}
	return r.reportResult(ctx, a, command, result, interrupted)
}
