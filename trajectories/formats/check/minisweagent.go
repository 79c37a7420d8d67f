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

// trajFile is the schema of a .traj.json file of mini-swe-agent. For json.RawMessage, the
// option required accepts null, see package schema.
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

// trajMessage is the schema of a message.
type trajMessage struct {
	Role      *string         `json:"role"` // nil for messages from the Responses API
	Object    json.RawMessage `json:"object"`
	Type      json.RawMessage `json:"type"`
	Content   json.RawMessage `json:"content" schema:"notnull"` // the option keeps null, for messageChecker.content
	Reasoning string          `json:"reasoning_content"`
	Calls     []trajCall      `json:"tool_calls"`
	CallID    string          `json:"tool_call_id"`
	Timestamp float64         `json:"timestamp"`
	Extra     json.RawMessage `json:"extra" schema:"object"`
}

// trajCall is the schema of a tool call.
type trajCall struct {
	ID       string `json:"id" schema:"required"`
	Function struct {
		Name      string          `json:"name" schema:"required"`
		Arguments json.RawMessage `json:"arguments" schema:"required"` // a string or an object
	} `json:"function" schema:"required"`
}

// trajPart is the schema of an element of a content.
type trajPart struct {
	Type string `json:"type" schema:"required"`
	Text string `json:"text"`
}

// trajExtra is the schema of the extra data of a message. Only release 2 writes it, but it
// is checked in all files.
type trajExtra struct {
	Timestamp   float64 `json:"timestamp"`
	Cost        float64 `json:"cost"`
	RawOutput   string  `json:"raw_output"`
	ReturnCode  int     `json:"returncode"`
	Interrupt   string  `json:"interrupt_type"`
	ActionCount int     `json:"n_actions"`
}

// trajActions is the schema of the actions in the extra data. It is checked only in files
// of release 2.
type trajActions struct {
	Actions []struct {
		Command string `json:"command" schema:"required"`
		CallID  string `json:"tool_call_id"`
	} `json:"actions"`
}

// trajExit is the schema of the extra data of an exit message.
type trajExit struct {
	Status     string `json:"exit_status"`
	Submission string `json:"submission"`
}

// traj checks a .traj.json file of mini-swe-agent 1 or 2, or a list of messages.
func (r *Report) traj(data []byte) {
	r.Format = "mini-swe-agent"
	c := messageChecker{Reader: schema.New("", func(path, reason string) { r.problem(0, path, "%s", reason) })}
	switch {
	case !utf8.Valid(data):
		c.Report("not UTF-8")
		return
	case !json.Valid(data):
		c.Report("not JSON: %s", schema.SyntaxError(data))
		return
	case strings.HasPrefix(strings.TrimLeft(string(data[:min(len(data), headSize)]), " \t\r\n"), "["):
		r.Format = "messages"
		var list []json.RawMessage
		_ = json.Unmarshal(data, &list) // cannot fail for a valid JSON list
		c.checkAll(list)
		return
	}
	var f trajFile
	document := json.RawMessage(strings.TrimSpace(string(data)))
	if name := declaredFormat(document); name != "" && name != trajectories.FormatV1 && name != trajectories.FormatV2 {
		r.problem(0, "trajectory_format", "unknown format %.60q, want %s or %s", name, trajectories.FormatV1, trajectories.FormatV2)
		return
	}
	c.Read(document, &f)
	r.Format = cmp.Or(f.Format, r.Format)
	if string(f.Info.Stats.Cost) == "null" {
		r.note(0, "info.model_stats.instance_cost", "the cost is unknown")
	} else if kind := trajectories.JSONKind(f.Info.Stats.Cost); kind != "a number" && kind != "nothing" {
		r.problem(0, "info.model_stats.instance_cost", "a number expected, got %s", kind)
	}
	c.release2 = f.Format == trajectories.FormatV2
	c.checkAll(f.Messages)
	switch {
	case !c.release2 || f.Messages == nil:
	case c.exitStatus == nil:
		r.note(0, "messages", "no message of the role exit: the attempt has not ended")
	case *c.exitStatus != f.Info.ExitStatus:
		r.problem(0, "info.exit_status", "%.60q, but the exit message has %.60q", f.Info.ExitStatus, *c.exitStatus)
	}
}

// declaredFormat returns the trajectory_format of a file, or "".
func declaredFormat(data json.RawMessage) string {
	var f struct {
		Format string `json:"trajectory_format"`
	}
	_ = json.Unmarshal(data, &f) // the caller reports errors when it reads all fields
	return f.Format
}

// messageChecker checks the messages of a file.
type messageChecker struct {
	*schema.Reader
	release2   bool            // the file is of release 2
	calls      map[string]bool // by tool call ID of the newest reply: whether it was answered
	exitStatus *string         // from the exit message; nil if there was none
}

// checkAll checks all messages of a file.
func (t *messageChecker) checkAll(list []json.RawMessage) {
	if len(list) == 0 {
		t.problemAt("messages", "at least one message required")
	}
	for i, raw := range list {
		path := fmt.Sprintf("messages.%d", i)
		if t.exitStatus != nil {
			t.problemAt(path, "message after the message of the role exit, which must be the last")
			return
		}
		t.Within(path, func() { t.check(raw) })
	}
}

// problemAt reports a problem at key within the current value.
func (t *messageChecker) problemAt(key, format string, args ...any) {
	t.Within(key, func() { t.Report(format, args...) })
}

// check checks a message.
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

// answer checks that a tool message answers an open call of the newest reply, and marks the
// call as answered.
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

// content checks a content, which is a string or a list of parts. Only in replies it may be
// null or missing.
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

// toolCalls checks the tool calls of a reply and stores their IDs.
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

// extra checks the extra data of a message, and stores the exit status.
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
