package headless

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// initLine is the first line of a stream.
type initLine struct {
	Type           string   `json:"type"`
	Subtype        string   `json:"subtype"`
	Dir            string   `json:"cwd"`
	Session        string   `json:"session_id"`
	Tools          []string `json:"tools"`
	Servers        []string `json:"mcp_servers"`
	Model          string   `json:"model"`
	PermissionMode string   `json:"permissionMode"`
	Environment    string   `json:"environment,omitempty"`
}

// bashTool is the name of the only tool.
const bashTool = "Bash"

func newInitLine(e events.RunStarted, session string, isYolo bool) initLine {
	mode := "default"
	if isYolo {
		mode = "bypassPermissions"
	}
	return initLine{"system", "init", e.Dir, session, []string{bashTool}, []string{}, e.Model, mode, e.Environment}
}

// compactLine says that the conversation was compacted.
type compactLine struct {
	Type     string          `json:"type"`
	Subtype  string          `json:"subtype"`
	Session  string          `json:"session_id"`
	Metadata compactMetadata `json:"compact_metadata"`
}

type compactMetadata struct {
	Trigger string `json:"trigger"`
	Tokens  int64  `json:"pre_tokens"`
}

func newCompactLine(c trajectories.Compaction, session string) compactLine {
	return compactLine{"system", "compact_boundary", session, compactMetadata{"auto", c.TokensBefore}}
}

// messageLine is a message of the model, or one to it.
type messageLine struct {
	Type    string  `json:"type"`
	Message message `json:"message"`
	Parent  *string `json:"parent_tool_use_id"` // null
	Session string  `json:"session_id"`
}

