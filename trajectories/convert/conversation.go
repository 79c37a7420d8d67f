package convert

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// conversation turns messages into records: which are prompts, which replies,
// and which command each observation is of.
type conversation struct {
	b        *builder
	release1 bool   // of mini-swe-agent
	refusal  string // how its answer to a wrong format begins
	text     bool   // commands may stand in the text of replies

	exit struct{ Status, Submission string }

	at      time.Time // of the newest message that has a time
	replied bool      // there was a reply
	open    bool      // the newest reply has had no answer but refusals of its calls
	pending []action  // of the newest reply, not run yet
	single  bool      // it has one action: then times say how long that took
	dropped []int     // replies that later calls were not sent

	refusals int // whose replies are not in the file
}

type action struct {
	command, callID string
}

// maxDropped bounds the replies after which each call says what it was sent, as
// that takes room by their square.
const maxDropped = 256

func (c *conversation) read(turns []trajectories.Turn) error {
	for i := range turns {
		t := &turns[i]
		var d details
		_ = json.Unmarshal(t.Raw, &d) // fields of other types say nothing
		c.b.unread(t.Raw, t.Role == model.Assistant)
		switch {
		case d.Extra.Cause != nil && t.Interrupt == "" && !d.recorded():
			c.b.message(c.plain(t, d), causeOf(*d.Extra.Cause), t.Time)
			c.open = false
		case t.Role == model.Assistant:
			c.reply(t, d)
		case t.Role == "exit":
			c.end(t, d)
		case t.Interrupt != "":
			c.interrupt(t, d)
		default:
			c.told(t, d)
		}
		if !t.Time.IsZero() {
			c.at = t.Time
		}
	}
	return c.b.err
}

// recorded says that the file has an output beside what the model was shown.
func (d details) recorded() bool { return len(d.Extra.RawOutput) > 0 || len(d.Extra.ReturnCode) > 0 }

// causeOf takes the causes of messages that stand by themselves.
func causeOf(text string) trajectories.Cause {
	switch cause := trajectories.Cause(text); cause {
	case trajectories.CausePrompt, trajectories.CauseObservation, trajectories.CauseMalformedPatch:
		return cause
	}
	return ""
}

func (c *conversation) plain(t *trajectories.Turn, d details) model.Message {
	return model.Message{
		Role: t.Role, Content: t.Content, Images: c.b.images(d.Content), Reasoning: t.Reasoning,
		Calls: t.Calls, CallID: t.CallID, Kept: d.Kept,
	}
}

func (c *conversation) reply(t *trajectories.Turn, d details) {
	commands := t.Commands
	if !c.text && len(t.Calls) == 0 && d.Extra.Actions == nil {
		commands = nil
	}
	raw := d.Extra.Response
	if d.Object == "response" { // the message is the response
		raw = without(t.Raw, "extra")
	}
	m := c.plain(t, d)
	call := c.call(raw, d, t.Time)
	c.sent(call)
	c.b.reply(m, commands, call, t.Time)
	c.replied, c.open = true, true
	c.pending = c.pending[:0]
	for i, id := range trajectories.ActionIDs(trajectories.Message{Message: m, Actions: commands}) {
		c.pending = append(c.pending, action{commands[i], id})
	}
	c.single = len(commands) == 1
}

// call is what the file says of a query; nil where that is nothing.
func (c *conversation) call(raw json.RawMessage, d details, at time.Time) *trajectories.Call {
	if len(raw) == 0 && d.Extra.Cost == nil && d.Extra.Model == "" {
		return nil
	}
	a, usage := readResponse(raw)
	call := &trajectories.Call{Usage: usage, Model: cmp.Or(d.Extra.Model, a.Model), Raw: raw}
	if len(a.Choices) > 0 {
		call.Finish = a.Choices[0].Finish
	}
	if d.Extra.Cost != nil {
		call.Cost = model.Cost(*d.Extra.Cost)
	} else {
		call.Usage.Unpriced = 1
	}
	if !c.at.IsZero() && at.After(c.at) {
		call.Start, call.Duration = c.at, trajectories.Seconds(at.Sub(c.at))
	}
	return call
}

