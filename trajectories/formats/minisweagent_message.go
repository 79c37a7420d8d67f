package formats

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/minibench/mini/model"
)

// trajTurn is the JSON form of a message. Errors of its methods begin with the position in
// the message (".content: ..."), to which the caller adds the position of the message.
type trajTurn struct {
	Role    *string         `json:"role"`
	Content json.RawMessage `json:"content"`
	otherNames
	Reasoning string     `json:"reasoning_content"`
	ToolCalls []turnCall `json:"tool_calls"`
	CallID    string     `json:"tool_call_id"`
	responsesTurn
	Timestamp *float64 `json:"timestamp"` // release 1
	// ProviderData is model.Message.ProviderData; only mini writes it.
	ProviderData json.RawMessage `json:"kept"`
	Extra        turnExtra       `json:"extra"`
}

// otherNames are the names that some datasets give to the role and the content.
type otherNames struct {
	From         lenient[string] `json:"from"`
	Value        lenient[string] `json:"value"`
	Text         lenient[string] `json:"text"`
	SystemPrompt lenient[string] `json:"system_prompt"`
}

// otherRoles are the names that some datasets give to roles.
var otherRoles = map[string]model.Role{"ai": model.Assistant, "gpt": model.Assistant, "human": model.User}

// turnCall is the JSON form of a tool call.
type turnCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// turnExtra is the JSON form of the extra data of a message.
type turnExtra struct {
	Actions []struct {
		Command *string `json:"command"`
		CallID  string  `json:"tool_call_id"`
	} `json:"actions"`
	Timestamp  *float64 `json:"timestamp"`
	RawOutput  *string  `json:"raw_output"`
	ReturnCode *int     `json:"returncode"`
	Exception  *string  `json:"exception_info"`
	Interrupt  string   `json:"interrupt_type"`

	TimedOut      lenient[bool]    `json:"timed_out"` // only in files that mini wrote
	Cause         lenient[string]  `json:"cause"`     // only in files that mini wrote
	ExceptionType lenient[string]  `json:"exception_type"`
	Response      json.RawMessage  `json:"response"`
	Model         lenient[string]  `json:"model"`
	Cost          lenient[float64] `json:"cost"`
	ModelResponse json.RawMessage  `json:"model_response"`
	Status        lenient[string]  `json:"exit_status"`
	Submission    lenient[string]  `json:"submission"`
}

// hasResult reports whether the extra data has the result of a command.
func (e *turnExtra) hasResult() bool { return e.RawOutput != nil || e.ReturnCode != nil }

// lenient is an optional value. Decoding ignores a value of another type.
type lenient[T any] struct {
	value T
	set   bool // the file has a value of type T
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *lenient[T]) UnmarshalJSON(data []byte) error {
	l.set = string(data) != "null" && json.Unmarshal(data, &l.value) == nil
	return nil
}

// parseTurn decodes a message. actions finds the commands in the text of a reply.
func parseTurn(raw json.RawMessage, actions *regexp.Regexp) (turn, error) {
	var m trajTurn
	if err := json.Unmarshal(raw, &m); err != nil {
		return turn{}, fmt.Errorf(": %w", err)
	}
	t := turn{content: m.Content, provider: m.ProviderData, response: m.Object == "response", extra: m.Extra, Raw: raw}
	if err := m.convertResponses(); err != nil {
		return turn{}, err
	}
	if m.Role == nil && m.From.set {
		m.Role = &m.From.value
	}
	if m.Role == nil || *m.Role == "" {
		return turn{}, errors.New(": role is missing")
	}
	content, err := contentText(m.Content)
	if err != nil {
		return turn{}, fmt.Errorf(".content: %w", err)
	}
	content = cmp.Or(content, m.Text.value, m.Value.value, m.SystemPrompt.value)
	t.Role, t.Content, t.Reasoning = cmp.Or(otherRoles[*m.Role], model.Role(*m.Role)), content, m.Reasoning
	extra := &t.extra
	t.Interrupt = extra.Interrupt
	t.Time = firstTime(extra.Timestamp, m.Timestamp)
	t.Result = extra.result()
	t.CallID = m.CallID
	if t.Role == model.Tool && t.Result == nil && t.Interrupt == "" {
		t.Result = &result{Output: content, Complete: true}
	}
	if t.Role == model.Assistant {
		t.Calls = m.calls()
		t.Commands, err = m.commands(content, extra, actions)
	}
	return t, err
}

