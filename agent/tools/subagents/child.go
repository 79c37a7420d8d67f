package subagents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories"
)

// childTask is the task of a child with all inputs.
type childTask struct {
	name           string // name of the chain's step; empty for delegate
	text           string
	skill, profile string
	definition     Definition
	loadedSkill    Skill
	schema         *schema // of the report; nil for plain text
	passed         []passedText
}

// childReport is the result of a child.
type childReport struct {
	child trajectories.ChildResult // Child is 0 if no child was created
	text  string                   // the report, or the child's last text if there is an error
}

// runChild runs a task in a new child and returns the child's report. The error
// says why the report is missing or invalid.
func (p *Pool) runChild(ctx context.Context, c tools.Call, task childTask) (childReport, error) {
	parent := positionFrom(ctx)
	remaining, err := c.Attempt.Remaining()
	if err != nil {
		return childReport{}, errors.New("nothing is left of the budget for a child to spend")
	}
	if err := p.reserveChild(parent); err != nil {
		return childReport{}, err
	}
	journal, err := p.Journals.Create(trajectories.Header{Parent: &trajectories.Parent{
		Step: c.Attempt.Step(), Depth: parent.depth + 1, ParentChild: parent.child, Task: task.text, Skill: task.skill, Profile: task.profile,
	}})
	if err != nil {
		return childReport{}, err
	}
	self := position{child: journal.child, depth: parent.depth + 1}
	childCtx, stop := interruptible(self.withContext(ctx))
	defer stop()
	recorder := &childRecorder{Journal: journal, parent: c.Attempt, depth: self.depth}
	collector := &reportCollector{schema: task.schema}
	recorder.publish(events.ChildProgress{Task: task.text})
	out := task.definition.Agent.WithLimits(remaining).Run(childCtx, p.newSession(c, childSession{
		childTask: task, recorder: recorder, user: collector, depth: self.depth,
	}))
	recorder.publish(events.ChildProgress{ExitStatus: out.ExitStatus, Steps: out.Steps, Cost: out.Cost})
	report := childReport{child: trajectories.ChildResult{
		Child: journal.child, Name: task.name, Task: tools.Clip(task.text, maxRecordedTask),
		Class: out.Class, ExitStatus: out.ExitStatus, Steps: out.Steps, Usage: out.Usage, Cost: out.Cost,
	}}
	if report.child.Journal, report.child.SHA256, err = journal.Finish(); err != nil {
		return report, err
	}
	report.text, err = collector.result(out, recorder.lastReply)
	report.text = tools.Clip(strings.ToValidUTF8(report.text, "\ufffd"), maxReport)
	if err != nil {
		report.child.Problem = tools.Clip(err.Error(), 1<<10)
	}
	return report, err
}

// interruptible returns a context for a child that ends when ctx ends. Its
// cause is always one that ends an attempt: agent.ErrInterrupted, unless ctx
// ended because of the parent's time limit or the budget.
func interruptible(ctx context.Context) (context.Context, func()) {
	child, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := agent.ErrInterrupted
		for _, candidate := range []error{agent.ErrTimeExceeded, agent.ErrBudgetExhausted} {
			if errors.Is(context.Cause(ctx), candidate) {
				cause = candidate
			}
		}
		cancel(cause)
	})
	return child, func() { stop(); cancel(nil) }
}

// childSession contains what differs between the sessions of children.
type childSession struct {
	childTask
	recorder agent.Recorder
	user     agent.User
	depth    int
}

