package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Past is what an attempt goes on from: one that was interrupted, or a point of
// another one. Recall makes it of records.
type Past struct {
	Header trajectories.Header
	// Entries are the conversation, as the model had it. What is left of its last
	// reply to be done is done first. Where there are none, the attempt begins at
	// its beginning, with what was spent all the same.
	Entries []trajectories.Entry
	// Compactions are those that hold: what the model was shown in place of some of
	// the entries.
	Compactions []trajectories.Compacted
	// Record is the last one that is gone on from: what stands after it in the
	// journal is left behind.
	Record int
	// Executions are the commands that made the sandbox what the conversation says
	// it is, in their order.
	Executions []Executed
	// Asked are the calls of tools among them, in the order in which they ended.
	Asked []trajectories.ToolCall
	// Delegated says that commands among them had children, whose own commands are
	// in other journals: running Executions again does not make the sandbox what it
	// was.
	Delegated bool
	// Foreign says that all this was another agent's.
	Foreign bool
	// Steps, Usage and Cost are those of all calls, also of those left behind:
	// they were made. Those of an attempt that this one branches off from count as
	// steps only. Worked is the time that counts against the limit.
	Steps  int
	Usage  model.Usage
	Cost   model.Cost
	Worked time.Duration
	// Children is what children spent, which is no part of the numbers above.
	Children Spending
	// Start is when the attempt began, Idle what passed since in which nobody
	// worked on it.
	Start    time.Time
	Idle     time.Duration
	Times    trajectories.Times
	Warnings []string
	// Limits are those that a person raised last; nil where nobody did.
	Limits *Limits
	// Files are how they were at the beginning; nil where that is not on record.
	Files *worktree.State
	// Killed says why the sandbox ended while the command ran that is the next of
	// the last reply: that one is not run again, and the model is told. Empty where
	// no command was cut short so.
	Killed string
	// Submitted says that the work was handed in: nothing is left to be done of
	// the last reply, and the attempt goes on only where somebody says what with.
	Submitted bool
	// Rebuild makes a fresh sandbox what it was, after the start-up command and
	// the scrub, and before anything else. Its time does not count. nil leaves
	// the sandbox as it is. The tree is nil where the repository is not looked at.
	Rebuild func(ctx context.Context, box env.Environment, tree *worktree.Tree) error
}

// Carry adds what was before to the outcome of a session that never came to its
// agent. A nil Past has nothing.
func (p *Past) Carry(out *trajectories.Outcome) {
	if p == nil {
		return
	}
	out.Start, out.Idle, out.Times = p.Start, trajectories.Seconds(p.Idle), p.Times
	all := p.Total()
	out.Steps, out.Usage, out.Cost = out.Steps+all.Steps, out.Usage.Add(all.Usage), out.Cost+all.Cost
	out.ChildSteps += p.Children.Steps
}

// Total is what the attempt has spent so far, its children's part included.
func (p *Past) Total() Spending {
	return Spending{p.Steps, p.Usage, p.Cost}.Add(p.Children)
}

// Executed is a command of the past.
type Executed struct {
	Step int // whose reply asked for it, from 1
	trajectories.Ran
}

// Recall finds the past in the records of a journal: the newest point at which
// everything that was begun is over, and no command is run twice in one sandbox.
// A call whose reply is not on record, a command whose output the model was never
// told, and answers that say no more than that the attempt was over, are left
// behind; the actions that they belong to are still to be done.
func Recall(records iter.Seq2[trajectories.Record, error]) (*Past, error) {
	p := &Past{Record: 1} // the header
	t, err := trajectories.Gather(p.count(records))
	if err != nil {
		return nil, fmt.Errorf("recall attempt: %w", err)
	}
	p.Header, p.Foreign = t.Header, t.Foreign()
	p.Killed = killed(t)
	p.Submitted = t.Outcome != nil && t.Outcome.Class == trajectories.Submitted
	p.Entries = t.Entries[:settled(t.Entries)]
	if n := len(p.Entries); n > 0 {
		p.Record = p.Entries[n-1].Record
	}
	for _, c := range t.Compactions {
		// One that was made for a call whose reply is lost is not made again.
		if len(p.Entries) == len(t.Entries) || c.Record < p.Record {
			p.Record, p.Compactions = max(p.Record, c.Record), append(p.Compactions, c)
		}
	}
	for _, ran := range t.Setup {
		p.asked(ran)
	}
	step := 0
	for _, e := range p.Entries {
		if e.Cause == trajectories.CauseReply {
			step++
		}
		for _, ran := range e.Ran {
			if ran.Record < p.Record {
				p.Executions = append(p.Executions, Executed{step, ran})
				p.asked(ran)
			}
		}
	}
	return p, nil
}

