// Package timeline groups an attempt into steps for display. A step has reasoning, text,
// commands, results and events. The package does not render them.
//
// The package does not change texts; the caller must sanitize them for a terminal.
package timeline

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Timeline is an attempt as a list of steps.
type Timeline struct {
	Header  trajectories.Header
	Diff    *trajectories.Diff
	Outcome *trajectories.Outcome
	Totals  trajectories.Totals
	// Steps has everything before the first reply as its first element; each further
	// element is a reply.
	Steps []*Step
	// End describes the diff, the outcome and an error of Build. It is nil if there is
	// none of them.
	End *Step
	// Usage and Cost are the totals of the attempt's own calls, without summaries and
	// subagents. They include calls whose replies were abandoned.
	Usage model.Usage
	Cost  model.Cost
	// FailedCalls is the number of calls that are no step, because they failed or their replies were
	// abandoned.
	FailedCalls int
	// Limits are those that the user set last; nil if the user set none.
	Limits *trajectories.Limits
}

// Step is a reply of the model with the results of its commands. The first step and
// Timeline.End are no replies; they have the items before the first reply and about the
// end of the attempt.
type Step struct {
	Number int    // of the reply, from 1; 0 for other steps
	Name   string // PromptsStep or EndStep; empty for a reply
	// Cost and Tokens are Timeline.Cost and the prompt and completion tokens of
	// Timeline.Usage after the call of this step.
	Cost   model.Cost
	Tokens int64
	Time   time.Time
	// Failed is set if a command failed, if the reply or the patch was rejected, or if
	// mini reported a problem other than an empty patch.
	Failed bool
	Items  []*Item
	// Call is the model call of the reply; nil if the journal has none.
	Call *trajectories.Call

	record  int // ID of the record that the step, or the part of a step, is about
	isReply bool
}

// Kind is the kind of an item.
type Kind string

// The kinds of items. The page of an attempt uses them as classes of its style sheet.
const (
	Message   Kind = "message"   // a message to the model, such as a prompt or a user message
	Reply     Kind = "reply"     // the text of a reply, without its command
	Reasoning Kind = "reasoning" // the reasoning of a reply
	Command   Kind = "command"   // a command, or a tool call that was not parsed as a command
	Output    Kind = "output"    // output of a command, including escape sequences
	Note      Kind = "note"      // information from mini
	Problem   Kind = "problem"   // an error reported by mini
	Patch     Kind = "patch"     // a diff
)

// Item is an element of a step.
type Item struct {
	Kind  Kind
	Label string // title; may be empty
	Text  string
	// Execution is the result of a command, without its output, which is in Results; nil
	// if there is none yet.
	Execution *trajectories.Execution
	// Results are items about a command: its result, output, exception, tool requests
	// and background processes, in this order.
	Results []*Item
}

// Names of steps that are not replies.
const (
	PromptsStep = "prompts"
	EndStep     = "end"
)

// Build returns the timeline of records. With an error, it also returns the timeline of
// the records before the error, with an item about the error in End.
func Build(records iter.Seq2[trajectories.Record, error]) (*Timeline, error) {
	a, err := trajectories.ForDisplay.Fold(records)
	t := New(a)
	if err != nil {
		if t.End == nil {
			t.End = &Step{Name: EndStep}
		}
		t.End.add(Problem, "", "the rest of the file is damaged: "+err.Error())
	}
	return t, err
}

// New returns the timeline of an attempt.
func New(a *trajectories.Attempt) *Timeline {
	prompts := &Step{Name: PromptsStep}
	if o := a.Header.Origin; o != nil {
		prompts.add(Note, "", fmt.Sprintf("forked from attempt %d of %s (run %s) after step %d", o.Attempt, o.InstanceID, o.Run, o.Step))
	}
	if a.Import != nil {
		prompts.add(Note, "", importText(a.Import))
	}
	t := &Timeline{Header: a.Header, Diff: a.Diff, Outcome: a.Outcome, Totals: a.Totals, Steps: []*Step{prompts}, End: endStep(a)}
	t.FailedCalls, t.Limits = len(a.FailedCalls), a.Limits
	parts := append(conversationParts(a), noteParts(a)...)
	slices.SortStableFunc(parts, func(x, y *Step) int { return cmp.Compare(x.record, y.record) })
	for _, p := range parts {
		t.addPart(p)
	}
	return t
}

// addPart adds a reply as a step, and the items of other parts to the newest step.
func (t *Timeline) addPart(p *Step) {
	if p.Call != nil {
		t.Usage, t.Cost = t.Usage.Add(p.Call.Usage), t.Cost+p.Call.Cost
	}
	if p.isReply {
		p.Number, p.Cost, p.Tokens = len(t.Steps), t.Cost, t.Usage.Prompt+t.Usage.Completion
		t.Steps = append(t.Steps, p)
		return
	}
	s := t.Steps[len(t.Steps)-1]
	s.Items, s.Failed = append(s.Items, p.Items...), s.Failed || p.Failed
}

// add adds an item to the step, unless both label and text are empty.
func (s *Step) add(kind Kind, label, text string) {
	if text != "" || label != "" {
		s.Items = append(s.Items, &Item{Kind: kind, Label: label, Text: text})
		s.Failed = s.Failed || kind == Problem
	}
}

// IsEmpty reports whether Steps has neither replies nor items.
func (t *Timeline) IsEmpty() bool { return t.ReplyCount() == 0 && len(t.Steps[0].Items) == 0 }

// ReplyCount returns the number of steps that are replies.
func (t *Timeline) ReplyCount() int { return len(t.Steps) - 1 }

// AllSteps returns Steps followed by End, if there is one.
func (t *Timeline) AllSteps() []*Step {
	if t.End == nil {
		return t.Steps
	}
	return append(slices.Clip(t.Steps), t.End)
}

// AllItems yields the items of a step, each followed by its results.
func (s *Step) AllItems() iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for _, item := range s.Items {
			if !yield(item) {
				return
			}
			for _, result := range item.Results {
				if !yield(result) {
					return
				}
			}
		}
	}
}

// Contains reports whether matches returns true for a text or a label of the step.
func (s *Step) Contains(matches func(string) bool) bool {
	for item := range s.AllItems() {
		if matches(item.Text) || item.Label != "" && matches(item.Label) {
			return true
		}
	}
	return false
}

// Patch returns the final patch and describes its source. If there is no patch, the
// description is the reason.
func (t *Timeline) Patch() (patch, description string) {
	o := t.Outcome
	switch {
	case o != nil && len(o.Submission) > 0 && o.Autosubmitted:
		return string(o.Submission), "the submission: the working tree diff, taken by mini at the end"
	case o != nil && len(o.Submission) > 0 && o.Source == trajectories.SourceWorktree:
		return string(o.Submission), "the submission: the working tree diff, since the agent submitted no patch that applies"
	case o != nil && len(o.Submission) > 0:
		return string(o.Submission), "the submission"
	case o != nil && len(o.PartialPatch) > 0:
		return string(o.PartialPatch), "the working tree diff of an attempt that does not count"
	case t.Diff != nil && len(t.Diff.Patch) > 0:
		return string(t.Diff.Patch), "the working tree diff; nothing was submitted"
	case o == nil:
		return "", "no patch yet: the attempt has not ended"
	}
	return "", "no patch: the attempt ended without one"
}