// newSession derives the session of a child from its parent's.
func (p *Pool) newSession(c tools.Call, s childSession) agent.Session {
	parentSession := c.Attempt.Session()
	session := agent.Session{
		Model:        cmp.Or(s.definition.Model, parentSession.Model),
		SummaryModel: parentSession.SummaryModel,
		Environment:  childEnvironment{c.Environment, c.Dir},
		Recorder:     s.recorder,
		Task:         agent.Task{Text: taskPrompt(s.childTask)},
		ReserveCall:  c.Attempt.ReserveCall,
		CheckBudget:  c.Attempt.CheckBudget,
		Tools:        p.childTools(parentSession.Tools, s),
		User:         s.user,
	}
	approver := parentSession.Approver
	if s.definition.Approver != nil {
		approver = profileApprover{s.definition.Approver, approver}
	}
	if approver != nil {
		session.Approver = serialApprover{approver, p}
	}
	if s.loadedSkill.Restricted {
		session.Approver = skillApprover{s.loadedSkill, session.Approver}
	}
	return session
}

// restrictor is a tool server whose tools can be restricted. tools.Registry
// implements it.
type restrictor interface {
	Names() []string
	Restrict(names []string) *tools.Registry
}

// childTools returns the tools of a child: its parent's, without those that the
// skill or the definition excludes. At the maximum depth, delegate and chain
// are excluded. If the parent's tools are no restrictor, the child has none.
func (p *Pool) childTools(all agent.ToolServer, s childSession) agent.ToolServer {
	registry, ok := all.(restrictor)
	if !ok {
		return nil
	}
	names := slices.DeleteFunc(registry.Names(), func(name string) bool {
		createsChild := name == delegateTool{}.Spec().Name || name == chainTool{}.Spec().Name
		return createsChild && s.depth >= p.Config.Depth || s.definition.AllowsTool != nil && !s.definition.AllowsTool(name) ||
			s.loadedSkill.Restricted && !slices.Contains(s.loadedSkill.AllowedTools, name)
	})
	return registry.Restrict(names)
}

// reportCollector implements agent.User for a child: it receives the child's
// report and answers no other question.
type reportCollector struct {
	schema  *schema
	retried bool
	text    string // the latest submission
	json    string // the JSON in it that satisfies the schema
	invalid error  // why the submission does not satisfy the schema
}

// NextCommand implements agent.User.
func (*reportCollector) NextCommand(context.Context) (string, error) { return "", nil }

// RaiseLimits implements agent.User.
func (*reportCollector) RaiseLimits(context.Context, agent.Limits) (agent.Limits, bool, error) {
	return agent.Limits{}, false, nil
}

// Answer implements agent.User.
func (*reportCollector) Answer(context.Context) (string, error) { return "", nil }

// NextTask implements agent.User. The first time that a report is invalid, it
// asks the child for another one.
func (c *reportCollector) NextTask(_ context.Context, s *agent.Submitted) (string, error) {
	c.text, c.invalid = cmp.Or(string(bytes.TrimSpace(s.Patch)), strings.TrimSpace(s.Reply)), nil
	if c.schema == nil {
		return "", nil
	}
	if c.json, c.invalid = c.schema.findReport(c.text); c.invalid == nil || c.retried {
		return "", nil
	}
	c.retried = true
	return fmt.Sprintf("The report does not serve: %v.\nHand in again, as before, with nothing but JSON that satisfies the schema:\n\n%s",
		c.invalid, c.schema.text), nil
}

// result returns the report that the parent receives, or the last text of the
// child and an error.
func (c *reportCollector) result(out trajectories.Outcome, lastReply string) (string, error) {
	if out.Class != trajectories.Submitted {
		reason := out.ExitStatus
		if out.Error != "" {
			reason += ": " + tools.Clip(out.Error, 500)
		}
		return lastReply, fmt.Errorf("the child ended without a report after %s: %s%s", text.Count(out.Steps, "step"), reason, lastReplyHint(lastReply))
	}
	switch {
	case c.schema != nil && c.invalid != nil:
		return c.text, fmt.Errorf("the child's report is not what was asked for, also when it was asked again: %w; above is what it said", c.invalid)
	case c.schema != nil:
		return c.json, nil
	case c.text == "":
		return lastReply, errors.New("the child ended without a report; above is what it said last")
	}
	return c.text, nil
}

func lastReplyHint(lastReply string) string {
	if lastReply == "" {
		return ""
	}
	return "; above is what it said last"
}
