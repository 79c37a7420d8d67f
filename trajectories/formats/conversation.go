package formats

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// conversation converts messages to records. It determines the causes of messages, and
// the command of each observation.
type conversation struct {
	b                 *builder
	release1          bool   // the file is from mini-swe-agent 1
	formatErrorPrefix string // beginning of messages about format errors; empty if unknown
	textCommands      bool   // replies may contain commands in their text

	exit struct{ Status, Submission string } // from the exit message

	lastTime     time.Time // time of the newest message that has one
	hasReply     bool      // there was a reply
	unanswered   bool      // no message followed the newest reply, except rejections of tool calls
	pending      []action  // actions of the newest reply without a result so far
	singleAction bool      // the newest reply has one action, so the times of messages give its duration
	dropped      []int     // record IDs of rejected replies that the agent did not send in later calls

	missingReplies int // number of rejected replies that are not in the file
}

// action is a command of a reply, and the ID of its tool call, if there is one.
type action struct {
	command, callID string
}

// maxDropped is the length of conversation.dropped up to which calls get context records.
// The size of all context records is quadratic in that length.
const maxDropped = 256

// read adds the records of all turns.
func (c *conversation) read(turns []turn) {
	for i := range turns {
		t := &turns[i]
		c.b.addUnreadLosses(t.Raw, t.Role == model.Assistant)
		switch {
		case t.Extra.Cause.set && t.Extra.Interrupt == "" && !t.Extra.hasResult():
			c.b.addMessage(c.message(t), standaloneCause(t.Extra.Cause.value), t.Time)
			c.unanswered = false
		case t.Role == model.Assistant:
			c.addReply(t)
		case t.Role == "exit":
			c.readExit(t)
		case t.Extra.Interrupt != "":
			c.addInterrupt(t)
		default:
			c.addUserOrTool(t)
		}
		if !t.Time.IsZero() {
			c.lastTime = t.Time
		}
	}
}

// standaloneCause returns the cause of a message that answers no reply in the file. It
// returns "" unless the recorded cause is one that such a message can have.
func standaloneCause(text string) trajectories.Cause {
	switch cause := trajectories.Cause(text); cause {
	case trajectories.CausePrompt, trajectories.CauseObservation, trajectories.CauseMalformedPatch:
		return cause
	}
	return ""
}

func (c *conversation) message(t *turn) model.Message {
	return model.Message{
		Role: t.Role, Content: t.Content, Images: c.b.images(t.RawContent), Reasoning: t.Reasoning,
		ToolCalls: t.Calls, ToolCallID: t.CallID, ProviderData: t.ProviderData,
	}
}

func (c *conversation) addReply(t *turn) {
	commands := t.Commands
	if !c.textCommands && len(t.Calls) == 0 && t.Extra.Actions == nil {
		commands = nil
	}
	raw := t.Extra.Response
	if t.Object == "response" { // the message is the response
		raw = withoutField(t.Raw, "extra")
	}
	m := c.message(t)
	call := c.call(raw, t, t.Time)
	c.addContext(call)
	c.b.addReply(m, commands, call, t.Time)
	c.hasReply, c.unanswered = true, true
	c.pending = c.pending[:0]
	for i, id := range trajectories.ActionCallIDs(trajectories.Message{Message: m, Actions: commands}) {
		c.pending = append(c.pending, action{commands[i], id})
	}
	c.singleAction = len(commands) == 1
}

// call returns the model call with the given response, or nil if the file has no data
// about it. at is the time of its reply.
func (c *conversation) call(raw json.RawMessage, t *turn, at time.Time) *trajectories.Call {
	if len(raw) == 0 && !t.Extra.Cost.set && t.Extra.Model.value == "" {
		return nil
	}
	resp, usage := readResponse(raw)
	call := &trajectories.Call{Usage: usage, Model: cmp.Or(t.Extra.Model.value, resp.Model), Raw: raw}
	if len(resp.Choices) > 0 {
		call.Finish = resp.Choices[0].Finish
	}
	if t.Extra.Cost.set {
		call.Cost = model.Cost(t.Extra.Cost.value)
	} else {
		call.Usage.Unpriced = 1
	}
	if !c.lastTime.IsZero() && at.After(c.lastTime) {
		call.Start, call.Duration = c.lastTime, trajectories.Seconds(at.Sub(c.lastTime))
	}
	return call
}