// contentText returns the text of a content, which is a string, null or a list of parts, as
// in chat completions.
func contentText(content json.RawMessage) (string, error) {
	if len(content) == 0 {
		return "", nil
	}
	if content[0] != '[' {
		var s string
		err := json.Unmarshal(content, &s)
		return s, err
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(content, &parts); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String(), nil
}

// calls returns the tool calls. Their arguments in the file are a string or an object.
func (m *trajTurn) calls() []model.ToolCall {
	var calls []model.ToolCall
	for _, c := range m.ToolCalls {
		arguments := string(c.Function.Arguments)
		if unquoted := ""; json.Unmarshal(c.Function.Arguments, &unquoted) == nil {
			arguments = unquoted
		}
		calls = append(calls, model.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: arguments})
	}
	return calls
}

// commands returns the commands of a reply: those in its tool calls; if it has no tool
// calls, its recorded actions; if these are missing, the only command in its text. Recorded
// actions take precedence over tool calls if the agent parsed the actions from the calls,
// since a call with a command may be of a tool that is not a shell.
func (m *trajTurn) commands(content string, extra *turnExtra, pattern *regexp.Regexp) ([]string, error) {
	var commands []string
	if !extra.replacesCalls() {
		commands = m.callCommands()
		if len(m.ToolCalls) > 0 {
			return commands, nil
		}
	}
	for i, a := range extra.Actions {
		if a.Command == nil {
			return nil, fmt.Errorf(".extra.actions[%d]: command is missing", i)
		}
		commands = append(commands, *a.Command)
	}
	if len(commands) > 0 || extra.Actions != nil {
		return commands, nil
	}
	if matches := pattern.FindAllStringSubmatch(content, 2); len(matches) == 1 {
		commands = append(commands, strings.TrimSpace(matches[0][1]))
	}
	return commands, nil
}

// replacesCalls reports whether the agent parsed the recorded actions from tool calls: an
// action has a call ID, or the list is empty.
func (e *turnExtra) replacesCalls() bool {
	for _, a := range e.Actions {
		if a.CallID != "" {
			return true
		}
	}
	return e.Actions != nil && len(e.Actions) == 0
}

// callCommands returns the commands in the arguments of tool calls.
func (m *trajTurn) callCommands() []string {
	var commands []string
	for _, call := range m.calls() {
		var args struct {
			Command *string `json:"command"`
		}
		if json.Unmarshal([]byte(call.Arguments), &args) == nil && args.Command != nil {
			commands = append(commands, *args.Command)
		}
	}
	return commands
}

// result returns the result of a command, or nil.
func (e *turnExtra) result() *result {
	if !e.hasResult() {
		return nil
	}
	r := &result{}
	if e.RawOutput != nil {
		r.Output, r.Complete = *e.RawOutput, true
	}
	if e.ReturnCode != nil {
		r.ExitCode, r.HasExitCode = *e.ReturnCode, true
	}
	if e.Exception != nil {
		r.Exception = *e.Exception
	}
	return r
}

// firstTime returns the time of the first Unix timestamp, in seconds, that is set and
// plausible, or the zero time.
func firstTime(stamps ...*float64) time.Time {
	for _, s := range stamps {
		if s != nil && math.Abs(*s) < 1e11 {
			return time.UnixMicro(int64(*s * 1e6)).UTC()
		}
	}
	return time.Time{}
}
