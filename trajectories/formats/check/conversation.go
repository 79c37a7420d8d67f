package check

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// conversation checks the order of the records of an attempt. It is the state after a
// record.
type conversation struct {
	*Report
	header   trajectories.Header
	branched bool // a record does not follow the one before it in the file
	// imported is set if the attempt was imported, resumed if it was interrupted and
	// continued.
	imported, resumed bool
	// unsure is set if a record since the newest reply was invalid, incomplete if any
	// record was.
	unsure, incomplete bool

	callLine    int                   // line of a call without a reply so far, or 0
	reply       *trajectories.Message // the newest reply
	replyLine   int
	answers     map[string]bool // tool call IDs of the reply that were answered
	executions  int             // number of executions since the reply
	unreported  int             // number of executions without an observation
	toolLine    int             // line of a tool request without an execution so far, or 0
	outcomeLine int             // line of the outcome, or 0
	outcome     *trajectories.Outcome

	// Totals of the attempt so far.
	calls int
	usage model.Usage
	cost  model.Cost
}

// add checks the next record. data is its decoded data, and valid reports whether the
// record has no problems so far.
func (c *conversation) add(line int, r trajectories.Record, data any, valid bool) {
	if c.outcomeLine > 0 && r.Type != trajectories.TypeResume {
		c.problem(line, "type", "the outcome in line %d must be the last record, unless the attempt was resumed", c.outcomeLine)
		c.outcomeLine = 0 // report it only once
	}
	switch d := data.(type) {
	case *trajectories.Call:
		c.addCost(r, d.Usage, d.Cost)
	case *trajectories.ChildCall: // a call of a subagent
		c.addCost(r, d.Usage, d.Cost)
	}
	if !valid {
		c.skipRecord() // the record may be one that later records require
	}
	switch d := data.(type) {
	case *trajectories.Header:
		c.header = *d
	case *trajectories.Import:
		c.imported = true
	case *trajectories.Resume:
		c.resumed, c.outcomeLine, c.outcome, c.callLine = true, 0, nil, 0
		c.executions, c.unreported, c.answers, c.toolLine = 0, 0, nil, 0
	case *trajectories.ToolCall:
		if c.toolLine == 0 {
			c.toolLine = line
		}
	case *trajectories.Call:
		c.checkCallAnswered()
		if r.Type == trajectories.TypeSummary {
			break
		}
		if d.Error == "" {
			c.callLine = line
		}
	case *trajectories.Execution:
		c.toolLine = 0
		c.checkExecution(line, d, valid)
	case *trajectories.Message:
		if c.toolLine > 0 && !c.branched && !c.unsure {
			c.problem(c.toolLine, "", "the tool request is not followed by the execution of its command")
		}
		c.toolLine = 0
		if valid {
			c.checkMessage(line, d)
		}
	case *trajectories.Outcome:
		c.outcomeLine, c.outcome = line, d
		if valid {
			c.checkOutcome(line, d)
		}
	}
}

// addCost adds a call of the attempt or of a subagent to the totals.
func (c *conversation) addCost(r trajectories.Record, u model.Usage, cost model.Cost) {
	if child, ok := trajectories.DecodeAs[trajectories.ChildCall](r); r.Type == trajectories.TypeCall || ok && !child.Summary {
		c.calls++
	}
	if !c.header.IsInherited(r.ID) { // the original attempt paid for inherited calls
		c.usage, c.cost = c.usage.Add(u), c.cost+cost
	}
}

// skipRecord relaxes later checks after a record that was invalid.
func (c *conversation) skipRecord() { c.unsure, c.incomplete, c.callLine = true, true, 0 }

// checkCallAnswered reports a problem if the newest call has neither a reply nor an error.
func (c *conversation) checkCallAnswered() {
	if c.callLine > 0 && !c.branched {
		c.problem(c.callLine, "", "the call has neither a reply nor an error")
	}
	c.callLine = 0
}

func (c *conversation) checkExecution(line int, x *trajectories.Execution, valid bool) {
	if valid && (x.Head < 0 || x.Head > len(x.Output)) {
		c.problem(line, "data.head", "%d is outside of the output, which has %d bytes", x.Head, len(x.Output))
	}
	if valid && x.Truncated && x.Bytes < int64(len(x.Output)) {
		c.problem(line, "data.bytes", "%d is less than the kept output, %d", x.Bytes, len(x.Output))
	}
	if c.reply == nil || x.ByUser {
		return // a set-up or user command
	}
	if !c.branched && !c.unsure {
		switch {
		case c.imported && x.Command == "": // the command is unknown, since the agent has its own command language
		case c.executions >= len(c.reply.Actions):
			c.problem(line, "", "the reply in line %d has %d actions, but this is its execution %d", c.replyLine, len(c.reply.Actions), c.executions+1)
		case c.reply.Actions[c.executions] != x.Command:
			c.problem(line, "data.command", "action %d of the reply in line %d is a different command", c.executions+1, c.replyLine)
		}
	}
	c.executions, c.unreported = c.executions+1, c.unreported+1
}

