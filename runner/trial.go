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

// closeTimeout bounds the end of a sandbox, on its own clock.
const closeTimeout = time.Minute

// Trial is one attempt at an instance, from the start of its sandbox to its end:
// one of a batch, or the one task of a person's.
type Trial struct {
	Agent     *agent.Agent
	Sandboxes Sandboxes
	Models    Models
	Instance  datasets.Instance
	// Session is what the agent works with beside its model, sandbox, tools and
	// task, which Run adds.
	Session agent.Session
	// Tools makes what commands can ask for; nil gives them nothing.
	Tools func() (agent.Toolbox, error)
	// Ready is told of the sandbox before the agent begins; may be nil.
	Ready func(info env.Info, took time.Duration)
	// Done has the sandbox before it is closed; may be nil.
	Done func(ctx context.Context, box env.Environment, out trajectories.Outcome) error
}

// Run makes a sandbox, lets the agent work in it, and closes it. How that ended
// is the outcome, which is on record; the error is about the end of the sandbox.
// A panic, which is a mistake in mini, is kept to the attempt it is in.
func (t Trial) Run(ctx context.Context) (out trajectories.Outcome, err error) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			out = t.failed(start, &agent.Defect{Text: fmt.Sprint(p), Stack: string(debug.Stack())})
		}
	}()
	s := t.Session
	s.Task = agent.Task{Text: t.Instance.ProblemStatement, Instance: t.Instance.Fields()}
	if err := t.equip(&s); err != nil {
		return t.failed(start, err), nil
	}
	box, err := t.Sandboxes.Start(ctx, t.Instance)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return t.failed(start, err), nil
	}
	// Deferred: a panic must not leave the sandbox.
	defer func() { err = errors.Join(err, t.close(ctx, box, out)) }()
	s.Environment, s.Started = box, time.Since(start)
	if t.Ready != nil {
		t.Ready(box.Info(), s.Started)
	}
	return t.Agent.Run(ctx, s), nil
}

// equip finds the models and the tools of a session.
func (t Trial) equip(s *agent.Session) (err error) {
	if s.Model, err = t.Models.For(t.Instance); err != nil {
		return err
	}
	if t.Tools != nil {
		if s.Tools, err = t.Tools(); err != nil {
			return err
		}
	}
	if m, ok := t.Models.(Summaries); ok {
		s.Summary, err = m.Summary(t.Instance)
	}
	return err
}

func (t Trial) close(ctx context.Context, box env.Environment, out trajectories.Outcome) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if t.Done != nil {
		err = t.Done(ctx, box, out)
	}
	if failed := box.Close(ctx); failed != nil {
		err = errors.Join(err, fmt.Errorf("close sandbox: %w", failed))
	}
	return err
}

// failed is the outcome of an attempt that never came to its agent.
func (t Trial) failed(start time.Time, err error) trajectories.Outcome {
	out := agent.Failed(start, err)
	t.Session.Past.Carry(&out)
	if _, recErr := t.Session.Recorder.Append(trajectories.TypeOutcome, out); recErr != nil {
		out = agent.Failed(start, errors.Join(err, recErr))
		t.Session.Past.Carry(&out)
	}
	return out
}
