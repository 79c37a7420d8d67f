package check

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// conversation is what is known of an attempt at a record: who spoke last, and
// what is due.
type conversation struct {
	*Report
	header   trajectories.Header
	branched bool // its order is not the file's
	// imported says that the attempt is another agent's, resumed that it went on
	// after it was stopped.
	imported, resumed bool
	// vague says that a record since the last reply could not be read, partial
	// that one could not be anywhere.
	vague, partial bool

	call    int // the line of a call whose reply has not come; 0 is none
	reply   *trajectories.Message
	replyAt int
	answers map[string]bool
	ran     int // executions since the reply
	untold  int // of them, those without an observation
	tool    int // the line of a tool's call whose execution has not come; 0 is none
	outcome int // its line; 0 before there is one
	ended   *trajectories.Outcome

	calls int
	usage model.Usage
	cost  model.Cost
}

func (c *conversation) hear(line int, r trajectories.Record, data any, sound bool) {
	if c.outcome > 0 && r.Type != trajectories.TypeResume {
		c.problem(line, "type", "the outcome in line %d is the last record of an attempt, but for one that is resumed", c.outcome)
		c.outcome = 0 // is said
	}
	switch d := data.(type) {
	case *trajectories.Call:
		c.paid(r, d.Usage, d.Cost)
	case *trajectories.Spent: // a child's call
		c.paid(r, d.Usage, d.Cost)
	}
	if !sound {
		c.unread() // what it was the beginning of cannot be told
	}
	switch d := data.(type) {
	case *trajectories.Header:
		c.header = *d
	case *trajectories.Import:
		c.imported = true
	case *trajectories.Resume:
		c.resumed, c.outcome, c.ended, c.call = true, 0, nil, 0
		c.ran, c.untold, c.answers, c.tool = 0, 0, nil, 0
	case *trajectories.ToolCall:
		if c.tool == 0 {
			c.tool = line
		}
	case *trajectories.Call:
		c.asked()
		if r.Type == trajectories.TypeSummary {
			break
		}
		if d.Error == "" {
			c.call = line
		}
	case *trajectories.Execution:
		c.tool = 0
		c.executed(line, d, sound)
	case *trajectories.Message:
		if c.tool > 0 && !c.branched && !c.vague {
			c.problem(c.tool, "", "the tool was called by a command, and no execution follows")
		}
		c.tool = 0
		if sound {
			c.message(line, d)
		}
	case *trajectories.Outcome:
		c.outcome, c.ended = line, d
		if sound {
			c.last(line, d)
		}
	}
}

// paid counts a call of the attempt's, or of a child's.
func (c *conversation) paid(r trajectories.Record, u model.Usage, cost model.Cost) {
	if trajectories.IsStep(r) {
		c.calls++
	}
	if !c.header.Inherited(r.ID) { // else it was paid for there
		c.usage, c.cost = c.usage.Add(u), c.cost+cost
	}
}

// unread says that a record is not known.
func (c *conversation) unread() { c.vague, c.partial, c.call = true, true, 0 }

// asked is before a call, or the end: was the one before answered?
func (c *conversation) asked() {
	if c.call > 0 && !c.branched {
		c.problem(c.call, "", "the call has neither a reply nor an error")
	}
	c.call = 0
}

func (c *conversation) executed(line int, x *trajectories.Execution, sound bool) {
	if sound && (x.Head < 0 || x.Head > len(x.Output)) {
		c.problem(line, "data.head", "%d is not within the output, which has %d bytes", x.Head, len(x.Output))
	}
	if sound && x.Truncated && x.Bytes < int64(len(x.Output)) {
		c.problem(line, "data.bytes", "%d is less than what was kept, %d", x.Bytes, len(x.Output))
	}
	if c.reply == nil || x.Person {
		return // to set things up, or of no reply
	}
	if !c.branched && !c.vague {
		switch {
		case c.imported && x.Command == "": // an agent with a language of its own: only the output is known
		case c.ran >= len(c.reply.Actions):
			c.problem(line, "", "the reply in line %d has %d actions, and this is execution %d of it", c.replyAt, len(c.reply.Actions), c.ran+1)
		case c.reply.Actions[c.ran] != x.Command:
			c.problem(line, "data.command", "action %d of the reply in line %d is another command", c.ran+1, c.replyAt)
		}
	}
	c.ran, c.untold = c.ran+1, c.untold+1
}

// causes are those of messages, with who may speak.
var causes = map[trajectories.Cause][]model.Role{
	trajectories.CausePrompt:         {model.System, model.User, model.Assistant},
	trajectories.CauseReply:          {model.Assistant},
	trajectories.CauseObservation:    {model.User, model.Tool},
	trajectories.CauseFormatError:    {model.User, model.Tool},
	trajectories.CauseRejection:      {model.User, model.Tool},
	trajectories.CauseNotRun:         {model.User, model.Tool},
	trajectories.CauseMalformedPatch: {model.User, model.Tool},
	trajectories.CauseInterruption:   {model.User},
	trajectories.CauseSteer:          {model.User},
	trajectories.CauseFollowUp:       {model.User},
	trajectories.CauseCommand:        {model.User},
}