// asked takes in what a command asked for.
func (p *Past) asked(ran trajectories.Ran) {
	for _, c := range ran.Tools {
		p.Asked = append(p.Asked, c.ToolCall)
		p.Delegated = p.Delegated || len(c.Children()) > 0
	}
}

// settled is how many entries are whole steps and, of the last one, what can be
// gone on from.
func settled(entries []trajectories.Entry) int {
	last := lastReply(entries)
	if last < 0 {
		if n := len(entries); n > 0 && entries[n-1].Role == model.User {
			return n
		}
		return 0 // the prompts are said anew
	}
	answers := entries[last+1:]
	told := observations(answers)
	// Feedback ends a step when every call has its answer; that an attempt was
	// over is no answer.
	if told < len(answers) && answers[told].Cause != trajectories.CauseNotRun && len(answers) >= wanted(entries[last]) {
		return len(entries)
	}
	return last + 1 + told
}

func lastReply(entries []trajectories.Entry) int {
	for i, e := range slices.Backward(entries) {
		if e.Cause == trajectories.CauseReply {
			return i
		}
	}
	return -1
}

// observations is how many answers tell what a command did, before any other.
func observations(answers []trajectories.Entry) int {
	n := slices.IndexFunc(answers, func(e trajectories.Entry) bool { return e.Cause != trajectories.CauseObservation })
	if n < 0 {
		return len(answers)
	}
	return n
}

// wanted is how many messages answer a reply.
func wanted(reply trajectories.Entry) int { return max(1, len(reply.Calls)) }