// addContext adds a context record for a call if replies before it were dropped.
func (c *conversation) addContext(call *trajectories.Call) {
	if call == nil || len(c.dropped) == 0 || len(c.dropped) > maxDropped {
		return
	}
	var sent []trajectories.ContextPart
	next := firstRecords + 1
	for _, id := range c.dropped {
		if id > next {
			sent = append(sent, trajectories.ContextPart{From: next, To: id - 1})
		}
		next = id + 1
	}
	if last := len(c.b.records); last >= next {
		sent = append(sent, trajectories.ContextPart{From: next, To: last})
	}
	c.b.add(trajectories.TypeContext, time.Time{}, trajectories.PromptContext{Sent: sent})
}

// addInterrupt adds a message with an interrupt type, which is not a command's output.
func (c *conversation) addInterrupt(t *turn) {
	cause := trajectories.Cause("")
	switch t.Extra.Interrupt {
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
		c.takeAction(t.CallID) // the command did not run
	}
	c.b.addMessage(c.message(t), cause, t.Time)
	c.unanswered = c.unanswered && t.Role == model.Tool
}

// restoreReply adds the rejected reply that t quotes, unless the reply is among the
// messages.
func (c *conversation) restoreReply(t *turn) {
	if c.unanswered || t.Role == model.Tool { // the reply or its other calls are among the messages
		return
	}
	var m model.Message
	resp, _ := readResponse(t.Extra.Response)
	switch {
	case len(t.Extra.Response) > 0 && decodeReply(t.Extra.Response, resp, &m):
	case len(t.Extra.ModelResponse) > 0:
		m = model.Message{Content: asString(t.Extra.ModelResponse)}
	default:
		c.b.addLoss("a reply with a format error is not in the file", 1)
		c.missingReplies++
		return
	}
	m.Role = model.Assistant
	call := c.call(t.Extra.Response, t, time.Time{})
	c.addContext(call)
	c.b.addReply(m, nil, call, time.Time{})
	c.hasReply, c.unanswered, c.pending = true, true, c.pending[:0]
	if c.dropped = append(c.dropped, len(c.b.records)); len(c.dropped) > maxDropped {
		c.b.addLoss("later calls do not record that a reply with a format error was not sent", 1)
	}
}

// decodeReply decodes the reply in a provider's response into m. resp is the decoded
// response. decodeReply returns false if the response has no reply.
func decodeReply(raw json.RawMessage, resp response, m *model.Message) bool {
	message := raw
	if len(resp.Choices) > 0 {
		message = resp.Choices[0].Message
	}
	t, err := parseTurn(message, defaultActions())
	if err != nil || t.Role != model.Assistant {
		return false
	}
	m.Content, m.Reasoning, m.ToolCalls = t.Content, t.Reasoning, t.Calls
	return true
}

// takeAction removes and returns the pending action that a message answers: the first that
// has the call ID of the message or none, or the first of all if the message has none.
func (c *conversation) takeAction(callID string) (action, bool) {
	for i, a := range c.pending {
		if callID == "" || a.callID == callID || a.callID == "" {
			c.pending = append(c.pending[:i], c.pending[i+1:]...)
			return a, true
		}
	}
	return action{}, false
}

