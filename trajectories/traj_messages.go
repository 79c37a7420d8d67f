package trajectories

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/minibench/mini/model"
)

// translator turns records into messages. A message takes its extras from the
// call or the execution that stands before it, once: what follows another
// message is not its.
type translator struct {
	responses bool // with those of the provider
	imported  bool // another agent's: its file may be all that is left, so all of it is kept
	call      *Call
	reply     *Message // the newest
	shortened int      // compactions so far
	answered  bool     // it was told of something by the user
	execution *Execution
	called    []ToolCall // by the command whose execution has not come yet
	tools     []ToolCall // by that of execution
}

type trajAction struct {
	Command string `json:"command"`
	CallID  string `json:"tool_call_id,omitempty"`
}

type replyExtra struct {
	Actions   []trajAction    `json:"actions"`
	Response  json.RawMessage `json:"response,omitempty"`
	Model     string          `json:"model,omitempty"` // who answered
	Cost      *model.Cost     `json:"cost"`            // null where nobody knows it
	Timestamp *float64        `json:"timestamp,omitempty"`
	// Compactions is how many had shortened what the model was shown for this reply:
	// it did not see all messages before it. The journal says what it saw.
	Compactions int `json:"compactions,omitempty"`
}

// observationExtra is also part of the exit message, where the last command's
// output was told to nobody.
type observationExtra struct {
	RawOutput  string   `json:"raw_output"`
	ReturnCode *int     `json:"returncode"` // null where nobody wrote it down
	Timestamp  *float64 `json:"timestamp,omitempty"`
	Exception  string   `json:"exception_info"`
	TimedOut   bool     `json:"timed_out,omitempty"` // of another agent's alone; mini's exceptions say it
	// Tools are what the command asked for by mini-tool, as the journal has it.
	Tools []ToolCall `json:"tools,omitempty"`
}

type interruptExtra struct {
	Type          string   `json:"interrupt_type"`
	Actions       *int     `json:"n_actions,omitempty"`
	ModelResponse *string  `json:"model_response,omitempty"`
	Timestamp     *float64 `json:"timestamp,omitempty"` // of another agent's messages alone
}

// plainExtra is what else is known of a message of another agent's: agents differ
// in what a user's turn is.
type plainExtra struct {
	Timestamp *float64 `json:"timestamp,omitempty"`
	Cause     Cause    `json:"cause"`
}

type exitExtra struct {
	Status     string `json:"exit_status"`
	Submission string `json:"submission"`
	*observationExtra
}

// roleExit is the role of the last message of a finished attempt.
const roleExit model.Role = "exit"

// translate returns nil for records that are no message by themselves.
func (t *translator) translate(r Record) (*trajMessage, error) {
	switch r.Type {
	case TypeCall:
		t.call = &Call{}
		return nil, json.Unmarshal(r.Data, t.call)
	case TypeCompaction:
		t.shortened++
		return nil, nil
	case TypeExecution:
		t.execution = &Execution{}
		t.tools, t.called = t.called, nil
		return nil, json.Unmarshal(r.Data, t.execution)
	case TypeTool:
		var c ToolCall
		if err := json.Unmarshal(r.Data, &c); err != nil {
			return nil, err
		}
		t.called = append(t.called, c)
		return nil, nil
	case TypeResume:
		t.called = nil // their command was left behind
		return nil, nil
	case TypeMessage:
		var m Message
		if err := json.Unmarshal(r.Data, &m); err != nil {
			return nil, err
		}
		return newTrajMessage(m.Message, t.extra(m, r.Time)), nil
	case TypeOutcome:
		var o Outcome
		if err := json.Unmarshal(r.Data, &o); err != nil {
			return nil, err
		}
		return t.exit(o), nil
	}
	return nil, nil
}

func (t *translator) exit(o Outcome) *trajMessage {
	text := cmp.Or(string(o.Submission), o.ExitStatus)
	extra := exitExtra{Status: o.ExitStatus, Submission: string(o.Submission)}
	if x := t.execution; t.imported && x != nil && t.reply != nil {
		e := x.observation(x.Start.Add(time.Duration(x.Duration)))
		extra.observationExtra = &e
	}
	return newTrajMessage(model.Message{Role: roleExit, Content: text}, extra)
}

