package formats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// sdkEvent has the fields of all kinds of events of the OpenHands SDK.
type sdkEvent struct {
	At          string          `json:"timestamp"`
	System      json.RawMessage `json:"system_prompt"`
	Tools       json.RawMessage `json:"tools"`
	LLM         *sdkMessage     `json:"llm_message"`
	Thought     json.RawMessage `json:"thought"`
	Reason      string          `json:"reasoning_content"`
	Call        *fileCall       `json:"tool_call"`
	CallID      string          `json:"tool_call_id"`
	ToolName    string          `json:"tool_name"`
	Response    string          `json:"llm_response_id"`
	Error       string          `json:"error"`
	Rejected    string          `json:"rejection_reason"`
	Observation struct {
		Content  json.RawMessage `json:"content"`
		Output   json.RawMessage `json:"output"`
		ExitCode *int            `json:"exit_code"`
		TimedOut bool            `json:"timeout"`
		Metadata struct {
			ExitCode *int `json:"exit_code"`
		} `json:"metadata"`
	} `json:"observation"`
}

type sdkMessage struct {
	Role    model.Role      `json:"role"`
	Content json.RawMessage `json:"content"`
	Reason  string          `json:"reasoning_content"`
}

// shellTools are the tools that run a bash command.
var shellTools = []string{"terminal", "execute_bash", "bash", "BashTool", "TerminalTool"}

// sdkContent returns the text of a content, which is a string, a part, or a list of parts.
func sdkContent(raw json.RawMessage) string {
	var part struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &part) == nil && part.Text != "" {
		return part.Text
	}
	text, _ := contentText(raw) // other forms have no text
	return text
}

// addSDKEvent adds an event of the SDK.
func (r *eventReader) addSDKEvent(kind string, raw json.RawMessage) error {
	var e sdkEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	at := parseTime(e.At)
	switch kind {
	case "SystemPromptEvent":
		r.b.header.Tools = readTools(e.Tools)
		r.b.addMessage(model.Message{Role: model.System, Content: sdkContent(e.System)}, trajectories.CausePrompt, at)
	case "MessageEvent":
		if e.LLM == nil {
			return fmt.Errorf("llm_message is missing")
		}
		m := model.Message{Role: e.LLM.Role, Content: sdkContent(e.LLM.Content), Reasoning: e.LLM.Reason}
		m.Images = r.b.images(e.LLM.Content)
		if m.Role == model.Assistant {
			r.responseID = ""
			r.reply = r.b.addReply(m, nil, nil, at)
			return nil
		}
		r.addUser(m, at)
	case "ActionEvent":
		r.addSDKAction(e, at)
	case "ObservationEvent":
		o, pending := e.Observation, r.calls[e.CallID]
		delete(r.calls, e.CallID)
		m := model.Message{Role: model.Tool, Content: cmp.Or(sdkContent(o.Content), sdkContent(o.Output)), ToolCallID: e.CallID}
		r.observe(pending, m, at, o.TimedOut, o.Metadata.ExitCode, o.ExitCode)
	case "AgentErrorEvent":
		r.addSDKRejection(e.Error, e.CallID, trajectories.CauseFormatError, at)
	case "UserRejectObservation":
		r.addSDKRejection(e.Rejected, e.CallID, trajectories.CauseRejection, at)
	case "ConversationErrorEvent":
		r.status = "error"
	default:
		r.skip(kind)
	}
	return nil
}

// addSDKRejection adds the message that rejects a tool call. If the SDK could not parse the
// call, there is no event for the call, and the message is a user message.
func (r *eventReader) addSDKRejection(text, id string, cause trajectories.Cause, at time.Time) {
	m := model.Message{Role: model.User, Content: text}
	if _, ok := r.calls[id]; ok {
		m.Role, m.ToolCallID = model.Tool, id
	}
	r.b.addMessage(m, cause, at)
	delete(r.calls, id)
}

// addSDKAction adds a tool call, and its reply unless an earlier call added it. Calls of
// the same reply have the same response ID.
func (r *eventReader) addSDKAction(e sdkEvent, at time.Time) {
	call := model.ToolCall{ID: e.CallID, Name: e.ToolName, Arguments: "{}"}
	if e.Call != nil {
		call = e.Call.toolCall()
		call.ID = cmp.Or(call.ID, e.CallID)
	}
	if call.Name == "finish" || strings.HasSuffix(call.Name, "FinishTool") {
		r.status = "finish"
	}
	pending := &pendingAction{callID: call.ID}
	if command, isInput := shellCommand(call); slices.Contains(shellTools, call.Name) && command != nil {
		r.setCommand(pending, *command, isInput)
	}
	r.calls[call.ID] = pending
	if r.continues(e.Response) {
		r.reply.ToolCalls = append(r.reply.ToolCalls, call)
	} else {
		m := model.Message{Role: model.Assistant, Content: sdkContent(e.Thought), Reasoning: e.Reason, ToolCalls: []model.ToolCall{call}}
		r.reply = r.b.addReply(m, nil, nil, at)
	}
	r.act(pending)
}