type message struct {
	ID         string      `json:"id,omitempty"`
	Type       string      `json:"type,omitempty"`
	Role       string      `json:"role"`
	Model      string      `json:"model,omitempty"`
	Content    []any       `json:"content"`
	StopReason string      `json:"stop_reason,omitempty"`
	Usage      *tokenUsage `json:"usage,omitempty"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// toolUse is a command of a reply.
type toolUse struct {
	Type  string    `json:"type"`
	ID    string    `json:"id"`
	Name  string    `json:"name"`
	Input bashInput `json:"input"`
}

type bashInput struct {
	Command string `json:"command"`
}

func newToolUse(id, command string) toolUse {
	return toolUse{"tool_use", id, bashTool, bashInput{command}}
}

// toolUses returns the commands of a reply, with the IDs of its calls if it has any.
func toolUses(m trajectories.Message, turn int) []toolUse {
	var uses []toolUse
	for i, command := range m.Actions {
		id := fmt.Sprintf("command_%d_%d", turn, i+1)
		if len(m.ToolCalls) == len(m.Actions) {
			id = cmp.Or(m.ToolCalls[i].ID, id)
		}
		uses = append(uses, newToolUse(id, command))
	}
	return uses
}

func newAssistantLine(m trajectories.Message, call *trajectories.Call, text string, uses []toolUse, turn int, session string) messageLine {
	call = cmp.Or(call, &trajectories.Call{})
	a := message{ID: fmt.Sprintf("message_%d", turn), Type: "message", Role: "assistant", Model: call.Model, StopReason: "end_turn", Content: []any{}}
	usage := newTokenUsage(call.Usage)
	a.Usage = &usage
	if m.Reasoning != "" {
		a.Content = append(a.Content, thinkingBlock{"thinking", m.Reasoning, ""})
	}
	if text != "" {
		a.Content = append(a.Content, textBlock{"text", text})
	}
	for _, use := range uses {
		a.Content, a.StopReason = append(a.Content, use), "tool_use"
	}
	if call.Finish == model.FinishLength {
		a.StopReason = "max_tokens"
	}
	return messageLine{Type: "assistant", Message: a, Session: session}
}

type toolResult struct {
	Type    string `json:"type"`
	ID      string `json:"tool_use_id"`
	Content string `json:"content"`
	IsError bool   `json:"is_error"`
}

// newToolResultLine returns the line of an answer to a command, as the model sees it. It is an error if the
// command was not run.
func newToolResultLine(m trajectories.Message, use toolUse, session string) messageLine {
	result := toolResult{"tool_result", use.ID, m.Content, m.Cause != trajectories.CauseObservation}
	return messageLine{Type: "user", Message: message{Role: "user", Content: []any{result}}, Session: session}
}

func newUserLine(m trajectories.Message, session string) messageLine {
	return messageLine{Type: "user", Message: message{Role: "user", Content: []any{textBlock{"text", m.Content}}}, Session: session}
}

// tokenUsage counts tokens as Anthropic does: InputTokens are those that are not from the cache.
type tokenUsage struct {
	InputTokens         int64 `json:"input_tokens"`
	CacheCreationTokens int64 `json:"cache_creation_input_tokens"`
	CacheReadTokens     int64 `json:"cache_read_input_tokens"`
	OutputTokens        int64 `json:"output_tokens"`
}

func newTokenUsage(u model.Usage) tokenUsage {
	return tokenUsage{max(0, u.Prompt-u.CacheRead-u.CacheWrite), u.CacheWrite, u.CacheRead, u.Completion}
}

// resultLine is the object of the format JSON, and the last line of a stream.
type resultLine struct {
	Type          string     `json:"type"`
	Subtype       string     `json:"subtype"`
	IsError       bool       `json:"is_error"`
	Duration      int64      `json:"duration_ms"`
	APIDuration   int64      `json:"duration_api_ms"`
	Turns         int        `json:"num_turns"`
	Result        *string    `json:"result,omitempty"`
	Session       string     `json:"session_id"`
	Cost          model.Cost `json:"total_cost_usd"`
	CostIsMinimum bool       `json:"cost_is_minimum,omitempty"` // the price of some calls is unknown
	Usage         tokenUsage `json:"usage"`
	Denials       []denial   `json:"permission_denials"`
	Errors        []string   `json:"errors,omitempty"`
	ExitStatus    string     `json:"exit_status"`
	Trajectory    string     `json:"trajectory"`
}

// denial is a command that was not run.
type denial struct {
	Name  string    `json:"tool_name"`
	ID    string    `json:"tool_use_id"`
	Input bashInput `json:"tool_input"`
}

// limitSubtypes are the subtypes of results at a limit.
var limitSubtypes = map[string]string{events.LimitSteps: "error_max_turns", events.LimitCost: "error_max_budget_usd"}

// newResultLine returns the result of a task: its text if the model has ended the task, else an error.
func (f *Frontend) newResultLine(out trajectories.Outcome, before trajectories.Spending, trajectory string) resultLine {
	line := resultLine{
		Type: "result", Subtype: "success", Duration: time.Since(f.started).Milliseconds(), APIDuration: f.apiDuration.Milliseconds(),
		Turns: f.turns, Session: f.Session, Cost: max(0, out.Cost-before.Cost), CostIsMinimum: out.Usage.Unpriced > before.Usage.Unpriced,
		Usage: newTokenUsage(subtract(out.Usage, before.Usage)), Denials: f.denials, ExitStatus: out.ExitStatus, Trajectory: trajectory,
	}
	if out.Class == trajectories.Submitted {
		line.Result = &f.result
		return line
	}
	line.IsError, line.Subtype = true, "error_during_execution"
	if out.Class == trajectories.Limit {
		line.Subtype = cmp.Or(limitSubtypes[f.limit], line.Subtype)
	}
	line.Errors = []string{cmp.Or(strings.TrimPrefix(out.Error, out.ExitStatus+": "), out.ExitStatus)}
	return line
}

// subtract returns the tokens of u without those of v.
func subtract(u, v model.Usage) model.Usage {
	return model.Usage{
		Prompt: u.Prompt - v.Prompt, Completion: u.Completion - v.Completion,
		CacheRead: u.CacheRead - v.CacheRead, CacheWrite: u.CacheWrite - v.CacheWrite,
	}
}

// printLine writes a value as a line of JSON.
func (f *Frontend) printLine(v any) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		f.printErr = cmp.Or(f.printErr, fmt.Errorf("write result: %w", err))
		return
	}
	f.print(line.String())
}
