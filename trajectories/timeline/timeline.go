// Package timeline groups the records of an attempt into steps for display:
// reasoning, text, commands, results and events. It does not render them.
//
// Records are added one at a time, so a growing journal can be followed. Texts are
// unchanged; the caller must sanitize them for a terminal.
package timeline

import (
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
	// Steps has everything before the first reply in its first element, then one
	// element per reply. It is empty before the first record.
	Steps []*Step
	// End has the diff and the outcome; nil before both.
	End *Step
	// Usage and Cost are the totals of all calls, including those with abandoned
	// replies.
	Usage model.Usage
	Cost  model.Cost
	// Start and Last are the times of the first and the newest record.
	Start, Last time.Time
	Diff        *trajectories.Diff
	Outcome     *trajectories.Outcome

	call  *call   // call without a reply so far
	tools []*Item // tool requests without an execution so far
}

// Step is a reply of the model with the results of its commands, or the items before
// the first reply or after the last.
type Step struct {
	Number int // from 1; 0 before the first reply and at the end
	Name   string
	// Cost and Tokens are the totals of all calls up to this step.
	Cost   model.Cost
	Tokens int64
	Time   time.Time
	// Failed is set if a command failed, or there was a format error or a rejection.
	Failed bool
	Items  []*Item

	call   *call
	record int
}

// Kind is the kind of an item.
type Kind int

// The kinds of items.
const (
	Message   Kind = iota // a message to the model: a prompt, a user message, an error
	Reply                 // the text of a reply, without its command
	Reasoning             // the reasoning of a reply
	Command
	Output  // command output, including escape sequences
	Note    // information from mini
	Problem // an error reported by mini
	Patch
)

// Item is an element of a step.
type Item struct {
	Kind  Kind
	Label string // title, empty if Kind is sufficient
	Text  string
	// Execution is the result of a command; nil if there is none yet.
	Execution *trajectories.Execution
	// Results are the items about a command, in order: its result, its output and its
	// tool requests.
	Results []*Item

	record     int // record ID of the message or the execution
	reportedBy int // record ID of the message that reports the execution to the model
}

// call is a model call without the provider's response.
type call struct {
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

// Read adds all records. On an error it returns the timeline of the records before
// it, with an item about the error.
func Read(records iter.Seq2[trajectories.Record, error]) (*Timeline, error) {
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

// IsEmpty reports whether the timeline has no steps with items.
func (t *Timeline) IsEmpty() bool {
	return len(t.Steps) == 0 || len(t.Steps) == 1 && len(t.Steps[0].Items) == 0
}

// ReplyCount returns the number of steps that are replies.
func (t *Timeline) ReplyCount() int { return max(0, len(t.Steps)-1) }

// AllSteps returns the steps, including End.
func (t *Timeline) AllSteps() []*Step {
	if t.End == nil {
		return t.Steps
	}
	return append(slices.Clip(t.Steps), t.End)
}

// AllItems yields the items of a step, each followed by its results.
func (s *Step) AllItems() iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for _, it := range s.Items {
			if !yield(it) {
				return
			}
			for _, part := range it.Results {
				if !yield(part) {
					return
				}
			}
		}
	}
}

// Contains reports whether a text or a label of the step matches.
func (s *Step) Contains(matches func(string) bool) bool {
	for it := range s.AllItems() {
		if matches(it.Text) || it.Label != "" && matches(it.Label) {
			return true
		}
	}
	return false
}

// Add adds the next record. If its data cannot be decoded, Add ignores the record and
// returns an error.
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
		err = decode(r, t.addMessage)
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

// decode decodes the data of a record and calls f.
func decode[T any](r trajectories.Record, f func(trajectories.Record, T)) error {
	var data T
	if err := json.Unmarshal(r.Data, &data); err != nil {
		return err
	}
	f(r, data)
	return nil
}

func (t *Timeline) last() *Step { return t.Steps[len(t.Steps)-1] }

// add adds an item to the newest step, unless it is empty.
func (t *Timeline) add(r trajectories.Record, kind Kind, label, text string) {
	t.last().add(r.ID, kind, label, text)
}

func (s *Step) add(record int, kind Kind, label, text string) {
	if text == "" && label == "" {
		return
	}
	s.Items = append(s.Items, &Item{Kind: kind, Label: label, Text: text, record: record})
	s.Failed = s.Failed || kind == Problem
}

func (t *Timeline) addCall(r trajectories.Record, c call) {
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
	if t.markReported(r, m.Cause) { // the execution shows it
		return
	}
	kind, label, failed := describe(m)
	t.add(r, kind, label, m.Content)
	t.last().Failed = t.last().Failed || failed
	if n := len(m.Images); n > 0 {
		t.add(r, Note, "", text.Count(n, "image")+" not shown")
	}
}

