package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// closeTimeout bounds closing a sandbox.
const closeTimeout = time.Minute

// AttemptRunner runs one attempt at an instance, from starting the sandbox to
// closing it. Batches and interactive sessions use it.
type AttemptRunner struct {
	Agent     *agent.Agent
	Sandboxes Sandboxes
	Models    Models
	Instance  datasets.Instance
	// Session configures the agent. Run adds the model, sandbox, tools and task.
	Session agent.Session
	// Tools returns the agent's tools; may be nil.
	Tools func() (agent.ToolServer, error)
	// OnReady is called with the sandbox before the agent starts; may be nil.
	OnReady func(info env.Info, took time.Duration)
	// BeforeClose is called before the sandbox is closed; may be nil.
	BeforeClose func(ctx context.Context, sandbox env.Environment, out trajectories.Outcome) error
}

// Run starts a sandbox, runs the agent in it and closes it. The outcome is
// recorded in the journal; the error is about closing the sandbox. A panic ends
// only this attempt.
func (t AttemptRunner) Run(ctx context.Context) (out trajectories.Outcome, err error) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			out = t.recordFailure(start, &agent.PanicError{Text: fmt.Sprint(p), Stack: string(debug.Stack())})
		}
	}()
	s := t.Session
	s.Task = agent.Task{Text: t.Instance.ProblemStatement, Instance: t.Instance.Fields()}
	if err := t.prepareSession(&s); err != nil {
		return t.recordFailure(start, err), nil
	}
	sandbox, err := t.Sandboxes.Start(ctx, t.Instance)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return t.recordFailure(start, err), nil
	}
	// Deferred to close the sandbox even after a panic.
	defer func() { err = errors.Join(err, t.close(ctx, sandbox, out)) }()
	s.Environment, s.StartupTime = sandbox, time.Since(start)
	if t.OnReady != nil {
		t.OnReady(sandbox.Info(), s.StartupTime)
	}
	return t.Agent.Run(ctx, s), nil
}

// prepareSession sets the models and tools of a session.
func (t AttemptRunner) prepareSession(s *agent.Session) (err error) {
	if s.Model, err = t.Models.For(t.Instance); err != nil {
		return err
	}
	if t.Tools != nil {
		if s.Tools, err = t.Tools(); err != nil {
			return err
		}
	}
	if m, ok := t.Models.(SummaryModels); ok {
		s.SummaryModel, err = m.SummaryModel(t.Instance)
	}
	return err
}

func (t AttemptRunner) close(ctx context.Context, sandbox env.Environment, out trajectories.Outcome) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if t.BeforeClose != nil {
		err = t.BeforeClose(ctx, sandbox, out)
	}
	if failed := sandbox.Close(ctx); failed != nil {
		err = errors.Join(err, fmt.Errorf("close sandbox: %w", failed))
	}
	return err
}

// recordFailure records and returns the outcome of an attempt whose agent was not
// started.
func (t AttemptRunner) recordFailure(start time.Time, err error) trajectories.Outcome {
	out := agent.OutcomeOf(start, err)
	t.Session.Resume.AddTo(&out)
	if _, recErr := t.Session.Recorder.Append(trajectories.TypeOutcome, out); recErr != nil {
		out = agent.OutcomeOf(start, errors.Join(err, recErr))
		t.Session.Resume.AddTo(&out)
	}
	return out
}
