// Package timeline groups the records of an attempt into steps for display. A step has
// reasoning, text, commands, results and events. The package does not render them.
//
// Records can be added one at a time, to follow a journal while it grows. The package
// does not change texts; the caller must sanitize them for a terminal.
package timeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Timeline is an attempt as a list of steps. The zero value is empty.
type Timeline struct {
	Header trajectories.Header
	// Steps is empty before the first record. Its first element has everything before
	// the first reply; each further element is a reply.
	Steps []*Step
	// End describes the diff, the outcome and an error of Build. It is nil if there is
	// none of them.
	End *Step
	// Usage and Cost are the totals of the attempt's own calls, without summaries and
	// subagents. They include calls whose replies were abandoned.
	Usage model.Usage
	Cost  model.Cost
	// Start and Last are the times of the first and the newest record.
	Start, Last time.Time
	Diff        *trajectories.Diff
	Outcome     *trajectories.Outcome

	call  *Call   // call without a reply so far
	tools []*Item // tool requests without an execution so far
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
	Call *Call

	record int // record ID of the reply
}

// Kind is the kind of an item.
type Kind int

// The kinds of items.
const (
	Message   Kind = iota // a message to the model, such as a prompt or a user message
	Reply                 // the text of a reply, without its command
	Reasoning             // the reasoning of a reply
	Command               // a command, or a tool call that was not parsed as a command
	Output                // output of a command, including escape sequences
	Note                  // information from mini
	Problem               // an error reported by mini
	Patch                 // a diff
)

// Item is an element of a step.
type Item struct {
	Kind  Kind
	Label string // title; may be empty
	Text  string
	// Execution is the result of a command; nil if there is none yet.
	Execution *trajectories.Execution
	// Results are items about a command: its result, output, exception, tool requests
	// and background processes, in this order.
	Results []*Item

	record     int // ID of the record that the item is about
	reportedBy int // record ID of the message that reports the execution to the model, or 0
}

// Call is the part of trajectories.Call that is shown.
type Call struct {
	Usage        model.Usage          `json:"usage"`
	Cost         model.Cost           `json:"cost"`
	Duration     trajectories.Seconds `json:"duration"`
	RequestCount int                  `json:"tries"`
	Error        string               `json:"error"`
}

// Names of steps that are not replies.
const (
	PromptsStep = "prompts"
	EndStep     = "end"
)

// Build returns the timeline of records. With an error, it also returns the timeline of
// the records before the error, with an item about the error in End.
func Build(records iter.Seq2[trajectories.Record, error]) (*Timeline, error) {
	t := &Timeline{}
	for r, err := range records {
		if err == nil {
			err = t.Add(r)
		}
		if err != nil {
			t.end().add(0, Problem, "", "the rest of the file is damaged: "+err.Error())
			return t, err
		}
	}
	return t, nil
}

// IsEmpty reports whether Steps has neither replies nor items.
func (t *Timeline) IsEmpty() bool {
	return len(t.Steps) == 0 || len(t.Steps) == 1 && len(t.Steps[0].Items) == 0
}

// ReplyCount returns the number of steps that are replies.
func (t *Timeline) ReplyCount() int { return max(0, len(t.Steps)-1) }

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

// Add adds the next record. If its data cannot be decoded, Add ignores the record and,
// unless describeEvent describes records of that type, returns an error.
func (t *Timeline) Add(r trajectories.Record) error {
	if len(t.Steps) == 0 {
		t.Steps, t.Start = []*Step{{Name: PromptsStep}}, r.Time
	}
	t.Last = r.Time
	var err error
	switch r.Type {
	case trajectories.TypeHeader:
		if err = json.Unmarshal(r.Data, &t.Header); err == nil && t.Header.Origin != nil {
			o := t.Header.Origin
			t.add(r, Note, "", fmt.Sprintf("forked from attempt %d of %s (run %s) after step %d",
				o.Attempt, o.InstanceID, o.Run, o.Step))
		}
	case trajectories.TypeMessage:
		// An observation repeats the output of the command, so most need not be decoded.
		if !bytes.HasSuffix(r.Data, observationEnd) || !t.markReported(r, trajectories.CauseObservation) {
			err = decode(r, t.addMessage)
		}
	case trajectories.TypeCall:
		err = decode(r, t.addCall)
	case trajectories.TypeExecution:
		err = decode(r, t.addExecution)
	case trajectories.TypeTool:
		err = decode(r, t.addTool)
	case trajectories.TypeResume:
		t.resume(r)
	case trajectories.TypeDiff:
		err = decode(r, t.addDiff)
	case trajectories.TypeOutcome:
		err = decode(r, t.addOutcome)
	default:
		kind, description := describeEvent(r)
		t.add(r, kind, "", description)
	}
	if err != nil {
		return fmt.Errorf("record %d: %w", r.ID, err)
	}
	return nil
}

