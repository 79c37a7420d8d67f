package protocol

import (
	"encoding/json"
	"fmt"

	"github.com/minibench/mini/model"
)

// ToolName is the name of the only tool that requests offer.
const ToolName = "bash"

// maxCalls bounds the calls of one reply. A model that writes more is stuck in
// a loop, so none of the calls is run.
const maxCalls = 64

// bashTool is the tool's definition in requests.
var bashTool = model.ToolDefinition{
	Name:        ToolName,
	Description: "Run a command in a new bash shell and get its output and its exit code.",
	Parameters: json.RawMessage(`{"type":"object","properties":{"command":` +
		`{"type":"string","description":"The command; it may have several lines."}},` +
		`"required":["command"],"additionalProperties":false}`),
}

// toolsProtocol takes commands from tool calls.
type toolsProtocol struct{ single bool }

// NewTools returns the tools protocol, which uses native tool calls. The calls
// of a reply are run in order. If single is true, a reply may have only one
// call.
func NewTools(single bool) Protocol { return toolsProtocol{single} }

// Tools implements Protocol.
func (toolsProtocol) Tools() []model.ToolDefinition { return []model.ToolDefinition{bashTool} }

// Parse implements Protocol. If a call is invalid, no call of the reply is run,
// because the model wrote the other calls on the assumption that this one runs.
func (p toolsProtocol) Parse(reply model.Reply, n int) ParsedReply {
	parsed := ParsedReply{Message: reply.Message}
	calls := reply.Message.ToolCalls
	parsed.Message.ToolCalls = sanitizeCalls(calls, n)
	for i, c := range calls {
		a := Action{CallID: parsed.Message.ToolCalls[i].ID}
		if a.CallID != c.ID { // ProviderData has the original id, which no message will answer
			parsed.Message.ProviderData = nil
		}
		command, err := parseCommand(c)
		if err != nil {
			a.Problem = err.Error()
			if parsed.Problem == "" {
				parsed.Problem = a.Problem
			}
		} else {
			a.Command = command
		}
		parsed.Actions = append(parsed.Actions, a)
	}
	limit := maxCalls
	if p.single {
		limit = 1
	}
	switch {
	case len(calls) == 0:
		parsed.Problem = "your reply has no tool call"
	case p.single && len(calls) > 1:
		parsed.Problem = fmt.Sprintf("your reply has %d tool calls, and exactly one is needed", len(calls))
	case len(calls) > limit:
		parsed.Problem = fmt.Sprintf("your reply has %d tool calls, and at most %d are run", len(calls), limit)
	}
	if parsed.Problem != "" && reply.FinishReason == model.FinishLength {
		parsed.Truncated, parsed.Problem = true, "your reply reached the token limit and was cut off before its tool call was complete"
	}
	return parsed
}

// ResultMessage implements Protocol.
func (toolsProtocol) ResultMessage(a Action, text string) model.Message {
	if a.CallID == "" {
		return model.Message{Role: model.User, Content: text}
	}
	return model.Message{Role: model.Tool, ToolCallID: a.CallID, Content: text}
}

// FormatReply implements Protocol. The calls have no ids; Parse assigns them.
func (toolsProtocol) FormatReply(thought string, commands ...string) model.Message {
	m := model.Message{Role: model.Assistant, Content: thought}
	for _, c := range commands {
		m.ToolCalls = append(m.ToolCalls, NewToolCall(c))
	}
	return m
}

// NewToolCall returns a call of the tool, without an id.
func NewToolCall(command string) model.ToolCall {
	return model.ToolCall{Name: ToolName, Arguments: jsonObject("command", command)}
}

func plural(n int, noun string) string { return fmt.Sprintf("%d %ss", n, noun) }
