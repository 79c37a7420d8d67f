// Package timeline turns the records of an attempt into steps that can be shown:
// what the model thought and said, the commands it ran, what came of them, and
// what happened around them. It knows no terminal.
//
// Records are added one at a time, so that a journal can be followed while it
// grows. Texts are as the records have them: they must be sanitized where they
// are shown.
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

// Timeline is an attempt as steps. The zero value is empty.
type Timeline struct {
	Header trajectories.Header
	// Steps has what came before the first reply in its first element, and one
	// element for each reply after it. It is empty before the first record.
	Steps []*Step
	// End has the diff and the outcome; nil while neither is on record.
	End *Step
	// Usage and Cost are of all calls, also of those whose replies an interrupted
	// attempt has left behind.
	Usage model.Usage
	Cost  model.Cost
	// Start and Last are the times of the first and of the newest record.
	Start, Last time.Time
	Diff        *trajectories.Diff
	Outcome     *trajectories.Outcome

	call  *call   // whose reply has not come
	tools []*Item // asked for by a command whose execution has not come
}

// Step is a reply of the model and what came of it, or what stands before the
// first reply or after the last.
type Step struct {
	Number int // from 1 on; 0 before the first reply, and at the end
	Name   string
	// Cost and Tokens are of all calls up to this step.
	Cost   model.Cost
	Tokens int64
	Time   time.Time
	// Failed says that something went wrong: a command, a format error, a rejection.
	Failed bool
	Items  []*Item

	call   *call
	record int
}

// Kind says what an item is.
type Kind int

// The kinds of items.
const (
	Message   Kind = iota // to the model: a prompt, a person's words, an error
	Reply                 // of the model, without its command
	Reasoning             // of the model
	Command
	Output // of a command, with its escape sequences
	Note   // what mini has to say
	Alarm  // what mini has to say of something that went wrong
	Patch
)

// Item is one thing that is shown of a step.
type Item struct {
	Kind  Kind
	Label string // what it is, where the kind does not say it
	Text  string
	// Run is what a command did; nil while that is not on record.
	Run *trajectories.Execution
	// Parts are what came of a command, in order: its result, its output, and what
	// it asked for by mini-tool.
	Parts []*Item

	record int // of the message, or of the execution
	told   int // the record that tells the model of an execution
}

// call is what is shown of a call; raw answers of providers are not read.
type call struct {
	Usage    model.Usage          `json:"usage"`
	Cost     model.Cost           `json:"cost"`
	Duration trajectories.Seconds `json:"duration"`
	Tries    int                  `json:"tries"`
	Error    string               `json:"error"`
}

// Names of steps that are no replies.
const (
	Prompts = "prompts"
	TheEnd  = "end"
)

// Read adds all records. The first error ends it, with what was read so far; the
// end says then that there was more.
func Read(records iter.Seq2[trajectories.Record, error]) (*Timeline, error) {
	t := &Timeline{}
	for r, err := range records {
		if err == nil {
			err = t.Add(r)
		}
		if err != nil {
			t.end().add(0, Alarm, "", "the file is damaged, and this is all that can be read: "+err.Error())
			return t, err
		}
	}
	return t, nil
}

// IsEmpty says that there is nothing of a conversation.
func (t *Timeline) IsEmpty() bool {
	return len(t.Steps) == 0 || len(t.Steps) == 1 && len(t.Steps[0].Items) == 0
}

// Replies is the number of steps that are replies.
func (t *Timeline) Replies() int { return max(0, len(t.Steps)-1) }

// All are the steps, and the end where there is one.
func (t *Timeline) All() []*Step {
	if t.End == nil {
		return t.Steps
	}
	return append(slices.Clip(t.Steps), t.End)
}

// All are the items of a step, each with its parts after it.
func (s *Step) All() iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for _, it := range s.Items {
			if !yield(it) {
				return
			}
			for _, part := range it.Parts {
				if !yield(part) {
					return
				}
			}
		}
	}
}

// Contains says whether a text or label of the step matches.
func (s *Step) Contains(matches func(string) bool) bool {
	for it := range s.All() {
		if matches(it.Text) || it.Label != "" && matches(it.Label) {
			return true
		}
	}
	return false
}

