package delegate

import (
	"context"
	"errors"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// paid is the journal of a child whose calls its parent pays for. What the child
// does is told to whoever watches the parent.
type paid struct {
	Journal
	parent *agent.Attempt
	depth  int
	said   string // the newest reply
}

// Append implements agent.Recorder.
func (p *paid) Append(t trajectories.Type, data any) (trajectories.Record, error) {
	rec, err := p.Journal.Append(t, data)
	if err != nil {
		return rec, err
	}
	switch d := data.(type) {
	case trajectories.Call:
		return rec, p.parent.Spend(trajectories.Spent{
			Child: p.Child(), Summary: t == trajectories.TypeSummary, Usage: d.Usage, Cost: d.Cost, Start: d.Start, Duration: d.Duration, Waited: d.Waited,
		})
	case trajectories.Spent: // a child's child
		return rec, p.parent.Spend(d)
	case trajectories.Message:
		if d.Cause == trajectories.CauseReply {
			p.said = d.Content
			for _, command := range d.Actions {
				p.tell(events.ChildWorked{Command: command})
			}
		}
	}
	return rec, nil
}

func (p *paid) tell(e events.ChildWorked) {
	e.Step, e.Child, e.Depth = p.parent.Step(), p.Child(), p.depth
	p.parent.Session().Events.Publish(e)
}

// paused is a model whose waits for the provider stop the clock of the parent,
// too.
type paused struct {
	model.Model
	pause func() func()
}

// Query implements model.Model.
func (m paused) Query(ctx context.Context, history []model.Message) (model.Reply, error) {
	return m.Model.Query(model.WithPause(ctx, func() func() {
		own, parents := model.Pause(ctx), m.pause()
		return func() { own(); parents() }
	}), history)
}

// supervised asks the parent's supervisor, one child at a time, while the
// parent's clock stands still.
type supervised struct {
	agent.Supervisor
	family *Family
	pause  func() func()
}

// Decide implements agent.Supervisor. A proposal of a child's child comes through
// here twice, and holds the place of the first time.
func (s supervised) Decide(ctx context.Context, p agent.Proposal) (agent.Decision, error) {
	defer s.pause()()
	if !p.Child {
		s.family.state.ask.Lock()
		defer s.family.state.ask.Unlock()
	}
	p.Child = true
	if ctx.Err() != nil {
		return agent.Decision{}, context.Cause(ctx)
	}
	return s.Supervisor.Decide(ctx, p)
}

// first has the supervisor of a profile decide before the parent's, which may be
// nil.
type first struct {
	agent.Supervisor
	next agent.Supervisor
}

// Decide implements agent.Supervisor.
func (s first) Decide(ctx context.Context, p agent.Proposal) (agent.Decision, error) {
	d, err := s.Supervisor.Decide(ctx, p)
	if err != nil || d.Action == agent.Deny || s.next == nil {
		return d, err
	}
	return s.next.Decide(ctx, p)
}

// inside is the sandbox of a child: the parent's, within its command, beginning
// where that stood.
type inside struct {
	env.Environment
	dir string
}

// Execute implements env.Environment. The end of the command that asked interrupts
// the child, also where that is told here before ctx has ended.
func (b inside) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if c.Dir == "" {
		c.Dir = b.dir
	}
	res, err := b.Environment.Execute(ctx, c)
	if errors.Is(err, env.ErrClosed) {
		err = errors.Join(agent.ErrInterrupted, err)
	}
	return res, err
}

// Info implements env.Environment.
func (b inside) Info() env.Info {
	info := b.Environment.Info()
	if b.dir != "" {
		info.Dir = b.dir
	}
	info.Warnings = nil // the parent has them
	return info
}
