package formats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// sdkEvent has the fields of all kinds of events of the OpenHands SDK.
type sdkEvent struct {
	At       string          `json:"timestamp"`
	System   json.RawMessage `json:"system_prompt"`
	Tools    json.RawMessage `json:"tools"`
	LLM      *sdkMessage     `json:"llm_message"`
	Thought  json.RawMessage `json:"thought"`
	Reason   string          `json:"reasoning_content"`
	Call     *sdkCall        `json:"tool_call"`
	CallID   string          `json:"tool_call_id"`
	ToolName string          `json:"tool_name"`
	Response string          `json:"llm_response_id"`
	Error    string          `json:"error"`
	Rejected string          `json:"rejection_reason"`
}

type sdkMessage struct {
	Role    model.Role      `json:"role"`
	Content json.RawMessage `json:"content"`
	Reason  string          `json:"reasoning_content"`
}

type sdkCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Function  struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// toolCall converts c. The name and the arguments are in c or in c.Function.
func (c sdkCall) toolCall() model.ToolCall {
	call := model.ToolCall{ID: c.ID, Name: cmp.Or(c.Name, c.Function.Name)}
	raw := c.Arguments
	if len(raw) == 0 {
		raw = c.Function.Arguments
	}
	if call.Arguments = asString(raw); call.Arguments == "" {
		call.Arguments = string(raw)
	}
	return call
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
	var e struct {
		sdkEvent
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
	if err := json.Unmarshal(raw, &e); err != nil {
		return explainJSON(err)
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
			r.addReply(m, nil, nil, at)
			return nil
		}
		r.addUser(m, at)
	case "ActionEvent":
		r.addSDKAction(e.sdkEvent)
	case "ObservationEvent":
		content := cmp.Or(sdkContent(e.Observation.Content), sdkContent(e.Observation.Output))
		code := cmp.Or(e.Observation.ExitCode, e.Observation.Metadata.ExitCode)
		r.addSDKObservation(e.sdkEvent, content, code, e.Observation.TimedOut)
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
func (r *eventReader) addSDKAction(e sdkEvent) {
	call := model.ToolCall{ID: e.CallID, Name: e.ToolName, Arguments: "{}"}
	if e.Call != nil {
		call = e.Call.toolCall()
		call.ID = cmp.Or(call.ID, e.CallID)
	}
	if call.Name == "finish" || strings.HasSuffix(call.Name, "FinishTool") {
		r.status = "finish"
	}
	var args struct {
		Command string          `json:"command"`
		Input   json.RawMessage `json:"is_input"`
	}
	_ = json.Unmarshal([]byte(call.Arguments), &args) // the model may have written invalid JSON
	pending := &pendingAction{command: args.Command, callID: call.ID}
	for _, name := range shellTools {
		pending.isShell = pending.isShell || call.Name == name && args.Command != ""
	}
	if input := string(args.Input); pending.isShell && (input == "true" || input == `"true"`) {
		pending.isShell = false
		r.b.addLoss("an input to a running process", 1)
	}
	r.calls[call.ID] = pending
	if e.Response != "" && e.Response == r.responseID {
		if r.newestReply != nil {
			r.newestReply.ToolCalls, r.changed = append(r.newestReply.ToolCalls, call), true
		}
		if pending.isShell {
			r.appendAction(pending.command)
		}
		return
	}
	r.responseID = e.Response
	var actions []string
	if pending.isShell {
		actions = []string{pending.command}
	}
	m := model.Message{Role: model.Assistant, Content: sdkContent(e.Thought), Reasoning: e.Reason, ToolCalls: []model.ToolCall{call}}
	r.addReply(m, actions, nil, parseTime(e.At))
}

// addSDKObservation adds the result of a tool call. code is the exit code, or nil.
func (r *eventReader) addSDKObservation(e sdkEvent, content string, code *int, timedOut bool) {
	pending := r.calls[e.CallID]
	delete(r.calls, e.CallID)
	if pending != nil && pending.isShell {
		x := trajectories.Execution{Command: pending.command, Output: trajectories.Bytes(content), TimedOut: timedOut, ExitCodeUnknown: code == nil}
		if code != nil {
			x.ExitCode = *code
		}
		r.b.addExecution(x, parseTime(e.At))
	}
	r.b.addMessage(model.Message{Role: model.Tool, Content: content, ToolCallID: e.CallID}, trajectories.CauseObservation, parseTime(e.At))
}
