package formats

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// conversation converts messages to records. It finds out which messages are prompts
// and replies, and which command each observation belongs to.
type conversation struct {
	b                 *builder
	release1          bool   // of mini-swe-agent
	formatErrorPrefix string // beginning of messages about a wrong format
	textCommands      bool   // replies may contain commands in their text

	exit struct{ Status, Submission string }

	lastTime     time.Time // time of the newest message that has one
	hasReply     bool      // there was a reply
	unanswered   bool      // the newest reply has no answers except rejected calls
	pending      []action  // actions of the newest reply without a result so far
	singleAction bool      // there is one action, so times give its duration
	dropped      []int     // record IDs of replies that later calls did not send

	missingReplies int // rejected replies that are not in the file
}

type action struct {
	command, callID string
}

// maxDropped bounds the dropped replies for which each call gets a context record,
// since these take quadratic space.
const maxDropped = 256

func (c *conversation) read(turns []turn) error {
	for i := range turns {
		t := &turns[i]
		c.b.addUnreadLosses(t.Raw, t.Role == model.Assistant)
		switch {
		case t.extra.Cause.set && t.Interrupt == "" && !t.extra.hasResult():
			c.b.message(c.message(t), standaloneCause(t.extra.Cause.value), t.Time)
			c.unanswered = false
		case t.Role == model.Assistant:
			c.addReply(t)
		case t.Role == "exit":
			c.end(t)
		case t.Interrupt != "":
			c.interrupt(t)
		default:
			c.userOrTool(t)
		}
		if !t.Time.IsZero() {
			c.lastTime = t.Time
		}
	}
	return c.b.err
}

// standaloneCause returns the causes of messages that belong to no reply.
func standaloneCause(text string) trajectories.Cause {
	switch cause := trajectories.Cause(text); cause {
	case trajectories.CausePrompt, trajectories.CauseObservation, trajectories.CauseMalformedPatch:
		return cause
	}
	return ""
}

func (c *conversation) message(t *turn) model.Message {
	return model.Message{
		Role: t.Role, Content: t.Content, Images: c.b.images(t.content), Reasoning: t.Reasoning,
		ToolCalls: t.Calls, ToolCallID: t.CallID, ProviderData: t.kept,
	}
}

func (c *conversation) addReply(t *turn) {
	commands := t.Commands
	if !c.textCommands && len(t.Calls) == 0 && t.extra.Actions == nil {
		commands = nil
	}
	raw := t.extra.Response
	if t.response { // the message is the response
		raw = without(t.Raw, "extra")
	}
	m := c.message(t)
	call := c.call(raw, t, t.Time)
	c.addContext(call)
	c.b.reply(m, commands, call, t.Time)
	c.hasReply, c.unanswered = true, true
	c.pending = c.pending[:0]
	for i, id := range trajectories.ActionCallIDs(trajectories.Message{Message: m, Actions: commands}) {
		c.pending = append(c.pending, action{commands[i], id})
	}
	c.singleAction = len(commands) == 1
}

// call returns what the file says about a model call; nil if nothing.
func (c *conversation) call(raw json.RawMessage, t *turn, at time.Time) *trajectories.Call {
	if len(raw) == 0 && !t.extra.Cost.set && t.extra.Model.value == "" {
		return nil
	}
	a, usage := readResponse(raw)
	call := &trajectories.Call{Usage: usage, Model: cmp.Or(t.extra.Model.value, a.Model), Raw: raw}
	if len(a.Choices) > 0 {
		call.Finish = a.Choices[0].Finish
	}
	if t.extra.Cost.set {
		call.Cost = model.Cost(t.extra.Cost.value)
	} else {
		call.Usage.Unpriced = 1
	}
	if !c.lastTime.IsZero() && at.After(c.lastTime) {
		call.Start, call.Duration = c.lastTime, trajectories.Seconds(at.Sub(c.lastTime))
	}
	return call
}