// Add takes in the next record. The error says that its data cannot be read; the
// record is left out then.
func (t *Timeline) Add(r trajectories.Record) error {
	if len(t.Steps) == 0 {
		t.Steps, t.Start = []*Step{{Name: Prompts}}, r.Time
	}
	t.Last = r.Time
	var err error
	switch r.Type {
	case trajectories.TypeHeader:
		if err = json.Unmarshal(r.Data, &t.Header); err == nil && t.Header.Origin != nil {
			o := t.Header.Origin
			t.add(r, Note, "", fmt.Sprintf("branches off attempt %d of %s (run %s) after step %d",
				o.Attempt, o.InstanceID, o.Run, o.Step))
		}
	case trajectories.TypeMessage:
		err = with(r, t.message)
	case trajectories.TypeCall:
		err = with(r, t.called)
	case trajectories.TypeExecution:
		err = with(r, t.execution)
	case trajectories.TypeTool:
		err = with(r, t.tool)
	case trajectories.TypeResume:
		t.resume(r)
	case trajectories.TypeDiff:
		err = with(r, t.diff)
	case trajectories.TypeOutcome:
		err = with(r, t.outcome)
	default:
		kind, text := around(r)
		t.add(r, kind, "", text)
	}
	if err != nil {
		return fmt.Errorf("record %d: %w", r.ID, err)
	}
	return nil
}

// with decodes the data of a record for f.
func with[T any](r trajectories.Record, f func(trajectories.Record, T)) error {
	var data T
	if err := json.Unmarshal(r.Data, &data); err != nil {
		return err
	}
	f(r, data)
	return nil
}

func (t *Timeline) last() *Step { return t.Steps[len(t.Steps)-1] }

// add puts an item at the end of the newest step; an empty one is left out.
func (t *Timeline) add(r trajectories.Record, kind Kind, label, text string) {
	t.last().add(r.ID, kind, label, text)
}

func (s *Step) add(record int, kind Kind, label, text string) {
	if text == "" && label == "" {
		return
	}
	s.Items = append(s.Items, &Item{Kind: kind, Label: label, Text: text, record: record})
	s.Failed = s.Failed || kind == Alarm
}

func (t *Timeline) called(r trajectories.Record, c call) {
	t.Usage, t.Cost = t.Usage.Add(c.Usage), t.Cost+c.Cost
	t.call = &c
	if c.Error != "" {
		t.call = nil
		t.add(r, Alarm, "", "a call of the model failed: "+c.Error)
	}
}

func (t *Timeline) message(r trajectories.Record, m trajectories.Message) {
	if m.Cause == trajectories.CauseReply {
		t.reply(r, m)
		return
	}
	if t.tells(r, m.Cause) { // the execution is shown
		return
	}
	kind, label, failed := labelOf(m)
	t.add(r, kind, label, m.Content)
	t.last().Failed = t.last().Failed || failed
	if n := len(m.Images); n > 0 {
		t.add(r, Note, "", text.Count(n, "image")+" not shown")
	}
}

// tells notes which execution a message tells the model of; false where it tells
// of none that is shown.
func (t *Timeline) tells(r trajectories.Record, c trajectories.Cause) bool {
	person := c == trajectories.CauseCommand
	if !person && (c != trajectories.CauseObservation || len(t.Steps) == 1) {
		return false
	}
	for _, it := range t.last().Items {
		if it.Run != nil && it.told == 0 && it.Run.Person == person {
			it.told = r.ID
			return true
		}
	}
	return false
}

// labelOf says what a message is.
func labelOf(m trajectories.Message) (kind Kind, label string, failed bool) {
	switch m.Cause {
	case trajectories.CausePrompt:
		return Message, string(m.Role) + " prompt", false
	case trajectories.CauseObservation:
		return Output, "observation", false
	case trajectories.CauseFormatError:
		return Message, "format error: the model is told how to write commands", true
	case trajectories.CauseRejection:
		return Message, "rejected: the command was not let run", true
	case trajectories.CauseMalformedPatch:
		return Message, "malformed patch: what was handed in does not apply", true
	case trajectories.CauseNotRun:
		return Message, "not run", false
	case trajectories.CauseInterruption:
		return Message, "interrupted, and told by the user", false
	case trajectories.CauseSteer:
		return Message, "told by the user, who steers", false
	case trajectories.CauseFollowUp:
		return Message, "told by the user at the end, to go on", false
	case trajectories.CauseCommand:
		return Output, personal, false
	case "":
		return Message, string(m.Role), false
	}
	return Message, string(m.Role) + ", " + strings.ReplaceAll(string(m.Cause), "_", " "), false
}