// sent says what a call was sent, where replies had been dropped before it.
func (c *conversation) sent(call *trajectories.Call) {
	if call == nil || len(c.dropped) == 0 || len(c.dropped) > maxDropped {
		return
	}
	var sent []trajectories.ContextPart
	from := before + 1
	for _, id := range c.dropped {
		if id > from {
			sent = append(sent, trajectories.ContextPart{From: from, To: id - 1})
		}
		from = id + 1
	}
	if last := before + len(c.b.body); last >= from {
		sent = append(sent, trajectories.ContextPart{From: from, To: last})
	}
	c.b.add(trajectories.TypeContext, time.Time{}, trajectories.Context{Sent: sent})
}

// interrupt is the agent's own word, instead of what a command gave.
func (c *conversation) interrupt(t *trajectories.Turn, d details) {
	cause := trajectories.Cause("")
	switch t.Interrupt {
	case "FormatError":
		c.bringBack(t, d)
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
		c.take(t.CallID) // it was not run
	}
	c.b.message(c.plain(t, d), cause, t.Time)
	c.open = c.open && t.Role == model.Tool
}

// bringBack adds a reply that was refused and left out of the messages, where
// its answer quotes it.
func (c *conversation) bringBack(t *trajectories.Turn, d details) {
	if c.open || t.Role == model.Tool { // it stands there
		return
	}
	var m model.Message
	a, _ := readResponse(d.Extra.Response)
	switch {
	case len(d.Extra.Response) > 0 && restated(d.Extra.Response, a, &m):
	case len(d.Extra.ModelResponse) > 0:
		m = model.Message{Content: asString(d.Extra.ModelResponse)}
	default:
		c.b.lose("a reply that was refused for its format is not in the file", 1)
		c.refusals++
		return
	}
	m.Role = model.Assistant
	call := c.call(d.Extra.Response, d, time.Time{})
	c.sent(call)
	id := c.b.reply(m, nil, call, time.Time{})
	c.replied, c.open, c.pending = true, true, c.pending[:0]
	if c.dropped = append(c.dropped, id); len(c.dropped) > maxDropped {
		c.b.lose("the calls after a refused reply do not say that they were not sent it", 1)
	}
}

// restated is the reply in a provider's response.
func restated(raw json.RawMessage, a answered, m *model.Message) bool {
	message := raw
	if len(a.Choices) > 0 {
		message = a.Choices[0].Message
	}
	list, err := json.Marshal([]json.RawMessage{message})
	if err != nil {
		return false
	}
	t, err := parse(list)
	if err != nil || len(t.Turns) != 1 || t.Turns[0].Role != model.Assistant {
		return false
	}
	m.Content, m.Reasoning, m.Calls = t.Turns[0].Content, t.Turns[0].Reasoning, t.Turns[0].Calls
	return true
}

// take removes the action that a message answers: by its call, else the first.
func (c *conversation) take(callID string) (action, bool) {
	for i, a := range c.pending {
		if callID == "" || a.callID == callID || a.callID == "" {
			c.pending = append(c.pending[:i], c.pending[i+1:]...)
			return a, true
		}
	}
	return action{}, false
}

// told is a message of the user or of a tool.
func (c *conversation) told(t *trajectories.Turn, d details) {
	m := c.plain(t, d)
	switch {
	case t.Role != model.User && t.Role != model.Tool:
		c.b.message(m, trajectories.CausePrompt, t.Time)
		return
	case !c.replied:
		c.b.message(m, trajectories.CausePrompt, t.Time)
		return
	case c.refused(t):
		c.b.message(m, trajectories.CauseFormatError, t.Time)
		c.open, c.pending = false, c.pending[:0]
		return
	}
	for _, own := range d.Extra.Actions { // the user runs commands
		c.b.lose("a command of the user's own", 1)
		c.pending = append(c.pending, action{command: own.Command})
	}
	if len(d.Extra.Actions) > 0 {
		c.b.message(m, "", t.Time)
		return
	}
	c.observe(t, d, m)
}