// observationEnd is the end of the data of an observation without actions. No text ends so, because
// its quotes are escaped.
var observationEnd = []byte(`"cause":"observation"}`)

// decode decodes the data of a record and calls f.
func decode[T any](r trajectories.Record, f func(trajectories.Record, T)) error {
	var data T
	if err := json.Unmarshal(r.Data, &data); err != nil {
		return err
	}
	f(r, data)
	return nil
}

// lastStep returns the newest step, except End.
func (t *Timeline) lastStep() *Step { return t.Steps[len(t.Steps)-1] }

// add adds an item to the newest step, unless both label and text are empty.
func (t *Timeline) add(r trajectories.Record, kind Kind, label, text string) {
	t.lastStep().add(r.ID, kind, label, text)
}

// add adds an item to the step, unless both label and text are empty.
func (s *Step) add(record int, kind Kind, label, text string) {
	if text == "" && label == "" {
		return
	}
	s.Items = append(s.Items, &Item{Kind: kind, Label: label, Text: text, record: record})
	s.Failed = s.Failed || kind == Problem
}

func (t *Timeline) addCall(r trajectories.Record, c Call) {
	t.Usage, t.Cost = t.Usage.Add(c.Usage), t.Cost+c.Cost
	t.call = &c
	if c.Error != "" {
		t.call = nil
		t.add(r, Problem, "", "model call failed: "+c.Error)
	}
}

func (t *Timeline) addMessage(r trajectories.Record, m trajectories.Message) {
	if m.Cause == trajectories.CauseReply {
		t.addReply(r, m)
		return
	}
	if t.markReported(r, m.Cause) { // resultItems already shows the output
		return
	}
	kind, label, failed := describeMessage(m)
	t.add(r, kind, label, m.Content)
	t.lastStep().Failed = t.lastStep().Failed || failed
	if n := len(m.Images); n > 0 {
		t.add(r, Note, "", text.Count(n, "image")+" not shown")
	}
}

// markReported sets Item.reportedBy of the execution that a message with the given cause
// reports to the model. It returns false if the newest step has no such execution.
func (t *Timeline) markReported(r trajectories.Record, cause trajectories.Cause) bool {
	byUser := cause == trajectories.CauseUserCommand
	if !byUser && (cause != trajectories.CauseObservation || len(t.Steps) == 1) {
		return false
	}
	for _, item := range t.lastStep().Items {
		if item.Execution != nil && item.reportedBy == 0 && item.Execution.ByUser == byUser {
			item.reportedBy = r.ID
			return true
		}
	}
	return false
}

// describeMessage returns the kind and the label of a message. failed reports whether the
// message rejects a reply or a patch.
func describeMessage(m trajectories.Message) (kind Kind, label string, failed bool) {
	switch m.Cause {
	case trajectories.CausePrompt:
		return Message, string(m.Role) + " prompt", false
	case trajectories.CauseObservation:
		return Output, "observation", false
	case trajectories.CauseFormatError:
		return Message, "format error: the model is told the expected format", true
	case trajectories.CauseRejection:
		return Message, "rejected: the command was not run", true
	case trajectories.CauseMalformedPatch:
		return Message, "malformed patch: the submission does not apply", true
	case trajectories.CauseNotRun:
		return Message, "not run", false
	case trajectories.CauseInterruption:
		return Message, "user message after an interruption", false
	case trajectories.CauseSteer:
		return Message, "user message", false
	case trajectories.CauseFollowUp:
		return Message, "user message after the submission", false
	case trajectories.CauseUserCommand:
		return Output, userCommandLabel, false
	case "":
		return Message, string(m.Role), false
	}
	return Message, string(m.Role) + ", " + strings.ReplaceAll(string(m.Cause), "_", " "), false
}