// addContext adds a context record for a call, if replies were dropped before it.
func (c *conversation) addContext(call *trajectories.Call) {
	if call == nil || len(c.dropped) == 0 || len(c.dropped) > maxDropped {
		return
	}
	var sent []trajectories.ContextPart
	from := firstRecords + 1
	for _, id := range c.dropped {
		if id > from {
			sent = append(sent, trajectories.ContextPart{From: from, To: id - 1})
		}
		from = id + 1
	}
	if last := firstRecords + len(c.b.body); last >= from {
		sent = append(sent, trajectories.ContextPart{From: from, To: last})
	}
	c.b.add(trajectories.TypeContext, time.Time{}, trajectories.Context{Sent: sent})
}

// interrupt adds a message of the agent that is not a command's output.
func (c *conversation) interrupt(t *turn) {
	cause := trajectories.Cause("")
	switch t.Interrupt {
	case "FormatError":
		c.restoreReply(t)
		cause = trajectories.CauseFormatError
	case "UserRejection":
		cause = trajectories.CauseRejection
	case "NotRun":
		cause = trajectories.CauseNotRun
	case "UserInterruption":
		cause = trajectories.CauseInterruption
	case "UserNewTask":
		cause = trajectories.CauseFollowUp
	}
	if len(c.pending) > 0 && t.Role == model.Tool {
		c.take(t.CallID) // it did not run
	}
	c.b.message(c.message(t), cause, t.Time)
	c.unanswered = c.unanswered && t.Role == model.Tool
}

// restoreReply adds a rejected reply that is not among the messages, if the message
// about the rejection quotes it.
func (c *conversation) restoreReply(t *turn) {
	if c.unanswered || t.Role == model.Tool { // the reply is among the messages
		return
	}
	var m model.Message
	a, _ := readResponse(t.extra.Response)
	switch {
	case len(t.extra.Response) > 0 && messageOf(t.extra.Response, a, &m):
	case len(t.extra.ModelResponse) > 0:
		m = model.Message{Content: asString(t.extra.ModelResponse)}
	default:
		c.b.addLoss("a reply with a format error is not in the file", 1)
		c.missingReplies++
		return
	}
	m.Role = model.Assistant
	call := c.call(t.extra.Response, t, time.Time{})
	c.addContext(call)
	id := c.b.reply(m, nil, call, time.Time{})
	c.hasReply, c.unanswered, c.pending = true, true, c.pending[:0]
	if c.dropped = append(c.dropped, id); len(c.dropped) > maxDropped {
		c.b.addLoss("later calls do not record that a reply with a format error was not sent", 1)
	}
}

// messageOf decodes the reply in a provider's response.
func messageOf(raw json.RawMessage, a response, m *model.Message) bool {
	message := raw
	if len(a.Choices) > 0 {
		message = a.Choices[0].Message
	}
	list, err := json.Marshal([]json.RawMessage{message})
	if err != nil {
		return false
	}
	t, err := parse(list)
	if err != nil || len(t.turns) != 1 || t.turns[0].Role != model.Assistant {
		return false
	}
	m.Content, m.Reasoning, m.ToolCalls = t.turns[0].Content, t.turns[0].Reasoning, t.turns[0].Calls
	return true
}

// take removes the pending action that a message answers: the one with its call ID,
// else the first.
func (c *conversation) take(callID string) (action, bool) {
	for i, a := range c.pending {
		if callID == "" || a.callID == callID || a.callID == "" {
			c.pending = append(c.pending[:i], c.pending[i+1:]...)
			return a, true
		}
	}
	return action{}, false
}

// userOrTool adds a user or tool message.
func (c *conversation) userOrTool(t *turn) {
	m := c.message(t)
	switch {
	case t.Role != model.User && t.Role != model.Tool:
		c.b.message(m, trajectories.CausePrompt, t.Time)
		return
	case !c.hasReply:
		c.b.message(m, trajectories.CausePrompt, t.Time)
		return
	case c.isFormatError(t):
		c.b.message(m, trajectories.CauseFormatError, t.Time)
		c.unanswered, c.pending = false, c.pending[:0]
		return
	}
	for _, a := range t.extra.Actions { // the user ran commands
		c.b.addLoss("a command run by the user", 1)
		if a.Command != nil {
			c.pending = append(c.pending, action{command: *a.Command})
		}
	}
	if len(t.extra.Actions) > 0 {
		c.b.message(m, "", t.Time)
		return
	}
	c.observe(t, m)
}

