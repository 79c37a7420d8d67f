package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/trajectories"
)

// conversationParts returns the calls, messages and executions. It leaves out a message that
// reports an execution, because the execution has the output.
func conversationParts(a *trajectories.Attempt) []*Step {
	var parts []*Step
	for i := range a.FailedCalls {
		parts = append(parts, newFailedCall(a.FailedCalls[i].Record, &a.FailedCalls[i]))
	}
	for i := range a.SetupExecutions {
		parts = append(parts, newExecution(&a.SetupExecutions[i], "start-up command"))
	}
	reported := make([]bool, len(a.Entries))
	for i := range a.Entries {
		e := &a.Entries[i]
		if e.Call != nil && e.Call.Error != "" { // the reply has a malformed tool call
			parts = append(parts, newFailedCall(e.Record, e.Call))
		}
		s := newMessage(e)
		commands := slices.DeleteFunc(slices.Clone(s.Items), func(item *Item) bool { return item.Kind != Command })
		for j := range e.Executions {
			x := &e.Executions[j]
			if x.ObservationEntry >= 0 {
				reported[x.ObservationEntry] = true
			}
			if x.ByUser || len(commands) == 0 {
				parts = append(parts, newExecution(x, ""))
			} else {
				s.setExecution(commands[0], x, "")
				commands = commands[1:]
			}
		}
		if !reported[i] || e.Cause == trajectories.CauseMalformedPatch {
			parts = append(parts, s)
		}
	}
	return parts
}

// newFailedCall returns the part about a call that is not that of a step. It may have no
// error, if the attempt ended before the reply was recorded.
func newFailedCall(record int, c *trajectories.Call) *Step {
	p := &Step{record: record, Call: c}
	if c.Error != "" {
		p.add(Problem, "", "model call failed: "+c.Error)
	}
	return p
}

// newMessage returns a reply with its commands, which have no results yet, or the part
// about another message.
func newMessage(e *trajectories.Entry) *Step {
	s := &Step{record: e.Record}
	if e.Cause != trajectories.CauseReply {
		s.addMessage(&e.Message)
		return s
	}
	s.isReply, s.Time = true, e.Time
	if e.Call != nil && e.Call.Error == "" {
		s.Call = e.Call
	}
	content := e.Content
	if len(e.Actions) == 1 {
		content = trimCommand(content, e.Actions[0])
	}
	s.add(Reasoning, "", e.Reasoning)
	s.add(Reply, "", content)
	for _, command := range e.Actions {
		s.add(Command, "", command)
	}
	if len(e.Actions) == 0 {
		for _, c := range e.ToolCalls {
			s.add(Command, "tool call "+c.Name, c.Arguments)
		}
	}
	return s
}

// addMessage adds a message that is not a reply.
func (s *Step) addMessage(m *trajectories.Message) {
	kind, label := Message, cmp.Or(messageLabels[m.Cause], string(m.Role)+", "+strings.ReplaceAll(string(m.Cause), "_", " "))
	switch m.Cause {
	case "":
		label = string(m.Role)
	case trajectories.CausePrompt:
		label = string(m.Role) + " prompt"
	case trajectories.CauseObservation, trajectories.CauseUserCommand:
		kind = Output
	case trajectories.CauseFormatError, trajectories.CauseRejection, trajectories.CauseMalformedPatch:
		s.Failed = true
	}
	s.add(kind, label, m.Content)
	if n := len(m.Images); n > 0 {
		s.add(Note, "", text.Count(n, "image")+" not shown")
	}
}

