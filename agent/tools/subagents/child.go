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

// childTask is the task of a child and its inputs.
type childTask struct {
	name           string // of a chain's step
	task           string
	skill, profile string
	definition     Definition
	loadedSkill    Skill
	schema         *schema // of the report; nil for plain text
	passed         []passedText
}

// childReport is the result of a child.
type childReport struct {
	child trajectories.ChildResult // its number is 0 if none was created
	text  string                   // the report, or the last reply if there is an error
}

// runChild runs a task in a new child. The error says why there is no valid
// report.
func (f *Pool) runChild(ctx context.Context, c tools.Call, o childTask) (childReport, error) {
	parent := positionFrom(ctx)
	remaining, err := c.Attempt.Remaining()
	if err != nil {
		return childReport{}, errors.New("nothing is left of the budget for a child to spend")
	}
	if err := f.reserveChild(parent); err != nil {
		return childReport{}, err
	}
	journal, err := f.Journals.Create(trajectories.Header{Parent: &trajectories.Parent{
		Step: c.Attempt.Step(), Depth: parent.depth + 1, ParentChild: parent.child, Task: o.task, Skill: o.skill, Profile: o.profile,
	}})
	if err != nil {
		return childReport{}, err
	}
	self := position{child: journal.child, depth: parent.depth + 1}
	childCtx, stop := interruptible(self.withContext(ctx))
	defer stop()
	rec := &childRecorder{Journal: journal, parent: c.Attempt, depth: self.depth}
	collector := &reportCollector{schema: o.schema}
	rec.publish(events.ChildProgress{Task: o.task})
	out := o.definition.Agent.WithLimits(remaining).Run(childCtx, f.newSession(c, childSession{
		childTask: o, recorder: rec, user: collector, depth: self.depth,
	}))
	rec.publish(events.ChildProgress{ExitStatus: out.ExitStatus, Steps: out.Steps, Cost: out.Cost})
	done := childReport{child: trajectories.ChildResult{
		Child: journal.child, Name: o.name, Task: tools.Clip(o.task, maxRecordedTask),
		Class: out.Class, ExitStatus: out.ExitStatus, Steps: out.Steps, Usage: out.Usage, Cost: out.Cost,
	}}
	if done.child.Journal, done.child.SHA256, err = journal.Finish(); err != nil {
		return done, err
	}
	done.text, err = collector.result(out, rec.lastReply)
	done.text = tools.Clip(strings.ToValidUTF8(done.text, "\ufffd"), maxReport)
	if err != nil {
		done.child.Problem = tools.Clip(err.Error(), 1<<10)
	}
	return done, err
}

// interruptible returns a context that ends with ctx, but with a cause that can
// end an attempt: if the parent's command is interrupted or times out, the
// child is interrupted.
func interruptible(ctx context.Context) (context.Context, func()) {
	child, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := agent.ErrInterrupted
		for _, known := range []error{agent.ErrTimeExceeded, agent.ErrBudgetExhausted} {
			if errors.Is(context.Cause(ctx), known) {
				cause = known
			}
		}
		cancel(cause)
	})
	return child, func() { stop(); cancel(nil) }
}

// childSession is the part of a session that differs between children.
type childSession struct {
	childTask
	recorder agent.Recorder
	user     agent.User
	depth    int
}

// newSession derives the session of a child from its parent's.
func (f *Pool) newSession(c tools.Call, s childSession) agent.Session {
	parents := c.Attempt.Session()
	own := agent.Session{
		Model:        cmp.Or(s.definition.Model, parents.Model),
		SummaryModel: parents.SummaryModel,
		Environment:  childEnvironment{c.Environment, c.Dir},
		Recorder:     s.recorder,
		Task:         agent.Task{Text: taskPrompt(s.childTask)},
		ReserveCall:  c.Attempt.ReserveCall,
		CheckBudget:  c.Attempt.CheckBudget,
		Tools:        f.childTools(parents.Tools, s),
		User:         s.user,
	}
	approver := parents.Approver
	if s.definition.Approver != nil {
		approver = profileApprover{s.definition.Approver, approver}
	}
	if approver != nil {
		own.Approver = serialApprover{approver, f}
	}
	if s.loadedSkill.Restricted {
		own.Approver = skillApprover{s.loadedSkill, own.Approver}
	}
	return own
}

// restrictor is implemented by tools.Registry.
type restrictor interface {
	Names() []string
	Restrict(names []string) *tools.Registry
}

// childTools returns the tools of a child: its parent's, without those that the
// skill or the definition excludes. At the maximum depth, delegate and chain
// are excluded.
func (f *Pool) childTools(all agent.ToolServer, s childSession) agent.ToolServer {
	r, ok := all.(restrictor)
	if !ok {
		return nil
	}
	names := slices.DeleteFunc(r.Names(), func(name string) bool {
		createsChild := name == delegateTool{}.Spec().Name || name == chainTool{}.Spec().Name
		return createsChild && s.depth >= f.Config.Depth || s.definition.AllowsTool != nil && !s.definition.AllowsTool(name) ||
			s.loadedSkill.Restricted && !slices.Contains(s.loadedSkill.AllowedTools, name)
	})
	return r.Restrict(names)
}

// reportCollector receives a child's report. It takes the place of the user.
type reportCollector struct {
	schema  *schema
	retried bool
	text    string // the latest submission
	json    string // the JSON in it that satisfies the schema
	invalid error  // why it does not satisfy the schema
}

// NextCommand implements agent.User.
func (*reportCollector) NextCommand(context.Context) (string, error) { return "", nil }

// RaiseLimits implements agent.User.
func (*reportCollector) RaiseLimits(context.Context, agent.Limits) (agent.Limits, bool, error) {
	return agent.Limits{}, false, nil
}

// NextTask implements agent.User. It rejects an invalid report once.
func (l *reportCollector) NextTask(_ context.Context, s *agent.Submitted) (string, error) {
	l.text, l.invalid = cmp.Or(string(bytes.TrimSpace(s.Patch)), strings.TrimSpace(s.Reply)), nil
	if l.schema == nil {
		return "", nil
	}
	if l.json, l.invalid = l.schema.findReport(l.text); l.invalid == nil || l.retried {
		return "", nil
	}
	l.retried = true
	return fmt.Sprintf("The report does not serve: %v.\nHand in again, as before, with nothing but JSON that satisfies the schema:\n\n%s",
		l.invalid, l.schema.text), nil
}

// result returns what the parent receives.
func (l *reportCollector) result(out trajectories.Outcome, lastReply string) (string, error) {
	if out.Class != trajectories.Submitted {
		why := out.ExitStatus
		if out.Error != "" {
			why += ": " + tools.Clip(out.Error, 500)
		}
		return lastReply, fmt.Errorf("the child ended without a report after %s: %s%s", text.Count(out.Steps, "step"), why, lastReplyHint(lastReply))
	}
	switch {
	case l.schema != nil && l.invalid != nil:
		return l.text, fmt.Errorf("the child's report is not what was asked for, also when it was asked again: %w; above is what it said", l.invalid)
	case l.schema != nil:
		return l.json, nil
	case l.text == "":
		return lastReply, errors.New("the child ended without a report; above is what it said last")
	}
	return l.text, nil
}

func lastReplyHint(lastReply string) string {
	if lastReply == "" {
		return ""
	}
	return "; above is what it said last"
}
