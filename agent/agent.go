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

// LimitWallTime returns an agent whose time limit is at most this number of seconds; 0 changes
// nothing.
func (a *Agent) LimitWallTime(seconds float64) *Agent {
	limited := *a
	if own := a.cfg.WallTimeLimit; seconds > 0 && (own == 0 || seconds < own) {
		limited.cfg.WallTimeLimit = seconds
	}
	return &limited
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
	// Observer is called for each record and at the start of each phase; may be
	// nil.
	Observer Observer
	// Events publishes records and phases as events, and pieces of replies and
	// outputs as they are streamed; may be nil. StartEvent is the first event;
	// the agent fills in the task, the folder and the step.
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

// Recorder stores records in order. *trajectories.Journal implements it.
type Recorder interface {
	Append(t trajectories.Type, data any) (trajectories.Record, error)
}

// ChildJournal is the journal of a subagent. *subagents.Journal implements it.
type ChildJournal interface {
	Recorder
	Number() int  // of the child, from 1
	Name() string // of the file, relative to the folder of the attempt's journal
	Close() error
}

// loop runs steps until an error ends the attempt, and returns that error. The
// result is never nil.
func (r *run) loop(ctx context.Context) error {
	for next := r.start; ; next = r.step {
		if err := r.handleStepError(ctx, next(ctx)); err != nil {
			return err
		}
	}
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
		return r.addMessages(feedback.Messages...)
	case errors.Is(err, ErrLimitsExceeded):
		return r.raiseLimits(ctx, err)
	case errors.As(err, &submitted):
		return r.continueAfterSubmission(ctx, submitted)
	}
	return err
}

// step makes one model call and runs the actions of the reply.
func (r *run) step(ctx context.Context) error {
	if err := r.checkInbox(ctx); err != nil {
		return err
	}
	if err := r.checkLimits(); err != nil {
		return err
	}
	if err := r.compact(ctx); err != nil {
		return err
	}
	reply, err := r.query(ctx)
	if err != nil {
		return err
	}
	actions, err := r.parseReply(reply)
	if err != nil {
		return err
	}
	return r.runActions(ctx, actions)
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
	if err := r.requestApproval(ctx, a); err != nil {
		return err
	}
	r.startPhase(PhaseRunning, a.Command)
	result, interrupted, err := r.execute(ctx, a.Command, false)
	if err != nil {
		return err
	}
	if text, ok := ParseSubmission(result); ok && !interrupted {
		return r.submit(ctx, a, text)
	}
	return r.reportResult(ctx, a, result, interrupted)
}