// observe is the answer to a command, or to a call of another tool.
func (c *conversation) observe(t *trajectories.Turn, d details, m model.Message) {
	a, ok := action{}, false
	if t.Role == model.Tool || t.Result != nil || c.open {
		a, ok = c.take(t.CallID)
	}
	c.open = false
	switch {
	case !ok && t.Role == model.User && t.Result == nil: // a plain turn
		c.b.message(m, "", t.Time)
		return
	case !ok && t.Role == model.Tool && !d.recorded(): // no shell
		c.b.message(m, trajectories.CauseObservation, t.Time)
		return
	case t.Result != nil && t.Result.ExitCode == -1 && t.Result.Exception == notExecuted:
		c.b.message(m, trajectories.CauseNotRun, t.Time)
		return
	}
	if !ok {
		c.b.lose("the command behind an output is not in the file, or its agent wrote it in a way of its own", 1)
	}
	x := c.run(a, t)
	x.TimedOut = x.TimedOut || d.Extra.TimedOut || d.Extra.Exception == "TimeoutExpired"
	if !c.at.IsZero() && t.Time.After(c.at) && c.single {
		x.Start, x.Duration = c.at, trajectories.Seconds(t.Time.Sub(c.at))
	}
	c.b.execution(x, t.Time)
	c.b.message(m, trajectories.CauseObservation, t.Time)
}

// notExecuted is what mini-swe-agent says of calls after the one that ended it.
const notExecuted = "action was not executed"

// run is what the file says of a command.
func (c *conversation) run(a action, t *trajectories.Turn) trajectories.Execution {
	x := trajectories.Execution{Command: a.command, CodeUnknown: true}
	r := t.Result
	switch {
	case r == nil && c.release1 && strings.Contains(t.Content, "timed out and has been killed"):
		x.TimedOut = true
		x.Output = trajectories.Bytes(between(t.Content, "<output>\n", "\n</output>"))
		return x
	case r == nil:
		x.Output = trajectories.Bytes(t.Content)
		c.b.lose("an output stands in the file only as the model was shown it", 1)
		return x
	}
	x.Output, x.Exception = trajectories.Bytes(r.Output), r.Exception
	if r.Known {
		x.ExitCode, x.CodeUnknown = r.ExitCode, false
	}
	if !r.Complete {
		_, shown, _ := strings.Cut(t.Content, "</returncode>\n")
		x.Output = trajectories.Bytes(shown)
		c.b.lose("an output was shortened in the file itself", 1)
	}
	return x
}

func between(text, from, to string) string {
	_, rest, ok := strings.Cut(text, from)
	if i := strings.LastIndex(rest, to); ok && i >= 0 {
		return rest[:i]
	}
	return ""
}

// refused says whether release 1 answers a reply that is not of its format.
func (c *conversation) refused(t *trajectories.Turn) bool {
	if !c.release1 || !c.open || t.Result != nil || t.Role != model.User {
		return false
	}
	return len(c.pending) == 0 || c.refusal != "" && strings.HasPrefix(strings.TrimSpace(t.Content), c.refusal)
}

// end reads the message of release 2 that says how it ended. Those that mini
// derives of other agents' attempts also have the last command's output.
func (c *conversation) end(t *trajectories.Turn, d details) {
	c.exit.Status, c.exit.Submission = d.Extra.Status, d.Extra.Submission
	if t.Result == nil {
		return
	}
	if a, ok := c.take(""); ok {
		c.b.execution(c.run(a, t), t.Time)
	}
}

// without is an object but for one field.
func without(object json.RawMessage, name string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return nil
	}
	delete(fields, name)
	raw, err := trajectories.Encode(fields)
	if err != nil {
		return nil
	}
	return raw
}