// addUserOrTool adds a message that is neither a reply nor has an interrupt type: a prompt,
// a format error in a file of release 1, an observation, or a message of the user.
func (c *conversation) addUserOrTool(t *turn) {
	m := c.message(t)
	switch {
	case t.Role != model.User && t.Role != model.Tool:
		c.b.addMessage(m, trajectories.CausePrompt, t.Time)
		return
	case !c.hasReply:
		c.b.addMessage(m, trajectories.CausePrompt, t.Time)
		return
	case c.isFormatError(t):
		c.b.addMessage(m, trajectories.CauseFormatError, t.Time)
		c.unanswered, c.pending = false, c.pending[:0]
		return
	}
	for _, a := range t.Extra.Actions { // the user ran commands
		c.b.addLoss("a command run by the user", 1)
		if a.Command != nil {
			c.pending = append(c.pending, action{command: *a.Command})
		}
	}
	if len(t.Extra.Actions) > 0 {
		c.b.addMessage(m, "", t.Time)
		return
	}
	c.addObservation(t, m)
}

// addObservation adds a message that answers a command or another tool call, or a plain
// user message.
func (c *conversation) addObservation(t *turn, m model.Message) {
	a, found := action{}, false
	if t.Role == model.Tool || t.Result != nil || c.unanswered {
		a, found = c.takeAction(t.CallID)
	}
	c.unanswered = false
	switch {
	case !found && t.Role == model.User && t.Result == nil: // a plain user message
		c.b.addMessage(m, "", t.Time)
		return
	case !found && t.Role == model.Tool && !t.Extra.hasResult(): // the answer to a tool call without a shell command
		c.b.addMessage(m, trajectories.CauseObservation, t.Time)
		return
	case t.Result != nil && t.Result.ExitCode != nil && *t.Result.ExitCode == -1 && t.Result.Exception == notExecuted:
		c.b.addMessage(m, trajectories.CauseNotRun, t.Time)
		return
	}
	if !found {
		c.b.addLoss("the command of an output is not in the file, or its format is unknown", 1)
	}
	x := c.execution(a, t)
	x.TimedOut = x.TimedOut || t.Extra.TimedOut.value || t.Extra.ExceptionType.value == "TimeoutExpired"
	if !c.lastTime.IsZero() && t.Time.After(c.lastTime) && c.singleAction {
		x.Start, x.Duration = c.lastTime, trajectories.Seconds(t.Time.Sub(c.lastTime))
	}
	c.b.addExecution(x, t.Time)
	c.b.addMessage(m, trajectories.CauseObservation, t.Time)
}

// notExecuted is the exception that mini-swe-agent records for tool calls that follow the
// last executed one of a reply.
const notExecuted = "action was not executed"

// execution returns the execution of action a with the result in t.
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
	x.Exception = r.Exception
	if r.ExitCode != nil {
		x.ExitCode, x.ExitCodeUnknown = *r.ExitCode, false
	}
	if r.Output != nil {
		x.Output = trajectories.Bytes(*r.Output)
	} else {
		_, output, _ := strings.Cut(t.Content, "</returncode>\n")
		x.Output = trajectories.Bytes(output)
		c.b.addLoss("an output was truncated in the file", 1)
	}
	return x
}

// textBetween returns the text between the first from and the last to, or "".
func textBetween(text, from, to string) string {
	_, rest, ok := strings.Cut(text, from)
	if i := strings.LastIndex(rest, to); ok && i >= 0 {
		return rest[:i]
	}
	return ""
}

// isFormatError reports whether a message rejects the newest reply because of a format
// error. It is for files of release 1, which do not mark such messages.
func (c *conversation) isFormatError(t *turn) bool {
	if !c.release1 || !c.unanswered || t.Result != nil || t.Role != model.User {
		return false
	}
	return len(c.pending) == 0 || c.formatErrorPrefix != "" && strings.HasPrefix(strings.TrimSpace(t.Content), c.formatErrorPrefix)
}

// readExit reads the exit message of release 2. If mini wrote the file for an imported
// attempt, the message has the output of the last command too.
func (c *conversation) readExit(t *turn) {
	c.exit.Status, c.exit.Submission = t.Extra.Status.value, t.Extra.Submission.value
	if t.Result == nil {
		return
	}
	if a, ok := c.takeAction(""); ok {
		c.b.addExecution(c.execution(a, t), t.Time)
	}
}

// withoutField returns an object without one field, or nil if it is not an object.
func withoutField(object json.RawMessage, name string) json.RawMessage {
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