// observe adds the answer to a command or to another tool call.
func (c *conversation) observe(t *turn, m model.Message) {
	a, ok := action{}, false
	if t.Role == model.Tool || t.Result != nil || c.unanswered {
		a, ok = c.take(t.CallID)
	}
	c.unanswered = false
	switch {
	case !ok && t.Role == model.User && t.Result == nil: // a plain user message
		c.b.message(m, "", t.Time)
		return
	case !ok && t.Role == model.Tool && !t.extra.hasResult(): // not a shell command
		c.b.message(m, trajectories.CauseObservation, t.Time)
		return
	case t.Result != nil && t.Result.ExitCode == -1 && t.Result.Exception == notExecuted:
		c.b.message(m, trajectories.CauseNotRun, t.Time)
		return
	}
	if !ok {
		c.b.addLoss("the command of an output is not in the file, or its format is unknown", 1)
	}
	x := c.execution(a, t)
	x.TimedOut = x.TimedOut || t.extra.TimedOut.value || t.extra.ExceptionType.value == "TimeoutExpired"
	if !c.lastTime.IsZero() && t.Time.After(c.lastTime) && c.singleAction {
		x.Start, x.Duration = c.lastTime, trajectories.Seconds(t.Time.Sub(c.lastTime))
	}
	c.b.execution(x, t.Time)
	c.b.message(m, trajectories.CauseObservation, t.Time)
}

// notExecuted is the exception that mini-swe-agent records for calls after the last
// one that ran.
const notExecuted = "action was not executed"

// execution returns what the file says about a command.
func (c *conversation) execution(a action, t *turn) trajectories.Execution {
	x := trajectories.Execution{Command: a.command, ExitCodeUnknown: true}
	r := t.Result
	switch {
	case r == nil && c.release1 && strings.Contains(t.Content, "timed out and has been killed"):
		x.TimedOut = true
		x.Output = trajectories.Bytes(textBetween(t.Content, "<output>\n", "\n</output>"))
		return x
	case r == nil:
		x.Output = trajectories.Bytes(t.Content)
		c.b.addLoss("only the output shown to the model is in the file", 1)
		return x
	}
	x.Output, x.Exception = trajectories.Bytes(r.Output), r.Exception
	if r.HasExitCode {
		x.ExitCode, x.ExitCodeUnknown = r.ExitCode, false
	}
	if !r.Complete {
		_, shown, _ := strings.Cut(t.Content, "</returncode>\n")
		x.Output = trajectories.Bytes(shown)
		c.b.addLoss("an output was truncated in the file", 1)
	}
	return x
}

func textBetween(text, from, to string) string {
	_, rest, ok := strings.Cut(text, from)
	if i := strings.LastIndex(rest, to); ok && i >= 0 {
		return rest[:i]
	}
	return ""
}

// isFormatError reports whether a message of release 1 rejects a reply for its
// format.
func (c *conversation) isFormatError(t *turn) bool {
	if !c.release1 || !c.unanswered || t.Result != nil || t.Role != model.User {
		return false
	}
	return len(c.pending) == 0 || c.formatErrorPrefix != "" && strings.HasPrefix(strings.TrimSpace(t.Content), c.formatErrorPrefix)
}

// end reads the exit message of release 2. For imported attempts, mini adds the
// output of the last command.
func (c *conversation) end(t *turn) {
	c.exit.Status, c.exit.Submission = t.extra.Status.value, t.extra.Submission.value
	if t.Result == nil {
		return
	}
	if a, ok := c.take(""); ok {
		c.b.execution(c.execution(a, t), t.Time)
	}
}

// without returns an object without one field.
func without(object json.RawMessage, name string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return nil
	}
	delete(fields, name)
	raw, err := trajectories.EncodeJSON(fields)
	if err != nil {
		return nil
	}
	return raw
}