func (t *translator) extra(m Message, at time.Time) any {
	switch m.Cause {
	case CauseReply:
		e := t.answer(m, at)
		t.reply, t.answered, t.call, t.execution = &m, false, nil, nil
		return e
	case CauseObservation, CauseMalformedPatch:
		t.answered = true
		if x := t.execution; x != nil {
			t.execution = nil
			e := x.observation(at)
			e.Tools = t.tools
			e.TimedOut = t.imported && x.TimedOut
			return e
		}
	case CauseFormatError:
		return t.interrupt("FormatError", m, at)
	case CauseRejection:
		return t.interrupt("UserRejection", m, at)
	case CauseNotRun:
		return t.interrupt("NotRun", m, at)
	case CauseInterruption, CauseSteer:
		return interruptExtra{Type: "UserInterruption", Timestamp: stamp(at)}
	case CauseFollowUp:
		return interruptExtra{Type: "UserNewTask", Timestamp: stamp(at)}
	case CauseCommand:
		return t.ownCommand(m, at)
	}
	if t.imported {
		return plainExtra{stamp(at), m.Cause}
	}
	return nil
}

// commandExtra is that of a command that a person ran, and of what it did.
type commandExtra struct {
	Actions []trajAction `json:"actions"`
	*observationExtra
}

func (t *translator) ownCommand(m Message, at time.Time) commandExtra {
	e := commandExtra{Actions: []trajAction{}}
	for _, command := range m.Actions {
		e.Actions = append(e.Actions, trajAction{Command: command})
	}
	if x := t.execution; x != nil {
		told := x.observation(at)
		told.Tools = t.tools
		e.observationExtra, t.execution = &told, nil
	}
	return e
}

func (t *translator) answer(m Message, at time.Time) replyExtra {
	e := replyExtra{Actions: []trajAction{}, Timestamp: stamp(at), Compactions: t.shortened}
	if c := t.call; c != nil {
		e.Model, e.Cost = c.Model, c.Cost.Known(c.Usage)
		if t.responses || t.imported {
			e.Response = c.Raw
		}
		if t.imported && len(c.Raw) == 0 {
			e.Response = c.response()
		}
	}
	ids := ActionIDs(m)
	for i, command := range m.Actions {
		e.Actions = append(e.Actions, trajAction{Command: command, CallID: ids[i]})
	}
	return e
}

// ActionIDs are the tool calls that a reply's actions were found in: one each,
// in order, or else those that hold their commands.
func ActionIDs(m Message) []string {
	ids := make([]string, len(m.Actions))
	if len(m.Calls) == len(m.Actions) {
		for i, c := range m.Calls {
			ids[i] = c.ID
		}
		return ids
	}
	next := 0
	for _, c := range m.Calls {
		var args struct {
			Command *string `json:"command"`
		}
		if next == len(ids) {
			break
		}
		if json.Unmarshal([]byte(c.Arguments), &args) == nil && args.Command != nil && *args.Command == m.Actions[next] {
			ids[next] = c.ID
			next++
		}
	}
	return ids
}

// response is as much as is known of the provider's: its usage.
func (c *Call) response() json.RawMessage {
	if c.Usage.Prompt == 0 && c.Usage.Completion == 0 {
		return nil
	}
	type object = map[string]any
	u := c.Usage
	usage := object{"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion}
	if u.CacheRead > 0 {
		usage["prompt_tokens_details"] = object{"cached_tokens": u.CacheRead}
	}
	if u.Reasoning > 0 {
		usage["completion_tokens_details"] = object{"reasoning_tokens": u.Reasoning}
	}
	raw, err := encode(object{"model": c.Model, "usage": usage})
	if err != nil {
		return nil
	}
	return raw
}

// interrupt answers a reply. One that is not in the journal is not quoted: a
// call may be answered several times, but only right after its reply.
func (t *translator) interrupt(kind string, m Message, at time.Time) interruptExtra {
	e := interruptExtra{Type: kind}
	if t.imported {
		e.Timestamp = stamp(at)
	}
	if t.reply == nil || t.answered && m.Role != model.Tool {
		return e
	}
	asked := max(len(t.reply.Actions), len(t.reply.Calls))
	e.Actions, e.ModelResponse = &asked, &t.reply.Content
	t.answered = m.Role != model.Tool // else its other calls are answered as well
	return e
}

func (x *Execution) observation(at time.Time) observationExtra {
	e := observationExtra{RawOutput: x.text(), Timestamp: stamp(at), Exception: x.Exception}
	if !x.CodeUnknown {
		e.ReturnCode = &x.ExitCode
	}
	return e
}

// stamp is a time in seconds since 1970; nil where nobody knows it.
func stamp(at time.Time) *float64 {
	if at.IsZero() {
		return nil
	}
	s := float64(at.UnixMicro()) / 1e6
	return &s
}

// text is the output, with a line where some of it was not kept.
func (x *Execution) text() string {
	if !x.Truncated || x.Head < 0 || x.Head > len(x.Output) {
		return string(x.Output)
	}
	left := strconv.FormatInt(x.Bytes-int64(len(x.Output)), 10)
	return string(x.Output[:x.Head]) + "\n[" + left + " bytes were not kept]\n" + string(x.Output[x.Head:])
}
