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

// trajFile is what mini-swe-agent writes.
type trajFile struct {
	Format     string            `json:"trajectory_format" schema:"required"`
	InstanceID string            `json:"instance_id"`
	Info       trajInfo          `json:"info" schema:"required"`
	Messages   []json.RawMessage `json:"messages" schema:"required"`
}

type trajInfo struct {
	Stats struct {
		Cost  json.RawMessage `json:"instance_cost" schema:"required"` // null where nobody knows it, as mini has it
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

// trajMessage is a message; those of the Responses API have no role.
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
		Arguments json.RawMessage `json:"arguments" schema:"required"` // a string, or the object
	} `json:"function" schema:"required"`
}

type trajPart struct {
	Type string `json:"type" schema:"required"`
	Text string `json:"text"`
}

// trajExtra is what release 2 puts beside a message.
type trajExtra struct {
	Timestamp  float64 `json:"timestamp"`
	Cost       float64 `json:"cost"`
	RawOutput  string  `json:"raw_output"`
	ReturnCode int     `json:"returncode"`
	Interrupt  string  `json:"interrupt_type"`
	Asked      int     `json:"n_actions"`
}

// trajActions are the commands of a reply, of release 2 alone.
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

// traj checks what mini-swe-agent writes, release 1 or 2, or a bare list of
// messages.
func (r *Report) traj(data []byte) {
	r.Format = "mini-swe-agent"
	t := turns{Reader: schema.New("", func(path, reason string) { r.problem(0, path, "%s", reason) })}
	switch {
	case !utf8.Valid(data):
		t.Wrong("not UTF-8")
		return
	case !json.Valid(data):
		t.Wrong("not JSON: %s", schema.SyntaxError(data))
		return
	case strings.HasPrefix(strings.TrimLeft(string(data[:min(len(data), peek)]), " \t\r\n"), "["):
		r.Format = "messages"
		var list []json.RawMessage
		_ = json.Unmarshal(data, &list) // it is a list
		t.all(list)
		return
	}
	var f trajFile
	read := json.RawMessage(strings.TrimSpace(string(data)))
	if name := formatOf(read); name != "" && name != trajectories.FormatV1 && name != trajectories.FormatV2 {
		r.problem(0, "trajectory_format", "%.60q is not known (known are %s and %s)", name, trajectories.FormatV1, trajectories.FormatV2)
		return
	}
	t.Read(read, &f)
	r.Format = cmp.Or(f.Format, r.Format)
	if string(f.Info.Stats.Cost) == "null" {
		r.note(0, "info.model_stats.instance_cost", "nobody knows what it cost")
	} else if kind := trajectories.KindOf(f.Info.Stats.Cost); kind != "a number" && kind != "nothing" {
		r.problem(0, "info.model_stats.instance_cost", "a number is needed, this is %s", kind)
	}
	t.second = f.Format == trajectories.FormatV2
	t.all(f.Messages)
	switch {
	case !t.second || f.Messages == nil:
	case t.exit == nil:
		r.note(0, "messages", "there is no message of the role exit: the attempt has not ended")
	case *t.exit != f.Info.ExitStatus:
		r.problem(0, "info.exit_status", "%.60q, and the exit message says %.60q", f.Info.ExitStatus, *t.exit)
	}
}

// formatOf is the name of a format that a file gives.
func formatOf(data json.RawMessage) string {
	var f struct {
		Format string `json:"trajectory_format"`
	}
	_ = json.Unmarshal(data, &f) // reading the whole says what is wrong
	return f.Format
}

// turns checks the messages of a file.
type turns struct {
	*schema.Reader
	second bool            // of release 2
	calls  map[string]bool // of the newest reply; true where one is answered
	exit   *string         // the status
}

func (t *turns) all(list []json.RawMessage) {
	if len(list) == 0 {
		t.at("messages", "at least one message is needed")
	}
	for i, raw := range list {
		at := fmt.Sprintf("messages.%d", i)
		if t.exit != nil {
			t.at(at, "the message of the role exit is the last one, and this comes after it")
			return
		}
		t.At(at, func() { t.turn(raw) })
	}
}

// at reports a problem with a part of the current value.
func (t *turns) at(key, format string, args ...any) {
	t.At(key, func() { t.Wrong(format, args...) })
}

func (t *turns) turn(raw json.RawMessage) {
	var m trajMessage
	if t.Read(raw, &m); trajectories.KindOf(raw) != "an object" {
		return
	}
	if m.Role == nil && (string(m.Object) == `"response"` || string(m.Type) == `"function_call_output"`) {
		t.extra("", m.Extra)
		return
	}
	role := ""
	if m.Role == nil {
		t.at("role", "required field is missing")
	} else {
		role = *m.Role
	}
	if role != "" && !slices.Contains([]string{"system", "developer", "user", "assistant", "tool", "exit"}, role) {
		t.at("role", "one of system, user, assistant, tool, exit is needed, got %.60q", role)
	}
	t.At("content", func() { t.content(m.Content, role) })
	switch role {
	case "assistant":
		t.toolCalls(m.Calls)
	case "tool":
		t.At("tool_call_id", func() { t.answer(m.CallID) })
	}
	t.extra(role, m.Extra)
}

// answer takes the id of the call that a message answers.
func (t *turns) answer(id string) {
	switch answered, ok := t.calls[id]; {
	case id == "":
		t.Wrong("required field is missing")
	case !ok:
		t.Wrong("%.60q is no call of the assistant's last message", id)
	case answered:
		t.Wrong("%.60q is answered twice", id)
	default:
		t.calls[id] = true
	}
}

// content checks a text or a list of parts; only a reply may have none.
func (t *turns) content(raw json.RawMessage, role string) {
	switch kind := trajectories.KindOf(raw); {
	case kind == "a string", role == "assistant" && (kind == "null" || kind == "nothing"):
	case kind == "a list":
		t.Read(raw, &[]trajPart{})
	case kind == "nothing":
		t.Wrong("required field is missing")
	default:
		t.Wrong("a string or a list of parts is needed, this is %s", kind)
	}
}

func (t *turns) toolCalls(calls []trajCall) {
	t.calls = map[string]bool{}
	for i, c := range calls {
		if kind := trajectories.KindOf(c.Function.Arguments); kind != "a string" && kind != "an object" && kind != "nothing" {
			t.at(fmt.Sprintf("tool_calls.%d.function.arguments", i), "a string is needed, this is %s", kind)
		}
		if _, ok := t.calls[c.ID]; ok {
			t.at(fmt.Sprintf("tool_calls.%d.id", i), "%.60q is there twice", c.ID)
		}
		t.calls[c.ID] = false
	}
}

// extra checks what release 2 puts beside its messages.
func (t *turns) extra(role string, raw json.RawMessage) {
	if role == "exit" {
		t.exit = new(string)
	}
	if trajectories.KindOf(raw) != "an object" {
		return
	}
	t.At("extra", func() {
		if role == "exit" {
			var x trajExit
			t.Read(raw, &x)
			t.exit = &x.Status
			return
		}
		t.Read(raw, &trajExtra{})
		if t.second {
			t.Read(raw, &trajActions{})
		}
	})
}
