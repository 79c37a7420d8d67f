package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats/schema"
)

// trajFile is a .traj.json of mini-swe-agent.
type trajFile struct {
	Format     string            `json:"trajectory_format" schema:"required"`
	InstanceID string            `json:"instance_id"`
	Info       trajInfo          `json:"info" schema:"required"`
	Messages   []json.RawMessage `json:"messages" schema:"required"`
}

type trajInfo struct {
	Stats struct {
		Cost  json.RawMessage `json:"instance_cost" schema:"required"` // mini writes null if it is unknown
		Calls int             `json:"api_calls" schema:"required"`
	} `json:"model_stats" schema:"required"`
	Config struct {
		Agent           json.RawMessage `json:"agent" schema:"required,object"`
		AgentType       string          `json:"agent_type"`
		Model           json.RawMessage `json:"model" schema:"required,object"`
		ModelType       string          `json:"model_type"`
		Environment     json.RawMessage `json:"environment" schema:"required,object"`
		EnvironmentType string          `json:"environment_type"`
	} `json:"config" schema:"required"`
	MiniVersion string `json:"mini_version" schema:"required"`
	ExitStatus  string `json:"exit_status"`
	Submission  string `json:"submission"`
	Exception   string `json:"exception_str"`
	Traceback   string `json:"traceback"`
}

// trajMessage is a message. Items of the Responses API have no role.
type trajMessage struct {
	Role      *string         `json:"role"`
	Object    json.RawMessage `json:"object"`
	Type      json.RawMessage `json:"type"`
	Content   json.RawMessage `json:"content" schema:"notnull"`
	Reasoning string          `json:"reasoning_content"`
	Calls     []trajCall      `json:"tool_calls"`
	CallID    string          `json:"tool_call_id"`
	Timestamp float64         `json:"timestamp"`
	Extra     json.RawMessage `json:"extra" schema:"object"`
}

type trajCall struct {
	ID       string `json:"id" schema:"required"`
	Function struct {
		Name      string          `json:"name" schema:"required"`
		Arguments json.RawMessage `json:"arguments" schema:"required"` // a string or an object
	} `json:"function" schema:"required"`
}

type trajPart struct {
	Type string `json:"type" schema:"required"`
	Text string `json:"text"`
}

// trajExtra is the extra data of a message in release 2.
type trajExtra struct {
	Timestamp   float64 `json:"timestamp"`
	Cost        float64 `json:"cost"`
	RawOutput   string  `json:"raw_output"`
	ReturnCode  int     `json:"returncode"`
	Interrupt   string  `json:"interrupt_type"`
	ActionCount int     `json:"n_actions"`
}

// trajActions are the commands of a reply in release 2.
type trajActions struct {
	Actions []struct {
		Command string `json:"command" schema:"required"`
		CallID  string `json:"tool_call_id"`
	} `json:"actions"`
}

type trajExit struct {
	Status     string `json:"exit_status"`
	Submission string `json:"submission"`
}

// traj checks a .traj.json of mini-swe-agent, release 1 or 2, or a list of messages.
func (r *Report) traj(data []byte) {
	r.Format = "mini-swe-agent"
	t := messageChecker{Reader: schema.New("", func(path, reason string) { r.problem(0, path, "%s", reason) })}
	switch {
	case !utf8.Valid(data):
		t.Report("not UTF-8")
		return
	case !json.Valid(data):
		t.Report("not JSON: %s", schema.SyntaxError(data))
		return
	case strings.HasPrefix(strings.TrimLeft(string(data[:min(len(data), peek)]), " \t\r\n"), "["):
		r.Format = "messages"
		var list []json.RawMessage
		_ = json.Unmarshal(data, &list) // cannot fail: it is a list
		t.checkAll(list)
		return
	}
	var f trajFile
	read := json.RawMessage(strings.TrimSpace(string(data)))
	if name := formatOf(read); name != "" && name != trajectories.FormatV1 && name != trajectories.FormatV2 {
		r.problem(0, "trajectory_format", "unknown format %.60q, want %s or %s", name, trajectories.FormatV1, trajectories.FormatV2)
		return
	}
	t.Read(read, &f)
	r.Format = cmp.Or(f.Format, r.Format)
	if string(f.Info.Stats.Cost) == "null" {
		r.note(0, "info.model_stats.instance_cost", "the cost is unknown")
	} else if kind := trajectories.JSONKind(f.Info.Stats.Cost); kind != "a number" && kind != "nothing" {
		r.problem(0, "info.model_stats.instance_cost", "a number expected, got %s", kind)
	}
	t.release2 = f.Format == trajectories.FormatV2
	t.checkAll(f.Messages)
	switch {
	case !t.release2 || f.Messages == nil:
	case t.exitStatus == nil:
		r.note(0, "messages", "no message of the role exit: the attempt has not ended")
	case *t.exitStatus != f.Info.ExitStatus:
		r.problem(0, "info.exit_status", "%.60q, but the exit message has %.60q", f.Info.ExitStatus, *t.exitStatus)
	}
}

