package subagents

import (
	"context"
	"errors"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// childRecorder is the journal of a child. It charges the child's model calls
// to the parent and publishes the child's progress as events of the parent.
type childRecorder struct {
	*Journal
	parent    *agent.Attempt
	depth     int
	lastReply string // the latest reply
}

// Append implements agent.Recorder.
func (p *childRecorder) Append(t trajectories.Type, data any) (trajectories.Record, error) {
	rec, err := p.Journal.Append(t, data)
	if err != nil {
		return rec, err
	}
	switch d := data.(type) {
	case trajectories.Call:
		return rec, p.parent.RecordChildCall(trajectories.ChildCall{
			Child: p.child, Summary: t == trajectories.TypeSummary, Usage: d.Usage, Cost: d.Cost, Start: d.Start, Duration: d.Duration, Waited: d.Waited,
		})
	case trajectories.ChildCall: // by a child of this child
		return rec, p.parent.RecordChildCall(d)
	case trajectories.Message:
		if d.Cause == trajectories.CauseReply {
			p.lastReply = d.Content
			for _, command := range d.Actions {
				p.publish(events.ChildProgress{Command: command})
			}
		}
	}
	return rec, nil
}

func (p *childRecorder) publish(e events.ChildProgress) {
	e.Step, e.Child, e.Depth = p.parent.Step(), p.child, p.depth
	p.parent.Session().Events.Publish(e)
}

// serialApprover asks the parent's approver for one child at a time.
type serialApprover struct {
	agent.Approver
	pool *Pool
}

// Decide implements agent.Approver. A request of a nested child passes through
// here more than once; the first pass takes the lock and sets Child.
func (s serialApprover) Decide(ctx context.Context, p agent.ApprovalRequest) (agent.Decision, error) {
	if !p.Child {
		s.pool.counters.approval.Lock()
		defer s.pool.counters.approval.Unlock()
	}
	p.Child = true
	if ctx.Err() != nil {
		return agent.Decision{}, context.Cause(ctx)
	}
	return s.Approver.Decide(ctx, p)
}

// profileApprover asks the approver of a profile before the parent's, which may
// be nil.
type profileApprover struct {
	agent.Approver
	next agent.Approver
}

// Decide implements agent.Approver.
func (s profileApprover) Decide(ctx context.Context, p agent.ApprovalRequest) (agent.Decision, error) {
	d, err := s.Approver.Decide(ctx, p)
	if err != nil || d.Action == agent.Deny || s.next == nil {
		return d, err
	}
	return s.next.Decide(ctx, p)
}

// childEnvironment is the environment of a child: its commands run within the
// parent's command and start in its working directory.
type childEnvironment struct {
	env.Environment
	dir string
}

// Execute implements env.Environment. The end of the parent's command
// interrupts the child, even if Execute notices it before ctx ends.
func (b childEnvironment) Execute(ctx context.Context, c env.Command) (env.Result, error) {
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
func (b childEnvironment) Info() env.Info {
	info := b.Environment.Info()
	if b.dir != "" {
		info.Dir = b.dir
	}
	info.Warnings = nil // the parent reports them
	return info
}
