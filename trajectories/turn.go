package trajectories

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/minibench/mini/model"
)

// The shapes of a message in the file. Errors of this file begin with the
// place inside the message (".content: ..."), for the caller to put the
// message's own place before.
type trajTurn struct {
	Role      *string         `json:"role"`
	Content   json.RawMessage `json:"content"`
	Reasoning string          `json:"reasoning_content"`
	ToolCalls []turnCall      `json:"tool_calls"`
	CallID    string          `json:"tool_call_id"`
	responsesTurn
	Timestamp *float64   `json:"timestamp"` // release 1
	Extra     *turnExtra `json:"extra"`
}

type turnCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

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
}

func parseTurn(raw json.RawMessage, actions *regexp.Regexp) (Turn, error) {
	var m trajTurn
	if err := json.Unmarshal(raw, &m); err != nil {
		return Turn{}, fmt.Errorf(": %w", err)
	}
	if err := m.restate(); err != nil {
		return Turn{}, err
	}
	if m.Role == nil || *m.Role == "" {
		return Turn{}, errors.New(": role is missing")
	}
	content, err := TextOf(m.Content)
	if err != nil {
		return Turn{}, fmt.Errorf(".content: %w", err)
	}
	t := Turn{Role: model.Role(*m.Role), Content: content, Reasoning: m.Reasoning, Raw: raw}
	extra := m.Extra
	if extra == nil {
		extra = &turnExtra{}
	}
	t.Interrupt = extra.Interrupt
	t.Time = seconds(extra.Timestamp, m.Timestamp)
	t.Result = extra.result()
	t.CallID = m.CallID
	if t.Role == model.Tool && t.Result == nil && t.Interrupt == "" {
		t.Result = &Result{Output: content, Complete: true}
	}
	if t.Role == model.Assistant {
		t.Calls = m.calls()
		t.Commands, err = m.commands(content, extra, actions)
	}
	return t, err
}

// TextOf takes a string, nothing, or a list of parts, as the chat APIs do.
func TextOf(content json.RawMessage) (string, error) {
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

// calls are the tool calls, their arguments as text also where the file has
// them as an object.
func (m *trajTurn) calls() []model.Call {
	var calls []model.Call
	for _, c := range m.ToolCalls {
		arguments := string(c.Function.Arguments)
		if unquoted := ""; json.Unmarshal(c.Function.Arguments, &unquoted) == nil {
			arguments = unquoted
		}
		calls = append(calls, model.Call{ID: c.ID, Name: c.Function.Name, Arguments: arguments})
	}
	return calls
}

// commands leaves out calls that hold none: a model may have written anything,
// and was told so. Where the actions say what was made of the calls, they count:
// other agents have tools that are no shell.
func (m *trajTurn) commands(content string, extra *turnExtra, pattern *regexp.Regexp) ([]string, error) {
	var commands []string
	if !extra.decided() {
		commands = m.commandsOfCalls()
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
	if found := pattern.FindAllStringSubmatch(content, 2); len(found) == 1 {
		commands = append(commands, strings.TrimSpace(found[0][1]))
	}
	return commands, nil
}

// decided says that the actions are those of the tool calls: they name them, or
// there are none.
func (e *turnExtra) decided() bool {
	for _, a := range e.Actions {
		if a.CallID != "" {
			return true
		}
	}
	return e.Actions != nil && len(e.Actions) == 0
}

func (m *trajTurn) commandsOfCalls() []string {
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

func (e *turnExtra) result() *Result {
	if e.RawOutput == nil && e.ReturnCode == nil {
		return nil
	}
	r := &Result{}
	if e.RawOutput != nil {
		r.Output, r.Complete = *e.RawOutput, true
	}
	if e.ReturnCode != nil {
		r.ExitCode, r.Known = *e.ReturnCode, true
	}
	if e.Exception != nil {
		r.Exception = *e.Exception
	}
	return r
}

// seconds takes the first time stamp there is: seconds since 1970.
func seconds(stamps ...*float64) time.Time {
	for _, s := range stamps {
		if s != nil && math.Abs(*s) < 1e11 {
			return time.UnixMicro(int64(*s * 1e6)).UTC()
		}
	}
	return time.Time{}
}
