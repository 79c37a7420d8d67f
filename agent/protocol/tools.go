package protocol

import (
	"encoding/json"
	"fmt"

	"github.com/minibench/mini/model"
)

// ToolName is the one tool there is.
const ToolName = "bash"

// maxCalls bounds the calls of one reply; more are the work of a loop in the
// model, and none of them is run.
const maxCalls = 64

// bash is the tool as requests offer it.
var bash = model.Definition{
	Name:        ToolName,
	Description: "Run a command in a new bash shell and get its output and its exit code.",
	Parameters: json.RawMessage(`{"type":"object","properties":{"command":` +
		`{"type":"string","description":"The command; it may have several lines."}},` +
		`"required":["command"],"additionalProperties":false}`),
}

// tools takes commands from calls of the tool.
type tools struct{ one bool }

// NewTools is the protocol of native tool calls. The calls of a reply are run
// in their order; where one is true, a reply may have one only.
func NewTools(one bool) Protocol { return tools{one} }

// Tools implements Protocol.
func (tools) Tools() []model.Definition { return []model.Definition{bash} }

// Read implements Protocol. A call that is wrong keeps the others of its reply
// from being run: they were written in the belief that it would be.
func (p tools) Read(reply model.Reply, n int) Reading {
	r := Reading{Message: reply.Message}
	calls := reply.Message.Calls
	r.Message.Calls = presentable(calls, n)
	for i, c := range calls {
		a := Action{CallID: r.Message.Calls[i].ID}
		if a.CallID != c.ID { // what is kept has the id that will not be answered
			r.Message.Kept = nil
		}
		command, err := command(c)
		if err != nil {
			a.Problem = err.Error()
			if r.Wrong == "" {
				r.Wrong = a.Problem
			}
		} else {
			a.Command = command
		}
		r.Actions = append(r.Actions, a)
	}
	limit := maxCalls
	if p.one {
		limit = 1
	}
	switch {
	case len(calls) == 0:
		r.Wrong = "your reply has no tool call"
	case p.one && len(calls) > 1:
		r.Wrong = fmt.Sprintf("your reply has %d tool calls, and exactly one is needed", len(calls))
	case len(calls) > limit:
		r.Wrong = fmt.Sprintf("your reply has %d tool calls, and at most %d are run", len(calls), limit)
	}
	if r.Wrong != "" && reply.Finish == model.FinishLength {
		r.Cut, r.Wrong = true, "your reply reached the token limit and was cut off before its tool call was complete"
	}
	return r
}

// Answer implements Protocol.
func (tools) Answer(a Action, text string) model.Message {
	if a.CallID == "" {
		return model.Message{Role: model.User, Content: text}
	}
	return model.Message{Role: model.Tool, CallID: a.CallID, Content: text}
}

// Write implements Protocol. The calls have no ids; Read gives them some.
func (tools) Write(thought string, commands ...string) model.Message {
	m := model.Message{Role: model.Assistant, Content: thought}
	for _, c := range commands {
		m.Calls = append(m.Calls, Call(c))
	}
	return m
}

// Call is a call of the tool, without an id.
func Call(command string) model.Call {
	return model.Call{Name: ToolName, Arguments: object("command", command)}
}

func count(n int, what string) string { return fmt.Sprintf("%d %ss", n, what) }