// count passes records on, and adds up what they took on the way.
func (p *Past) count(records iter.Seq2[trajectories.Record, error]) iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		var s sitting
		for r, err := range records {
			if err == nil {
				err = p.add(&s, r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
		p.Worked += s.worked() // of the newest sitting
		if !s.seen.IsZero() {
			p.Idle += max(0, time.Since(s.seen))
		}
	}
}

// sitting is the time in which an agent was at work without a break.
type sitting struct {
	from, to time.Time // work
	seen     time.Time // the last sign of any kind
	waited   time.Duration
}

func (s *sitting) worked() time.Duration { return max(0, s.to.Sub(s.from)-s.waited) }

// work takes in that the agent was at work for so long, until then.
func (s *sitting) work(until time.Time, took, waited trajectories.Seconds) {
	if s.from.IsZero() {
		s.from = until.Add(-max(0, time.Duration(took)))
	}
	s.to, s.waited = until, s.waited+max(0, time.Duration(waited))
}

func (p *Past) add(s *sitting, r trajectories.Record) error {
	var d struct { // what is asked of the data of several types
		Usage    model.Usage          `json:"usage"`
		Cost     model.Cost           `json:"cost"`
		Duration trajectories.Seconds `json:"duration"`
		Waited   trajectories.Seconds `json:"waited"`
		Times    trajectories.Times   `json:"times"`
		Warnings []string             `json:"warnings"`
	}
	switch r.Type {
	case trajectories.TypeCall, trajectories.TypeSummary, trajectories.TypeSpent, trajectories.TypeExecution, trajectories.TypeScrub, trajectories.TypeReplay,
		trajectories.TypeCheck, trajectories.TypeDiff, trajectories.TypeOutcome:
		if err := json.Unmarshal(r.Data, &d); err != nil {
			return fmt.Errorf("record %d: %w", r.ID, err)
		}
	}
	if !p.Header.Inherited(r.ID) { // else it was another attempt's time
		p.Times.Add(r.Type, d.Duration)
	}
	switch r.Type {
	case trajectories.TypeHeader:
		p.Start = r.Time
		var err error
		if p.Header, err = trajectories.HeaderOf(r); err != nil {
			return err
		}
	case trajectories.TypeResume:
		p.Worked += s.worked()
		p.Idle += max(0, r.Time.Sub(s.seen))
		*s = sitting{}
	case trajectories.TypeReplay: // making a sandbox anew is no work
		s.from, s.to = r.Time, r.Time
	case trajectories.TypeStart:
		var start trajectories.Start
		if err := json.Unmarshal(r.Data, &start); err != nil {
			return fmt.Errorf("record %d: %w", r.ID, err)
		}
		p.Files = &worktree.State{Base: start.Base, Tree: start.Tree, Patch: start.Patch, Ignored: start.Ignored, Left: start.Left}
	case trajectories.TypeLimits:
		p.Limits = &Limits{}
		if err := json.Unmarshal(r.Data, p.Limits); err != nil {
			return fmt.Errorf("record %d: %w", r.ID, err)
		}
	case trajectories.TypeOutcome:
		p.Warnings = lasting(d.Warnings)
		if d.Times != (trajectories.Times{}) { // which know more than records do: the start of the sandbox
			p.Times = d.Times
		}
	case trajectories.TypeDiff: // nor is what comes after the end
	case trajectories.TypeCall, trajectories.TypeSummary:
		if r.Type == trajectories.TypeCall {
			p.Steps++
		}
		if !p.Header.Inherited(r.ID) { // else it was paid for there
			p.Usage, p.Cost = p.Usage.Add(d.Usage), p.Cost+d.Cost
		}
		s.work(r.Time, d.Duration, d.Waited)
	case trajectories.TypeSpent:
		one := Spending{}
		if trajectories.IsStep(r) {
			one.Steps = 1
		}
		if !p.Header.Inherited(r.ID) {
			one.Usage, one.Cost = d.Usage, d.Cost
		}
		p.Children = p.Children.Add(one)
		s.work(r.Time, d.Duration, d.Waited)
	default:
		s.work(r.Time, d.Duration, 0)
	}
	s.seen = r.Time
	if p.Header.Inherited(r.ID) { // from a time before this attempt
		s.seen = p.Start
		if r.ID == p.Header.Origin.Record {
			p.Worked, *s = p.Worked+s.worked(), sitting{seen: p.Start}
		}
	}
	return nil
}

// aboutDiff is in every warning of a diff.
const aboutDiff = "working diff"

// noDiff ends the warning that there is nothing to take a diff of.
const noDiff = "patch is empty unless the agent writes one"

// lasting are the warnings that still hold when an attempt goes on: its diff will
// be taken anew.
func lasting(warnings []string) []string {
	return slices.DeleteFunc(warnings, func(w string) bool {
		return strings.Contains(w, aboutDiff) || strings.HasSuffix(w, noDiff)
	})
}

// recall makes a run what it was at the end of its past.
func (r *run) recall() {
	p := r.Past
	if p == nil {
		return
	}
	r.steps, r.usage, r.cost, r.warnings = p.Steps, p.Usage, p.Cost, slices.Clone(p.Warnings)
	r.asking.spent, r.asking.begun = p.Children, p.Children.Steps
	r.clock.before = p.Worked
	if p.Limits != nil {
		r.limits = *p.Limits
	}
	made := p.Compactions
	for i, e := range p.Entries {
		made = r.recompact(made, e.Record)
		r.remember(e.Record, e.Message)
		r.relearn(p.Entries, i)
		r.images += len(e.Images)
		for _, img := range e.Images {
			r.imagesBytes += len(img.Data)
		}
		switch next := i + 1; {
		case e.Cause == trajectories.CauseMalformedPatch:
			r.returned = true
		case e.Cause != trajectories.CauseReply:
		case next < len(p.Entries) && p.Entries[next].Cause == trajectories.CauseFormatError:
			r.badRow++
		case next < len(p.Entries):
			r.badRow = 0
		}
		if e.Call != nil {
			r.countOf(lastUsage(*e.Call), len(r.view.Messages()))
		}
	}
	r.recompact(made, math.MaxInt)
}

// recompact makes the compactions before a record, and returns those that are left.
func (r *run) recompact(made []trajectories.Compacted, before int) []trajectories.Compacted {
	for len(made) > 0 && made[0].Record < before {
		r.view.Compact(made[0].Record, made[0].Compaction)
		r.overlong = made[0].TokensAfter > r.cfg.compactionTokens()
		r.counted, r.sizes, made = count{}, nil, made[1:]
	}
	return made
}

// lastUsage is that of the request that was answered.
func lastUsage(c trajectories.Call) model.Usage {
	n := len(c.Attempts)
	switch {
	case n == 0:
		return c.Usage
	case c.Attempts[n-1].Usage == nil:
		return model.Usage{}
	}
	return *c.Attempts[n-1].Usage
}

// totalTimes adds the times of the sessions before.
func (p *Past) totalTimes(now trajectories.Times) trajectories.Times {
	if p == nil {
		return now
	}
	return trajectories.Times{
		Start: now.Start + p.Times.Start, Scrub: now.Scrub + p.Times.Scrub, Model: now.Model + p.Times.Model,
		Commands: now.Commands + p.Times.Commands, Diff: now.Diff + p.Times.Diff,
	}
}