// addReply adds a step with the commands of a reply, which have no results yet.
func (t *Timeline) addReply(r trajectories.Record, m trajectories.Message) {
	s := &Step{
		Number: len(t.Steps), Time: r.Time, Call: t.call, record: r.ID,
		Cost: t.Cost, Tokens: t.Usage.Prompt + t.Usage.Completion,
	}
	t.call = nil
	t.Steps = append(t.Steps, s)
	content := m.Content
	if len(m.Actions) == 1 {
		content = trimCommand(content, m.Actions[0])
	}
	s.add(r.ID, Reasoning, "", m.Reasoning)
	s.add(r.ID, Reply, "", content)
	for _, command := range m.Actions {
		s.add(r.ID, Command, "", command)
	}
	if len(m.Actions) == 0 {
		for _, c := range m.ToolCalls {
			s.add(r.ID, Command, "tool call "+c.Name, c.Arguments)
		}
	}
}

// trimCommand removes the code block with the command from a reply, since the command
// is an item of its own. It returns the reply unchanged if there is no such block.
func trimCommand(reply, command string) string {
	const fence = "```"
	start := strings.Index(reply, command)
	if start < 0 || command == "" {
		return reply
	}
	before, after := strings.TrimRight(reply[:start], "\n"), strings.TrimLeft(reply[start+len(command):], "\n")
	fenceLine := before[strings.LastIndexByte(before, '\n')+1:]
	if !strings.HasPrefix(fenceLine, fence) || !strings.HasPrefix(after, fence) {
		return reply
	}
	return strings.TrimSpace(strings.TrimSuffix(before, fenceLine) + strings.TrimPrefix(after, fence))
}

// userCommandLabel is the label of user commands.
const userCommandLabel = "command run by the user"

// addExecution adds an execution to the first command of the newest step that has none.
// A user command and the start-up command become new items.
func (t *Timeline) addExecution(r trajectories.Record, x trajectories.Execution) {
	s := t.lastStep()
	i := -1
	if !x.ByUser {
		i = slices.IndexFunc(s.Items, func(item *Item) bool { return item.Kind == Command && item.Execution == nil })
	}
	if i < 0 {
		i = len(s.Items)
		s.Items = append(s.Items, &Item{Kind: Command})
	}
	item := s.Items[i]
	item.Text, item.Label, item.Execution, item.record = x.Command, "", &x, r.ID
	switch {
	case x.ByUser:
		item.Label = userCommandLabel
	case s.Number == 0:
		item.Label = "start-up command"
	}
	item.Results = append(resultItems(&x), t.tools...)
	t.tools = nil
	if n := len(x.Background); n > 0 {
		item.Results = append(item.Results, &Item{Kind: Note, Text: fmt.Sprintf("%d processes were left running", n)})
	}
	s.Failed = s.Failed || x.ExitCode != 0 || x.TimedOut || x.Exception != ""
}

// resume removes abandoned items, except problems, and notes of the last step that
// remains. A command of that step loses an abandoned execution, since mini runs the
// command again.
func (t *Timeline) resume(r trajectories.Record) {
	t.call, t.End, t.Diff, t.Outcome = nil, nil, nil, nil
	t.flushTools(r)
	var problems []*Item
	for len(t.Steps) > 1 && t.lastStep().record > r.Parent {
		for _, item := range slices.Backward(t.lastStep().Items) {
			if item.Kind == Problem {
				problems = append(problems, item)
			}
		}
		t.Steps = t.Steps[:len(t.Steps)-1]
	}
	s := t.lastStep()
	s.Items = slices.DeleteFunc(s.Items, func(item *Item) bool {
		runsAgain := item.Execution != nil && !item.Execution.ByUser && s.Number > 0
		return item.record > r.Parent && item.Kind != Problem && item.Kind != Note && !runsAgain
	})
	for _, item := range s.Items {
		if item.Execution != nil && item.record > r.Parent {
			item.Execution, item.Results, item.record = nil, nil, s.record
		}
		if item.reportedBy > r.Parent {
			item.reportedBy = 0
		}
	}
	slices.Reverse(problems)
	s.Items = append(s.Items, problems...)
	t.add(r, Note, "", "the attempt was interrupted and resumed")
}

func (t *Timeline) addTool(_ trajectories.Record, c trajectories.ToolCall) {
	t.tools = append(t.tools, toolItems(&c)...)
}

// flushTools adds the requests of a command that did not finish to the newest step.
func (t *Timeline) flushTools(r trajectories.Record) {
	for _, item := range t.tools {
		item.record = r.ID
	}
	t.lastStep().Items = append(t.lastStep().Items, t.tools...)
	t.tools = nil
}

// end returns t.End and creates it if necessary.
func (t *Timeline) end() *Step {
	if t.End == nil {
		t.End = &Step{Name: EndStep}
	}
	return t.End
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