var messageLabels = map[trajectories.Cause]string{
	trajectories.CauseObservation:    "observation",
	trajectories.CauseFormatError:    "format error: the model is told the expected format",
	trajectories.CauseRejection:      "rejected: the command was not run",
	trajectories.CauseMalformedPatch: "malformed patch: the submission does not apply",
	trajectories.CauseNotRun:         "not run",
	trajectories.CauseInterruption:   "user message after an interruption",
	trajectories.CauseSteer:          "user message",
	trajectories.CauseFollowUp:       "user message after the submission",
	trajectories.CauseUserCommand:    "command run by the user",
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

// newExecution returns the part about an execution that no command of a reply caused.
func newExecution(x *trajectories.Execution, label string) *Step {
	s := &Step{record: x.Record, Items: []*Item{{Kind: Command}}}
	if x.ByUser {
		label = messageLabels[trajectories.CauseUserCommand]
	}
	s.setExecution(s.Items[0], x, label)
	return s
}

// setExecution sets the result of a command.
func (s *Step) setExecution(command *Item, x *trajectories.Execution, label string) {
	withoutOutput := *x
	withoutOutput.Output = nil
	command.Text, command.Label, command.Execution = x.Command, label, &withoutOutput
	command.Results = resultItems(x)
	for i := range x.ToolCalls {
		command.Results = append(command.Results, toolItems(&x.ToolCalls[i])...)
	}
	if n := len(x.Background); n > 0 {
		command.Results = append(command.Results, &Item{Kind: Note, Text: fmt.Sprintf("%d processes were left running", n)})
	}
	s.Failed = s.Failed || x.HasFailed()
}

// resultItems returns the items about the result and the output of a command.
func resultItems(x *trajectories.Execution) []*Item {
	kind := Note
	if x.HasFailed() {
		kind = Problem
	}
	items := []*Item{{Kind: kind, Text: ResultLine(x)}}
	output := string(x.Output)
	if x.Truncated && 0 < x.Head && x.Head < len(output) {
		items = append(items, &Item{Kind: Output, Text: output[:x.Head]},
			&Item{Kind: Note, Text: fmt.Sprintf("... %s bytes left out ...", unit.Count(x.Bytes-int64(len(output))))})
		output = output[x.Head:]
	}
	if output != "" {
		items = append(items, &Item{Kind: Output, Text: output})
	}
	if x.Exception != "" {
		items = append(items, &Item{Kind: Problem, Label: "exception", Text: x.Exception})
	}
	return items
}

// maxRequestLabel bounds the command line in the label of a tool request, in characters.
const maxRequestLabel = 300

// toolItems returns the items about a tool request.
func toolItems(c *trajectories.ToolCall) []*Item {
	commandLine := text.ClipRunes(strings.Join(append([]string{"mini-tool", c.Name}, c.Args...), " "), maxRequestLabel)
	kind := Note
	if c.ExitCode != 0 {
		kind = Problem
	}
	result := fmt.Sprintf("exit %d, %s, %s bytes", c.ExitCode, unit.Duration(time.Duration(c.Duration)), unit.Count(int64(len(c.Output))))
	items := []*Item{{Kind: kind, Label: "request: " + commandLine, Text: result}}
	if len(c.Errors) > 0 {
		items = append(items, &Item{Kind: Output, Text: string(c.Errors)})
	}
	children := c.Children()
	for _, child := range children {
		items = append(items, childItem(child))
	}
	if len(c.Details) > 0 && len(children) == 0 {
		items = append(items, &Item{Kind: Note, Text: string(c.Details)})
	}
	return items
}

// childItem returns an item about a child. The steps of the child are in its own
// journal.
func childItem(c trajectories.ChildResult) *Item {
	item := &Item{Kind: Note, Text: c.Task}
	if c.Problem != "" {
		item.Kind, item.Text = Problem, item.Text+"\n"+c.Problem
	}
	cost := "-"
	if c.Cost > 0 {
		cost = unit.Money(float64(c.Cost))
	}
	item.Label = fmt.Sprintf("child %d: %s, %s, %s", c.Child, c.ExitStatus, text.Count(c.Steps, "step"), cost)
	if c.Journal != "" {
		item.Label += ", " + c.Journal
	}
	return item
}