// reply begins a step. Its commands stand in it at once, without results.
func (t *Timeline) reply(r trajectories.Record, m trajectories.Message) {
	s := &Step{
		Number: len(t.Steps), Time: r.Time, call: t.call, record: r.ID,
		Cost: t.Cost, Tokens: t.Usage.Prompt + t.Usage.Completion,
	}
	t.call = nil
	t.Steps = append(t.Steps, s)
	said := m.Content
	if len(m.Actions) == 1 {
		said = withoutBlock(said, m.Actions[0])
	}
	s.add(r.ID, Reasoning, "", m.Reasoning)
	s.add(r.ID, Reply, "", said)
	for _, command := range m.Actions {
		s.add(r.ID, Command, "", command)
	}
	if len(m.Actions) == 0 {
		for _, c := range m.Calls {
			s.add(r.ID, Command, "tool call "+c.Name, c.Arguments)
		}
	}
}

// withoutBlock is a reply without the block that holds its command, which is shown
// by itself.
func withoutBlock(reply, command string) string {
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

// personal labels commands of people.
const personal = "command that the user ran"

// execution completes the first command of the step that has no result.
func (t *Timeline) execution(r trajectories.Record, x trajectories.Execution) {
	s := t.last()
	i := -1
	if !x.Person {
		i = slices.IndexFunc(s.Items, func(it *Item) bool { return it.Kind == Command && it.Run == nil })
	}
	if i < 0 {
		i = len(s.Items)
		s.Items = append(s.Items, &Item{Kind: Command})
	}
	it := s.Items[i]
	it.Text, it.Label, it.Run, it.record = x.Command, "", &x, r.ID
	switch {
	case x.Person:
		it.Label = personal
	case s.Number == 0:
		it.Label = "start-up command"
	}
	it.Parts = append(resultItems(&x), t.tools...)
	t.tools = nil
	if n := len(x.Background); n > 0 {
		it.Parts = append(it.Parts, &Item{Kind: Note, Text: fmt.Sprintf("%d processes were left running", n)})
	}
	s.Failed = s.Failed || x.ExitCode != 0 || x.TimedOut || x.Exception != ""
}

// resume forgets the part of the conversation that an interrupted attempt has left
// behind. What went wrong there stays.
func (t *Timeline) resume(r trajectories.Record) {
	t.call, t.End, t.Diff, t.Outcome = nil, nil, nil, nil
	t.flush(r)
	var alarms []*Item
	for len(t.Steps) > 1 && t.last().record > r.Parent {
		for _, it := range slices.Backward(t.last().Items) {
			if it.Kind == Alarm {
				alarms = append(alarms, it)
			}
		}
		t.Steps = t.Steps[:len(t.Steps)-1]
	}
	s := t.last()
	s.Items = slices.DeleteFunc(s.Items, func(it *Item) bool {
		runsAgain := it.Run != nil && !it.Run.Person && s.Number > 0
		return it.record > r.Parent && it.Kind != Alarm && it.Kind != Note && !runsAgain
	})
	for _, it := range s.Items {
		if it.Run != nil && it.record > r.Parent {
			it.Run, it.Parts, it.record = nil, nil, s.record
		}
		if it.told > r.Parent {
			it.told = 0
		}
	}
	slices.Reverse(alarms)
	s.Items = append(s.Items, alarms...)
	t.add(r, Note, "", "the attempt was interrupted, and went on")
}

func (t *Timeline) tool(_ trajectories.Record, c trajectories.ToolCall) {
	t.tools = append(t.tools, toolItems(&c)...)
}

// flush shows what a command asked for that never came to its end.
func (t *Timeline) flush(r trajectories.Record) {
	for _, it := range t.tools {
		it.record = r.ID
	}
	t.last().Items = append(t.last().Items, t.tools...)
	t.tools = nil
}

// end is the step after the last reply.
func (t *Timeline) end() *Step {
	if t.End == nil {
		t.End = &Step{Name: TheEnd}
	}
	return t.End
}

// Patch is what the attempt ended with, and what that is; without one, from says
// why there is none.
func (t *Timeline) Patch() (patch, from string) {
	o := t.Outcome
	switch {
	case o != nil && len(o.Submission) > 0 && o.Autosubmitted:
		return string(o.Submission), "the submission: the working diff, which mini took at the end"
	case o != nil && len(o.Submission) > 0 && o.Source == trajectories.SourceWorktree:
		return string(o.Submission), "the submission: the working diff, since the agent handed in nothing that applies"
	case o != nil && len(o.Submission) > 0:
		return string(o.Submission), "the submission"
	case o != nil && len(o.PartialPatch) > 0:
		return string(o.PartialPatch), "the working diff of an attempt that does not count"
	case t.Diff != nil && len(t.Diff.Patch) > 0:
		return string(t.Diff.Patch), "the working diff; nothing was submitted"
	case o == nil:
		return "", "no patch yet: the attempt has not ended"
	}
	return "", "no patch: the attempt ended without one"
}
