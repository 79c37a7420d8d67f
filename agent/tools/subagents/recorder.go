package subagents

import (
	"context"
	"errors"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// childRecorder writes a child's records to its journal. It also charges the
// child's model calls to the parent and publishes the child's progress as
// events of the parent.
type childRecorder struct {
	*Journal
	parent    *agent.Attempt
	depth     int
	lastReply string // text of the latest reply
}

// Append implements agent.Recorder.
func (r *childRecorder) Append(t trajectories.Type, data any) (trajectories.Record, error) {
	rec, err := r.Journal.Append(t, data)
	if err != nil {
		return rec, err
	}
	if c, ok := data.(trajectories.ModelCall); ok {
		return rec, r.parent.RecordChildCall(c.OfChild(r.child))
	}
	if m, ok := data.(trajectories.Message); ok && m.Cause == trajectories.CauseReply {
		r.lastReply = m.Content
		for _, command := range m.Actions {
			r.publish(events.ChildProgress{Command: command})
		}
	}
	return rec, nil
}

func (r *childRecorder) publish(e events.ChildProgress) {
	e.Step, e.Child, e.Depth = r.parent.Step(), r.child, r.depth
	r.parent.Session().Events.Publish(e)
}

// serialApprover asks the parent's approver about the commands of one child at
// a time.
type serialApprover struct {
	agent.Approver
	pool *Pool
}

// Decide implements agent.Approver. A request of a nested child passes through
// several serialApprovers; only the first one takes the lock, and it sets
// FromChild.
func (a serialApprover) Decide(ctx context.Context, request agent.ApprovalRequest) (agent.Decision, error) {
	if !request.FromChild {
		a.pool.counters.approvalMu.Lock()
		defer a.pool.counters.approvalMu.Unlock()
	}
	request.FromChild = true
	if ctx.Err() != nil {
		return agent.Decision{}, context.Cause(ctx)
	}
	return a.Approver.Decide(ctx, request)
}

// profileApprover asks the approver of a profile and, if that does not deny,
// the parent's approver (next), which may be nil.
type profileApprover struct {
	agent.Approver
	next agent.Approver
}

// Decide implements agent.Approver.
func (a profileApprover) Decide(ctx context.Context, request agent.ApprovalRequest) (agent.Decision, error) {
	d, err := a.Approver.Decide(ctx, request)
	if err != nil || d.Action == agent.Deny || a.next == nil {
		return d, err
	}
	return a.next.Decide(ctx, request)
}

// childEnvironment is the environment of a child. The child's commands run
// within the parent's command and start in that command's working directory.
type childEnvironment struct {
	env.Environment
	dir string
}

// Execute implements env.Environment. If the parent's command has ended, the
// child is interrupted, even if Execute returns before ctx ends.
func (e childEnvironment) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if c.Dir == "" {
		c.Dir = e.dir
	}
	res, err := e.Environment.Execute(ctx, c)
	if errors.Is(err, env.ErrClosed) {
		err = errors.Join(agent.ErrInterrupted, err)
	}
	return res, err
}

// Info implements env.Environment.
func (e childEnvironment) Info() env.Info {
	info := e.Environment.Info()
	if e.dir != "" {
		info.Dir = e.dir
	}
	info.Warnings = nil // the parent reports them
	return info
}