// formatOf returns the trajectory_format of a file.
func formatOf(data json.RawMessage) string {
	var f struct {
		Format string `json:"trajectory_format"`
	}
	_ = json.Unmarshal(data, &f) // reading the whole file reports errors
	return f.Format
}

// messageChecker checks the messages of a file.
type messageChecker struct {
	*schema.Reader
	release2   bool            // release 2
	calls      map[string]bool // call IDs of the newest reply; true if answered
	exitStatus *string         // the exit status
}

func (t *messageChecker) checkAll(list []json.RawMessage) {
	if len(list) == 0 {
		t.problemAt("messages", "at least one message required")
	}
	for i, raw := range list {
		at := fmt.Sprintf("messages.%d", i)
		if t.exitStatus != nil {
			t.problemAt(at, "message after the message of the role exit, which must be the last")
			return
		}
		t.Within(at, func() { t.check(raw) })
	}
}

// problemAt reports a problem with a part of the current value.
func (t *messageChecker) problemAt(key, format string, args ...any) {
	t.Within(key, func() { t.Report(format, args...) })
}

func (t *messageChecker) check(raw json.RawMessage) {
	var m trajMessage
	if t.Read(raw, &m); trajectories.JSONKind(raw) != "an object" {
		return
	}
	if m.Role == nil && (string(m.Object) == `"response"` || string(m.Type) == `"function_call_output"`) {
		t.extra("", m.Extra)
		return
	}
	role := ""
	if m.Role == nil {
		t.problemAt("role", "required field is missing")
	} else {
		role = *m.Role
	}
	if role != "" && !slices.Contains([]string{"system", "developer", "user", "assistant", "tool", "exit"}, role) {
		t.problemAt("role", "one of system, user, assistant, tool, exit expected, got %.60q", role)
	}
	t.Within("content", func() { t.content(m.Content, role) })
	switch role {
	case "assistant":
		t.toolCalls(m.Calls)
	case "tool":
		t.Within("tool_call_id", func() { t.answer(m.CallID) })
	}
	t.extra(role, m.Extra)
}

// answer marks the call that a message answers.
func (t *messageChecker) answer(id string) {
	switch answered, ok := t.calls[id]; {
	case id == "":
		t.Report("required field is missing")
	case !ok:
		t.Report("%.60q is not a call of the last assistant message", id)
	case answered:
		t.Report("%.60q is answered twice", id)
	default:
		t.calls[id] = true
	}
}

// content checks a string or a list of parts. Only replies may have no content.
func (t *messageChecker) content(raw json.RawMessage, role string) {
	switch kind := trajectories.JSONKind(raw); {
	case kind == "a string", role == "assistant" && (kind == "null" || kind == "nothing"):
	case kind == "a list":
		t.Read(raw, &[]trajPart{})
	case kind == "nothing":
		t.Report("required field is missing")
	default:
		t.Report("a string or a list of parts expected, got %s", kind)
	}
}

func (t *messageChecker) toolCalls(calls []trajCall) {
	t.calls = map[string]bool{}
	for i, c := range calls {
		if kind := trajectories.JSONKind(c.Function.Arguments); kind != "a string" && kind != "an object" && kind != "nothing" {
			t.problemAt(fmt.Sprintf("tool_calls.%d.function.arguments", i), "a string expected, got %s", kind)
		}
		if _, ok := t.calls[c.ID]; ok {
			t.problemAt(fmt.Sprintf("tool_calls.%d.id", i), "%.60q is a duplicate", c.ID)
		}
		t.calls[c.ID] = false
	}
}

// extra checks the extra data of a message in release 2.
func (t *messageChecker) extra(role string, raw json.RawMessage) {
	if role == "exit" {
		t.exitStatus = new(string)
	}
	if trajectories.JSONKind(raw) != "an object" {
		return
	}
	t.Within("extra", func() {
		if role == "exit" {
			var x trajExit
			t.Read(raw, &x)
			t.exitStatus = &x.Status
			return
		}
		t.Read(raw, &trajExtra{})
		if t.release2 {
			t.Read(raw, &trajActions{})
		}
	})
}
