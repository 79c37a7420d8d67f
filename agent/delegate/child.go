package delegate

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
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// order is what a child is to do, and with what.
type order struct {
	name           string // of a step of a chain
	task           string
	skill, profile string
	schema         *schema // of the report; nil for a text
	passed         []passed
}

// report is what a child came to.
type report struct {
	child trajectories.Child // without a number where there was none
	text  string             // its report, or its last words where the error is not nil
}

// run has a child follow an order. The error says why there is no report, or none
// that serves.
func (f *Family) run(ctx context.Context, c tools.Call, o order) (report, error) {
	from := lineageOf(ctx)
	left, err := c.Attempt.Left()
	if err != nil {
		return report{}, errors.New("nothing is left of the budget for a child to spend")
	}
	kind, err := f.Kind(o.profile)
	if err != nil {
		return report{}, err
	}
	skill, err := f.skillOf(o)
	if err != nil {
		return report{}, err
	}
	if err := f.admit(from); err != nil {
		return report{}, err
	}
	journal, err := f.Journals.New(trajectories.Header{Parent: &trajectories.Parent{
		Step: c.Attempt.Step(), Depth: from.depth + 1, Of: from.child, Task: o.task, Skill: o.skill, Profile: o.profile,
	}})
	if err != nil {
		return report{}, err
	}
	self := lineage{child: journal.Child(), depth: from.depth + 1}
	within, stop := bounded(self.into(ctx))
	defer stop()
	rec := &paid{Journal: journal, parent: c.Attempt, depth: self.depth}
	ask := &listener{schema: o.schema}
	rec.tell(events.ChildWorked{Task: o.task})
	out := kind.Agent.Within(left).Run(within, f.session(ctx, c, session{
		kind: kind, recorder: rec, person: ask, skill: skill, depth: self.depth, task: agent.Task{Text: told(o, skill)},
	}))
	rec.tell(events.ChildWorked{ExitStatus: out.ExitStatus, Steps: out.Steps, Cost: out.Cost})
	done := report{child: trajectories.Child{
		Child: journal.Child(), Name: o.name, Task: tools.Clip(o.task, maxTold),
		Class: out.Class, ExitStatus: out.ExitStatus, Steps: out.Steps, Usage: out.Usage, Cost: out.Cost,
	}}
	if done.child.Journal, done.child.SHA256, err = journal.Seal(); err != nil {
		return done, err
	}
	done.text, err = ask.answer(out, rec.said)
	done.text = tools.Clip(strings.ToValidUTF8(done.text, "\ufffd"), maxReport)
	if err != nil {
		done.child.Problem = tools.Clip(err.Error(), 1<<10)
	}
	return done, err
}

func (f *Family) skillOf(o order) (Skill, error) {
	if o.skill == "" {
		return Skill{}, nil
	}
	if f.Skill == nil {
		return Skill{}, errors.New("there are no skills here")
	}
	return f.Skill(o.skill)
}

// bounded is a context that ends with ctx, for a reason by which an attempt can
// end: a person's interruption of the parent's command, and the end of that at
// its timeout, interrupt the child.
func bounded(ctx context.Context) (context.Context, func()) {
	within, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := agent.ErrInterrupted
		for _, known := range []error{agent.ErrTimeExceeded, agent.ErrBudgetExhausted} {
			if errors.Is(context.Cause(ctx), known) {
				cause = known
			}
		}
		cancel(cause)
	})
	return within, func() { stop(); cancel(nil) }
}

// session is what differs from child to child.
type session struct {
	kind     Kind
	recorder agent.Recorder
	person   agent.Person
	skill    Skill
	depth    int
	task     agent.Task
}

// session is that of a child, out of its parent's.
func (f *Family) session(ctx context.Context, c tools.Call, s session) agent.Session {
	parents := c.Attempt.Session()
	pause := func() func() { return model.Pause(ctx) }
	own := agent.Session{
		Model:       paused{parents.Model, pause},
		Environment: inside{c.Inside, c.Dir},
		Recorder:    s.recorder,
		Task:        s.task,
		Allow:       c.Attempt.Allow,
		Afford:      c.Attempt.Afford,
		Tools:       f.toolbox(parents.Tools, s),
		Person:      s.person,
	}
	if s.kind.Model != nil {
		own.Model = paused{s.kind.Model, pause}
	}
	if parents.Summary != nil {
		own.Summary = paused{parents.Summary, pause}
	}
	who := parents.Supervisor
	if s.kind.Supervisor != nil {
		who = first{s.kind.Supervisor, who}
	}
	if who != nil {
		own.Supervisor = supervised{who, f, pause}
	}
	if s.skill.Restricts {
		own.Supervisor = under{s.skill, own.Supervisor}
	}
	return own
}

// restricted is what tools.Registry has.
type restricted interface {
	Names() []string
	Restrict(names []string) *tools.Registry
}

// toolbox is what a child's commands can ask for: what its parent's can, but for
// what the skill does not allow or the profile does not offer, and children where it
// may have none.
func (f *Family) toolbox(all agent.Toolbox, s session) agent.Toolbox {
	r, ok := all.(restricted)
	if !ok {
		return nil
	}
	names := slices.DeleteFunc(r.Names(), func(name string) bool {
		makes := name == delegateTool{}.Spec().Name || name == chainTool{}.Spec().Name
		return makes && s.depth >= f.Config.Depth || s.kind.Offers != nil && !s.kind.Offers(name) ||
			s.skill.Restricts && !slices.Contains(s.skill.AllowedTools, name)
	})
	return r.Restrict(names)
}

// listener hears what a child hands in. It stands where a person would be asked.
type listener struct {
	schema  *schema
	retried bool
	text    string // the last that was handed in
	json    string // out of it, where a schema is to be satisfied
	wrong   error  // why it does not serve
}

// Turn implements agent.Person.
func (*listener) Turn(context.Context) (string, error) { return "", nil }

// Raise implements agent.Person.
func (*listener) Raise(context.Context, agent.Limits) (agent.Limits, bool, error) {
	return agent.Limits{}, false, nil
}

// Next implements agent.Person: a report that does not satisfy the schema is given
// back once.
func (l *listener) Next(_ context.Context, s *agent.Submitted) (string, error) {
	l.text, l.wrong = cmp.Or(string(bytes.TrimSpace(s.Patch)), strings.TrimSpace(s.Reply)), nil
	if l.schema == nil {
		return "", nil
	}
	if l.json, l.wrong = l.schema.find(l.text); l.wrong == nil || l.retried {
		return "", nil
	}
	l.retried = true
	return fmt.Sprintf("The report does not serve: %v.\nHand in again, as before, with nothing but JSON that satisfies the schema:\n\n%s",
		l.wrong, l.schema.text), nil
}

// answer is what the parent gets.
func (l *listener) answer(out trajectories.Outcome, said string) (string, error) {
	if out.Class != trajectories.Submitted {
		why := out.ExitStatus
		if out.Error != "" {
			why += ": " + tools.Clip(out.Error, 500)
		}
		return said, fmt.Errorf("the child ended without a report after %s: %s%s", count(out.Steps, "step"), why, lastWords(said))
	}
	switch {
	case l.schema != nil && l.wrong != nil:
		return l.text, fmt.Errorf("the child's report is not what was asked for, also when it was asked again: %w; above is what it said", l.wrong)
	case l.schema != nil:
		return l.json, nil
	case l.text == "":
		return said, errors.New("the child ended without a report; above is what it said last")
	}
	return l.text, nil
}

func lastWords(said string) string {
	if said == "" {
		return ""
	}
	return "; above is what it said last"
}
