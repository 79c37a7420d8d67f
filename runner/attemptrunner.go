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

// closeTimeout limits the time for closing a sandbox, including BeforeClose.
const closeTimeout = time.Minute

// Agent works on one attempt. *agent.Agent implements it.
type Agent interface {
	// Run works on the task of s until something ends the attempt. It records the
	// outcome as the last record and returns it. It does not close the sandbox.
	Run(ctx context.Context, s agent.Session) trajectories.Outcome
}

// AttemptRunner runs one attempt at an instance: it starts the sandbox, runs the
// agent and closes the sandbox. Batches and interactive sessions use it.
type AttemptRunner struct {
	Agent     Agent
	Sandboxes Sandboxes
	Models    Models
	Instance  datasets.Instance
	// Session configures the agent. Run adds the model, sandbox, tools and task.
	Session agent.Session
	// Tools returns the agent's tools; may be nil.
	Tools func() (agent.ToolServer, error)
	// OnReady is called when the sandbox has started, before the agent starts; may
	// be nil.
	OnReady func(info env.Info, took time.Duration)
	// BeforeClose is called before the sandbox is closed; may be nil.
	BeforeClose func(ctx context.Context, sandbox env.Environment, out trajectories.Outcome) error
}

// Run starts a sandbox, runs the agent in it and closes the sandbox. It records the
// outcome in the journal and returns it. The error reports a failure of BeforeClose
// or of closing the sandbox. Run recovers a panic, so that other attempts continue.
func (r AttemptRunner) Run(ctx context.Context) (out trajectories.Outcome, err error) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			out = r.recordFailure(start, &agent.PanicError{Text: fmt.Sprint(p), Stack: string(debug.Stack())})
		}
	}()
	s := r.Session
	s.Task = agent.Task{Text: r.Instance.ProblemStatement, Instance: r.Instance.Fields()}
	if err := r.prepareSession(&s); err != nil {
		return r.recordFailure(start, err), nil
	}
	sandbox, err := r.Sandboxes.Start(ctx, r.Instance)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return r.recordFailure(start, err), nil
	}
	// Deferred to close the sandbox even after a panic.
	defer func() { err = errors.Join(err, r.close(ctx, sandbox, out)) }()
	s.Environment, s.StartupTime = sandbox, time.Since(start)
	if r.OnReady != nil {
		r.OnReady(sandbox.Info(), s.StartupTime)
	}
	return r.Agent.Run(ctx, s), nil
}

// prepareSession sets the models and tools of the session.
func (r AttemptRunner) prepareSession(s *agent.Session) (err error) {
	if s.Model, err = r.Models.For(r.Instance); err != nil {
		return err
	}
	if r.Tools != nil {
		if s.Tools, err = r.Tools(); err != nil {
			return err
		}
	}
	if m, ok := r.Models.(SummaryModels); ok {
		s.SummaryModel, err = m.SummaryModel(r.Instance)
	}
	return err
}

func (r AttemptRunner) close(ctx context.Context, sandbox env.Environment, out trajectories.Outcome) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if r.BeforeClose != nil {
		err = r.BeforeClose(ctx, sandbox, out)
	}
	if closeErr := sandbox.Close(ctx); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("close sandbox: %w", closeErr))
	}
	return err
}

// recordFailure records and returns the outcome of an attempt that failed outside
// the agent: before the agent started, or with a panic.
func (r AttemptRunner) recordFailure(start time.Time, err error) trajectories.Outcome {
	out := agent.OutcomeOf(start, err)
	r.Session.Resume.AddTo(&out)
	if _, recErr := r.Session.Recorder.Append(trajectories.TypeOutcome, out); recErr != nil {
		out = agent.OutcomeOf(start, errors.Join(err, recErr))
		r.Session.Resume.AddTo(&out)
	}
	return out
}
