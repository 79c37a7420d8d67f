package trajectories

import (
	"bytes"
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
	ToolCalls []struct {
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	Timestamp *float64   `json:"timestamp"` // release 1
	Extra     *turnExtra `json:"extra"`
}

type turnExtra struct {
	Actions []struct {
		Command *string `json:"command"`
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
	if m.Role == nil || *m.Role == "" {
		return Turn{}, errors.New(": role is missing")
	}
	content, err := text(m.Content)
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
	if t.Role == model.Tool && t.Result == nil {
		t.Result = &Result{Output: content, Complete: true}
	}
	if t.Role == model.Assistant {
		t.Commands, err = m.commands(content, extra, actions)
	}
	return t, err
}

// text takes a string, nothing, or a list of parts, as the chat APIs do.
func text(content json.RawMessage) (string, error) {
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

func (m *trajTurn) commands(content string, extra *turnExtra, pattern *regexp.Regexp) ([]string, error) {
	var commands []string
	for i, call := range m.ToolCalls {
		command, err := argument(call.Function.Arguments)
		if err != nil {
			return nil, fmt.Errorf(".tool_calls[%d].function.arguments: %w", i, err)
		}
		commands = append(commands, command)
	}
	if len(commands) > 0 {
		return commands, nil
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

// argument takes the command out of a tool call's arguments: an object, or, as
// the APIs have it, a string that holds one.
func argument(raw json.RawMessage) (string, error) {
	if bytes.HasPrefix(raw, []byte(`"`)) {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", err
		}
		raw = json.RawMessage(s)
	}
	var args struct {
		Command *string `json:"command"`
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return "", err
	}
	if args.Command == nil {
		return "", errors.New("command is missing")
	}
	return *args.Command, nil
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
