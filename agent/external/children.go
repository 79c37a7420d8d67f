package external

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/bridge"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

const (
	maxThreads = 64       // of an attempt
	maxTask    = 32 << 10 // bytes of a subagent's task in its header
	maxShown   = 2 << 10  // bytes of it in the parent's journal
)

// child is a subagent of the agent. Its thread has a journal of its own, and the thread
// that started it the results.
type child struct {
	thread
	file     agent.ChildJournal
	number   int
	identity string  // in the headers of its requests; may be empty
	parent   *thread // that started it, or else the main one
	call     string  // id of the call in parent
	tool     string  // name of that call
	task     string
	info     trajectories.Parent
	spent    agent.Spending // with its own subagents
	start    time.Time
	nested   int                  // steps of its own subagents
	calls    trajectories.Attempt // those of its journal, for their tokens
}

// newChild starts the journal of a subagent. It returns nil if there are too many. s is
// the call that started the subagent, nil if it is not known.
func (r *recorder) newChild(x bridge.Exchange, identity string, s *spawn, unattributed bool) (*thread, error) {
	create := r.attempt.Session().NewChild
	if create == nil || len(r.children)+1 >= maxThreads {
		return nil, nil //nolint:nilnil // a side call
	}
	c := &child{identity: identity, parent: &r.main, tool: "subagent", start: x.Start}
	for _, m := range x.Messages {
		if m.Role == model.Assistant {
			break
		}
		if m.Role == model.User { // agents put context before the task
			c.task = normalize(m.Content)
		}
	}
	c.info = trajectories.Parent{Step: r.attempt.Step(), Depth: 1, Unattributed: unattributed}
	if s != nil {
		s.used = true
		c.parent, c.call, c.tool, c.task = s.thread, s.call, s.tool, s.text
		if p := s.thread.child; p != nil {
			c.info.Step, c.info.Depth, c.info.ParentChild = p.spent.Steps, p.info.Depth+1, p.number
		}
	}
	c.task = c.task[:min(len(c.task), maxTask)]
	c.info.Task = c.task
	var err error
	if c.file, err = create(c.info); err != nil {
		return nil, err
	}
	c.number, c.journal, c.child = c.file.Number(), c.file, c
	r.children = append(r.children, c)
	if !unattributed {
		c.parent.spawned = append(c.parent.spawned, c)
	}
	return &c.thread, nil
}

// recordCall records a model call with its tokens. That of a subagent was already charged to the attempt.
func (r *recorder) recordCall(t *thread, call trajectories.Call, tokens *model.Tokens) error {
	c := t.child
	if c == nil {
		return r.attempt.RecordCall(call, tokens)
	}
	c.spent = c.spent.Add(agent.Spending{Steps: 1, Usage: call.Usage, Cost: call.Cost})
	call.Tokens = c.calls.RecordTokens(tokens)
	rec, err := t.journal.Append(trajectories.TypeCall, call)
	c.calls.AddData(rec, call)
	return err
}

// recordSpent charges an exchange of a subagent, or of no thread, to the attempt and to
// the subagents in between.
func (r *recorder) recordSpent(t *thread, x bridge.Exchange) error {
	spent := trajectories.ChildCall{
		Usage: x.Reply.Usage, Cost: x.Reply.Cost, Start: x.Start,
		Duration: trajectories.Seconds(x.Duration), Waited: trajectories.Seconds(x.Reply.Waited),
	}
	if t != nil {
		spent.Child = t.child.number
		for p := t.child.parent.child; p != nil; p = p.parent.child {
			p.spent = p.spent.Add(agent.Spending{Steps: 1, Usage: spent.Usage, Cost: spent.Cost})
			p.nested++
			if _, err := p.file.Append(trajectories.TypeChildCall, spent); err != nil {
				return err
			}
		}
	}
	return r.attempt.RecordChildCall(spent)
}

// recordChildren records which subagents the next execution started: those whose call has
// its result, and those whose call is not known.
func (t *thread) recordChildren(x bridge.Exchange) error {
	isOpen := func(c *child) bool {
		return slices.ContainsFunc(t.actions, func(a action) bool { return a.id == c.call })
	}
	var results []trajectories.ChildResult
	name := ""
	for _, c := range t.spawned {
		if !isOpen(c) {
			results, name = append(results, c.result()), c.tool
		}
	}
	t.spawned = slices.DeleteFunc(t.spawned, func(c *child) bool { return !isOpen(c) })
	if len(results) == 0 {
		return nil
	}
	details, err := json.Marshal(map[string]any{"children": results})
	if err != nil {
		return err
	}
	_, err = t.journal.Append(trajectories.TypeTool, trajectories.ToolCall{
		Name: name, Start: t.replied, Duration: trajectories.Seconds(x.Start.Sub(t.replied)), Details: details,
	})
	return err
}

// result describes the child's work so far.
func (c *child) result() trajectories.ChildResult {
	out := c.outcome()
	return trajectories.ChildResult{
		Child: c.number, Task: c.task[:min(len(c.task), maxShown)], Journal: c.file.Name(),
		Class: out.Class, ExitStatus: out.ExitStatus, Steps: out.Steps, Usage: out.Usage, Cost: out.Cost,
	}
}

// outcome is submitted, with the last reply as report, if that reply asks for nothing.
func (c *child) outcome() trajectories.Outcome {
	err := agent.ErrInterrupted
	if !c.replied.IsZero() && len(c.actions) == 0 {
		err = &agent.Submitted{Patch: []byte(c.last)}
	}
	out := agent.OutcomeOf(c.start, err)
	if !c.replied.IsZero() {
		out.End = c.replied
	}
	out.Steps, out.ChildSteps, out.Usage, out.Cost = c.spent.Steps, c.nested, c.spent.Usage, c.spent.Cost
	return out
}

// end records what is left at the end of the agent: the only reply, and the outcomes of the
// subagents.
func (r *recorder) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.recordPending(); err != nil {
		return err
	}
	unattributed := 0
	for _, c := range r.children {
		if c.info.Unattributed {
			unattributed++
		}
		if _, err := c.file.Append(trajectories.TypeOutcome, c.outcome()); err != nil {
			return err
		}
		if err := c.file.Close(); err != nil {
			return err
		}
	}
	if unattributed > 0 {
		r.attempt.Warn(fmt.Sprintf("%d conversations of the agent were started by no known call; they are subagents marked unattributed", unattributed))
	}
	return nil
}