var roles = []model.Role{model.System, model.User, model.Assistant, model.Tool}

func (c *conversation) message(line int, m *trajectories.Message) {
	if !slices.Contains(roles, m.Role) {
		c.problem(line, "data.role", "one of system, user, assistant, tool is needed, got %.60q", m.Role)
		return
	}
	who, ok := causes[m.Cause]
	switch {
	case !ok && m.Cause != "":
		c.note(line, "data.cause", "%.60q is not known", m.Cause)
	case ok && !slices.Contains(who, m.Role):
		c.problem(line, "data.role", "%q does not fit the cause %q", m.Role, m.Cause)
		return
	}
	if m.Role != model.Tool && m.CallID != "" {
		c.problem(line, "data.tool_call_id", "only messages of the role tool answer a call")
	}
	if m.Role != model.Assistant && m.Cause != trajectories.CauseCommand && (len(m.Calls) > 0 || len(m.Actions) > 0) {
		c.problem(line, "data", "only an assistant has tool calls and actions")
	}
	switch {
	case c.branched:
	case m.Role == model.Assistant:
		c.replied(line, m)
	case m.Role == model.Tool:
		c.answered(line, m)
	}
	if (m.Cause == trajectories.CauseObservation || m.Cause == trajectories.CauseMalformedPatch) && !c.branched {
		if c.untold == 0 && !c.imported && !c.vague {
			c.problem(line, "data.cause", "an observation tells of an execution, and there is none before it")
		}
		c.untold = max(0, c.untold-1)
	}
}

func (c *conversation) replied(line int, m *trajectories.Message) {
	if m.Cause == trajectories.CauseReply {
		if c.call == 0 && !c.imported && !c.vague {
			c.problem(line, "", "a reply follows the record of its call, and there is none")
		}
		c.call = 0
	}
	c.vague = false
	ids := map[string]bool{}
	for i, call := range m.Calls {
		if call.ID == "" || ids[call.ID] {
			c.note(line, "data.tool_calls", "call %d has no id of its own: no server takes it back", i+1)
		}
		ids[call.ID] = true
	}
	c.reply, c.replyAt, c.ran, c.untold, c.answers = m, line, 0, 0, nil
}

func (c *conversation) answered(line int, m *trajectories.Message) {
	const path = "data.tool_call_id"
	switch {
	case m.CallID == "":
		c.problem(line, path, "a message of the role tool answers a call, and this names none")
	case c.vague:
	case c.reply == nil || !slices.ContainsFunc(c.reply.Calls, func(k model.Call) bool { return k.ID == m.CallID }):
		c.problem(line, path, "%.60q is no call of the last reply", m.CallID)
	case c.answers[m.CallID]:
		c.problem(line, path, "%.60q is answered twice", m.CallID)
	default:
		if c.answers == nil {
			c.answers = map[string]bool{}
		}
		c.answers[m.CallID] = true
	}
}

var classes = []trajectories.Class{
	trajectories.Submitted, trajectories.Limit, trajectories.Provider, trajectories.Environment,
	trajectories.Interrupted, trajectories.Internal,
}

// last checks an outcome. Its totals are those of the calls, also of those that
// were left behind when the attempt was resumed; what a branch has of another
// attempt was paid for there. Of an attempt that is not all here, they may be more.
func (c *conversation) last(line int, o *trajectories.Outcome) {
	if !slices.Contains(classes, o.Class) {
		c.problem(line, "data.class", "%.60q is no class of outcomes", o.Class)
	}
	if !o.Class.Counts() && len(o.Submission) > 0 {
		c.problem(line, "data.submission", "an attempt of the class %q has none", o.Class)
	}
	wrong := c.problem
	if c.imported || c.branched && !c.resumed || c.partial {
		wrong = c.note
	}
	if o.Steps != c.calls {
		wrong(line, "data.steps", "%d, and there are %d calls", o.Steps, c.calls)
	}
	if o.Usage != c.usage {
		sum, _ := json.Marshal(c.usage) //nolint:errchkjson // numbers have a form
		wrong(line, "data.usage", "not the sum of the calls, which is %s", sum)
	}
	if math.Abs(float64(o.Cost-c.cost)) > 1e-9*max(1, math.Abs(float64(c.cost))) {
		wrong(line, "data.cost", "%v, and the calls add up to %v", float64(o.Cost), float64(c.cost))
	}
}

func (c *conversation) end() {
	if c.ended != nil {
		c.asked()
		return
	}
	c.note(0, "", "there is no outcome: the attempt has not ended, or not in good order")
}