// rolesByCause are the allowed roles of messages by their cause.
var rolesByCause = map[trajectories.Cause][]model.Role{
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
	trajectories.CauseUserCommand:    {model.User},
}

var roles = []model.Role{model.System, model.User, model.Assistant, model.Tool}

func (c *conversation) checkMessage(line int, m *trajectories.Message) {
	if !slices.Contains(roles, m.Role) {
		c.problem(line, "data.role", "one of system, user, assistant, tool expected, got %.60q", m.Role)
		return
	}
	allowed, ok := rolesByCause[m.Cause]
	switch {
	case !ok && m.Cause != "":
		c.note(line, "data.cause", "unknown cause %.60q", m.Cause)
	case ok && !slices.Contains(allowed, m.Role):
		c.problem(line, "data.role", "%q is not allowed for the cause %q", m.Role, m.Cause)
		return
	}
	if m.Role != model.Tool && m.ToolCallID != "" {
		c.problem(line, "data.tool_call_id", "only messages of the role tool answer a call")
	}
	if m.Role != model.Assistant && m.Cause != trajectories.CauseUserCommand && (len(m.ToolCalls) > 0 || len(m.Actions) > 0) {
		c.problem(line, "data", "only an assistant has tool calls and actions")
	}
	switch {
	case c.branched:
	case m.Role == model.Assistant:
		c.checkReply(line, m)
	case m.Role == model.Tool:
		c.checkAnswer(line, m)
	}
	if (m.Cause == trajectories.CauseObservation || m.Cause == trajectories.CauseMalformedPatch) && !c.branched {
		if c.unreported == 0 && !c.imported && !c.unsure {
			c.problem(line, "data.cause", "the observation has no preceding execution")
		}
		c.unreported = max(0, c.unreported-1)
	}
}

func (c *conversation) checkReply(line int, m *trajectories.Message) {
	if m.Cause == trajectories.CauseReply {
		if c.callLine == 0 && !c.imported && !c.unsure {
			c.problem(line, "", "the reply has no preceding call")
		}
		c.callLine = 0
	}
	c.unsure = false
	ids := map[string]bool{}
	for i, call := range m.ToolCalls {
		if call.ID == "" || ids[call.ID] {
			c.note(line, "data.tool_calls", "call %d has no unique id, which servers require", i+1)
		}
		ids[call.ID] = true
	}
	c.reply, c.replyLine, c.executions, c.unreported, c.answers = m, line, 0, 0, nil
}

func (c *conversation) checkAnswer(line int, m *trajectories.Message) {
	const path = "data.tool_call_id"
	switch {
	case m.ToolCallID == "":
		c.problem(line, path, "a message of the role tool needs a tool_call_id")
	case c.unsure:
	case c.reply == nil || !slices.ContainsFunc(c.reply.ToolCalls, func(k model.ToolCall) bool { return k.ID == m.ToolCallID }):
		c.problem(line, path, "%.60q is not a call of the last reply", m.ToolCallID)
	case c.answers[m.ToolCallID]:
		c.problem(line, path, "%.60q is answered twice", m.ToolCallID)
	default:
		if c.answers == nil {
			c.answers = map[string]bool{}
		}
		c.answers[m.ToolCallID] = true
	}
}

var classes = []trajectories.Class{
	trajectories.Submitted, trajectories.Limit, trajectories.Provider, trajectories.Environment,
	trajectories.Interrupted, trajectories.Internal,
}

// checkOutcome checks an outcome. Its totals must be those of the calls, including calls
// whose replies were abandoned, but not the usage and cost of inherited calls. A difference
// is only a note if the journal may not have all calls.
func (c *conversation) checkOutcome(line int, o *trajectories.Outcome) {
	if !slices.Contains(classes, o.Class) {
		c.problem(line, "data.class", "%.60q is not an outcome class", o.Class)
	}
	if !o.Class.IsResult() && len(o.Submission) > 0 {
		c.problem(line, "data.submission", "an attempt of class %q must not have one", o.Class)
	}
	report := c.problem
	if c.imported || c.branched && !c.resumed || c.incomplete {
		report = c.note
	}
	if o.Steps != c.calls {
		report(line, "data.steps", "%d, but there are %d calls", o.Steps, c.calls)
	}
	if o.Usage != c.usage {
		sum, _ := json.Marshal(c.usage) //nolint:errchkjson // numbers can be encoded
		report(line, "data.usage", "differs from the sum of the calls, which is %s", sum)
	}
	if math.Abs(float64(o.Cost-c.cost)) > 1e-9*max(1, math.Abs(float64(c.cost))) {
		report(line, "data.cost", "%v, but the sum of the calls is %v", float64(o.Cost), float64(c.cost))
	}
}

// finish checks the end of the journal.
func (c *conversation) finish() {
	if c.outcome != nil {
		c.checkCallAnswered()
		return
	}
	c.note(0, "", "no outcome: the attempt has not ended or was killed")
}
