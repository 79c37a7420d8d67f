package convert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// sdkEvent has the fields of events since OpenHands' SDK (release 1), which
// name their kind.
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

func (c sdkCall) call() model.Call {
	out := model.Call{ID: c.ID, Name: cmp.Or(c.Name, c.Function.Name)}
	raw := c.Arguments
	if len(raw) == 0 {
		raw = c.Function.Arguments
	}
	if out.Arguments = asString(raw); out.Arguments == "" {
		out.Arguments = string(raw)
	}
	return out
}

// shellTools are the names of the tools that take a bash command.
var shellTools = []string{"terminal", "execute_bash", "bash", "BashTool", "TerminalTool"}

// sdkContent is a text, a part with a text, or a list of such parts.
func sdkContent(raw json.RawMessage) string {
	var part struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &part) == nil && part.Text != "" {
		return part.Text
	}
	text, _ := trajectories.TextOf(raw) // another form has no text
	return text
}

// sdk takes an event that names its kind.
func (r *eventReader) sdk(kind string, raw json.RawMessage) error {
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
		return explain(err)
	}
	at := when(e.At)
	switch kind {
	case "SystemPromptEvent":
		r.b.header.Tools = readTools(e.Tools)
		r.b.message(model.Message{Role: model.System, Content: sdkContent(e.System)}, trajectories.CausePrompt, at)
	case "MessageEvent":
		if e.LLM == nil {
			return fmt.Errorf("llm_message is missing")
		}
		m := model.Message{Role: e.LLM.Role, Content: sdkContent(e.LLM.Content), Reasoning: e.LLM.Reason}
		m.Images = r.b.images(e.LLM.Content)
		if m.Role == model.Assistant {
			r.reply = ""
			r.answer(m, nil, nil, at)
			return nil
		}
		r.user(m, at)
	case "ActionEvent":
		r.sdkAction(e.sdkEvent)
	case "ObservationEvent":
		content := cmp.Or(sdkContent(e.Observation.Content), sdkContent(e.Observation.Output))
		code := cmp.Or(e.Observation.ExitCode, e.Observation.Metadata.ExitCode)
		r.sdkObservation(e.sdkEvent, content, code, e.Observation.TimedOut)
	case "AgentErrorEvent":
		r.sdkRefusal(e.Error, e.CallID, trajectories.CauseFormatError, at)
	case "UserRejectObservation":
		r.sdkRefusal(e.Rejected, e.CallID, trajectories.CauseRejection, at)
	case "ConversationErrorEvent":
		r.status = "error"
	default:
		r.passed(kind)
	}
	return nil
}

// sdkRefusal answers a call that was not carried out. Where the call could not
// be read there is no event of it, and nothing that a tool could answer.
func (r *eventReader) sdkRefusal(text, id string, cause trajectories.Cause, at time.Time) {
	m := model.Message{Role: model.User, Content: text}
	if _, ok := r.calls[id]; ok {
		m.Role, m.CallID = model.Tool, id
	}
	r.b.message(m, cause, at)
	delete(r.calls, id)
}

// sdkAction is a call of a tool; those of one reply name the same response.
func (r *eventReader) sdkAction(e sdkEvent) {
	call := model.Call{ID: e.CallID, Name: e.ToolName, Arguments: "{}"}
	if e.Call != nil {
		call = e.Call.call()
		call.ID = cmp.Or(call.ID, e.CallID)
	}
	if call.Name == "finish" || strings.HasSuffix(call.Name, "FinishTool") {
		r.status = "finish"
	}
	var args struct {
		Command string          `json:"command"`
		Input   json.RawMessage `json:"is_input"`
	}
	_ = json.Unmarshal([]byte(call.Arguments), &args) // a model may have written anything
	start := &started{command: args.Command, callID: call.ID}
	for _, name := range shellTools {
		start.shell = start.shell || call.Name == name && args.Command != ""
	}
	if input := string(args.Input); start.shell && (input == "true" || input == `"true"`) {
		start.shell = false
		r.b.lose("an input to a running process, which is no command of its own", 1)
	}
	r.calls[call.ID] = start
	if e.Response != "" && e.Response == r.reply {
		if r.newest != nil {
			r.newest.Calls, r.grown = append(r.newest.Calls, call), true
		}
		if start.shell {
			r.join(start.command)
		}
		return
	}
	r.reply = e.Response
	var actions []string
	if start.shell {
		actions = []string{start.command}
	}
	m := model.Message{Role: model.Assistant, Content: sdkContent(e.Thought), Reasoning: e.Reason, Calls: []model.Call{call}}
	r.answer(m, actions, nil, when(e.At))
}

func (r *eventReader) sdkObservation(e sdkEvent, content string, code *int, timedOut bool) {
	start := r.calls[e.CallID]
	delete(r.calls, e.CallID)
	if start != nil && start.shell {
		x := trajectories.Execution{Command: start.command, Output: trajectories.Bytes(content), TimedOut: timedOut, CodeUnknown: code == nil}
		if code != nil {
			x.ExitCode = *code
		}
		r.b.execution(x, when(e.At))
	}
	r.b.message(model.Message{Role: model.Tool, Content: content, CallID: e.CallID}, trajectories.CauseObservation, when(e.At))
}