// markReported records which execution a message reports to the model. It returns
// false if the execution is not shown.
func (t *Timeline) markReported(r trajectories.Record, c trajectories.Cause) bool {
	byUser := c == trajectories.CauseUserCommand
	if !byUser && (c != trajectories.CauseObservation || len(t.Steps) == 1) {
		return false
	}
	for _, it := range t.last().Items {
		if it.Execution != nil && it.reportedBy == 0 && it.Execution.ByUser == byUser {
			it.reportedBy = r.ID
			return true
		}
	}
	return false
}

// describe returns the kind and the label of a message.
func describe(m trajectories.Message) (kind Kind, label string, failed bool) {
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
		Number: len(t.Steps), Time: r.Time, call: t.call, record: r.ID,
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
// is shown separately.
func trimCommand(reply, command string) string {
	const fence = "```"
	at := strings.Index(reply, command)
	if at < 0 || command == "" {
		return reply
	}
	before, after := strings.TrimRight(reply[:at], "\n"), strings.TrimLeft(reply[at+len(command):], "\n")
	line := before[strings.LastIndexByte(before, '\n')+1:]
	if !strings.HasPrefix(line, fence) || !strings.HasPrefix(after, fence) {
		return reply
	}
	return strings.TrimSpace(strings.TrimSuffix(before, line) + strings.TrimPrefix(after, fence))
}

// userCommandLabel is the label of user commands.
const userCommandLabel = "command run by the user"

// addExecution adds the result to the first command of the step that has none.
func (t *Timeline) addExecution(r trajectories.Record, x trajectories.Execution) {
	s := t.last()
	i := -1
	if !x.ByUser {
		i = slices.IndexFunc(s.Items, func(it *Item) bool { return it.Kind == Command && it.Execution == nil })
	}
	if i < 0 {
		i = len(s.Items)
		s.Items = append(s.Items, &Item{Kind: Command})
	}
	it := s.Items[i]
	it.Text, it.Label, it.Execution, it.record = x.Command, "", &x, r.ID
	switch {
	case x.ByUser:
		it.Label = userCommandLabel
	case s.Number == 0:
		it.Label = "start-up command"
	}
	it.Results = append(resultItems(&x), t.tools...)
	t.tools = nil
	if n := len(x.Background); n > 0 {
		it.Results = append(it.Results, &Item{Kind: Note, Text: fmt.Sprintf("%d processes were left running", n)})
	}
	s.Failed = s.Failed || x.ExitCode != 0 || x.TimedOut || x.Exception != ""
}

// resume removes the abandoned part of the conversation, except for problems.
func (t *Timeline) resume(r trajectories.Record) {
	t.call, t.End, t.Diff, t.Outcome = nil, nil, nil, nil
	t.flushTools(r)
	var problems []*Item
	for len(t.Steps) > 1 && t.last().record > r.Parent {
		for _, it := range slices.Backward(t.last().Items) {
			if it.Kind == Problem {
				problems = append(problems, it)
			}
		}
		t.Steps = t.Steps[:len(t.Steps)-1]
	}
	s := t.last()
	s.Items = slices.DeleteFunc(s.Items, func(it *Item) bool {
		rerun := it.Execution != nil && !it.Execution.ByUser && s.Number > 0
		return it.record > r.Parent && it.Kind != Problem && it.Kind != Note && !rerun
	})
	for _, it := range s.Items {
		if it.Execution != nil && it.record > r.Parent {
			it.Execution, it.Results, it.record = nil, nil, s.record
		}
		if it.reportedBy > r.Parent {
			it.reportedBy = 0
		}
	}
	slices.Reverse(problems)
	s.Items = append(s.Items, problems...)
	t.add(r, Note, "", "the attempt was interrupted and resumed")
}

func (t *Timeline) addTool(_ trajectories.Record, c trajectories.ToolCall) {
	t.tools = append(t.tools, toolItems(&c)...)
}

// flushTools adds tool requests whose command did not finish.
func (t *Timeline) flushTools(r trajectories.Record) {
	for _, it := range t.tools {
		it.record = r.ID
	}
	t.last().Items = append(t.last().Items, t.tools...)
	t.tools = nil
}

// end returns the step after the last reply.
func (t *Timeline) end() *Step {
	if t.End == nil {
		t.End = &Step{Name: EndStep}
	}
	return t.End
}

// Patch returns the final patch and a description of it, or the reason why there is
// none.
func (t *Timeline) Patch() (patch, from string) {
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
