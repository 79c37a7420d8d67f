// Package agent lets a model work on a task in a sandbox: it asks the model
// for a command, runs it, shows the model what happened, and goes on until the
// model submits or a limit is reached.
//
// The package knows two collaborators, an environment and a model, both by
// their interfaces; what happened goes to a Recorder as it happens. History is
// linear: messages are appended and never changed. How a model writes its
// commands is agent/protocol's affair.
//
//	a, err := agent.New(cfg)
//	out := a.Run(ctx, agent.Session{Model: m, Environment: box, Recorder: journal, Task: task})
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

// Agent is a checked configuration; it holds no state of a session and may
// run any number of them at once.
type Agent struct {
	cfg       Config
	templates templates
	protocol  protocol.Protocol
}

// Session is what one attempt works with.
type Session struct {
	Model       model.Model
	Environment env.Environment
	Recorder    Recorder
	Task        Task
	// Started is what making the sandbox took, for the times of the outcome.
	Started time.Duration
	// Past is what the attempt goes on from; nil begins a new one.
	Past *Past
	// Summary makes summaries (see Config.Compaction); nil leaves them to Model.
	Summary model.Model
	// Afford is asked after a call that is no step, that of a summary: its error ends
	// the attempt. nil allows everything.
	Afford func() error
	// Allow is asked before each call of the model; its error ends the attempt,
	// as ErrBudgetExhausted does. nil allows everything.
	Allow func() error
	// Supervisor decides on each command; nil allows all of them.
	Supervisor Supervisor
	// Tools answers what commands ask for by mini-tool; nil gives them nothing to
	// ask. It is heeded where the sandbox can carry it (env.Info.Tools).
	Tools Toolbox
	// Person is asked what no program decides; nil asks nobody.
	Person Person
	// Talk is how the attempt is spoken to while it works; may be nil.
	Talk *Talk
	// Observer is told of each record and of each phase as it begins; may be nil.
	Observer Observer
	// Events publishes the same to any number of subscribers, with the pieces of
	// replies and outputs; may be nil. Opening is the first event, to which the
	// task, the folder and the step are added.
	Events  *events.Bus
	Opening events.RunStarted
	// States records the state of the working tree while the model is asked, so
	// that a sandbox that is made anew can be held against it.
	States bool
}

// Task is what the model is asked to do.
type Task struct {
	Text string
	// Instance holds the columns of the dataset row, for templates; may be nil.
	Instance map[string]any
}

// Recorder keeps what happens, in order. *trajectories.Journal is one.
type Recorder interface {
	Append(t trajectories.Type, data any) (trajectories.Record, error)
}

// loop asks, acts and observes until something ends the attempt; what ended it
// is the error, which is never nil.
func (r *run) loop(ctx context.Context) error {
	for next := r.begin; ; next = r.step {
		if err := r.survive(ctx, next(ctx)); err != nil {
			return err
		}
	}
}

// survive turns what ends a step, but not the attempt, into nil.
func (r *run) survive(ctx context.Context, err error) error {
	var feedback *Feedback
	var submitted *Submitted
	switch {
	case errors.As(err, &feedback):
		return r.say(feedback.Messages...)
	case errors.Is(err, ErrLimitsExceeded):
		return r.raise(ctx, err)
	case errors.As(err, &submitted):
		return r.goOnAfter(ctx, submitted)
	}
	return err
}

// step is one model call and the execution of its actions.
func (r *run) step(ctx context.Context) error {
	if err := r.heed(ctx); err != nil {
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
	actions, err := r.read(reply)
	if err != nil {
		return err
	}
	return r.perform(ctx, actions)
}

// perform runs the actions of a reply, one after the other.
func (r *run) perform(ctx context.Context, actions []protocol.Action) error {
	for i, a := range actions {
		if err := r.act(ctx, a); err != nil {
			return r.leave(actions[i:], err)
		}
	}
	return nil
}

// act runs one command and tells the model what it did.
func (r *run) act(ctx context.Context, a protocol.Action) error {
	if err := r.supervise(ctx, a); err != nil {
		return err
	}
	r.began(Running, a.Command)
	result, halted, err := r.execute(ctx, a.Command, false)
	if err != nil {
		return err
	}
	if text, ok := submission(result); ok && !halted {
		return r.submit(ctx, a, text)
	}
	return r.observe(ctx, a, result, halted)
}
