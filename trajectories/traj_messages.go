package trajectories

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/minibench/mini/model"
)

// trajConverter converts the entries of an attempt, in order, to messages of a .traj.json
// file. The call or the execution of a message provides its extra fields.
type trajConverter struct {
	*Attempt
	responses bool // include the provider's responses
	// imported is set for imported attempts, whose messages contain all data since the
	// original file may be lost.
	imported bool
	newest   *Entry // the newest reply so far; nil before the first
	answered bool   // the reply has an observation, or a rejection that is not a tool message
}

// trajAction is a command that the agent or the user runs.
type trajAction struct {
	Command string `json:"command"`
	CallID  string `json:"tool_call_id,omitempty"`
}

// replyExtra is the extra data of a reply.
type replyExtra struct {
	Actions   []trajAction    `json:"actions"`
	Response  json.RawMessage `json:"response,omitempty"`
	Model     string          `json:"model,omitempty"` // the model that answered
	Cost      *model.Cost     `json:"cost"`            // null if unknown
	Timestamp *float64        `json:"timestamp,omitempty"`
	// Compactions is the number of compactions before this reply. If it is not 0, the
	// model did not see all messages before the reply.
	Compactions int `json:"compactions,omitempty"`
}

// observationExtra is the extra data of an observation. For imported attempts, the exit
// message contains it too, since no observation reports the output of the last command.
type observationExtra struct {
	RawOutput  string   `json:"raw_output"`
	ReturnCode *int     `json:"returncode"` // null if unknown
	Timestamp  *float64 `json:"timestamp,omitempty"`
	Exception  string   `json:"exception_info"`
	TimedOut   bool     `json:"timed_out,omitempty"` // only for imported attempts; others report it in Exception
	// Tools are the mini-tool requests of the command, as in the journal.
	Tools []ToolCall `json:"tools,omitempty"`
}

// interruptExtra is the extra data of a message that rejects a reply, and of a message
// of the user.
type interruptExtra struct {
	Type          string   `json:"interrupt_type"`
	Actions       *int     `json:"n_actions,omitempty"`
	ModelResponse *string  `json:"model_response,omitempty"`
	Timestamp     *float64 `json:"timestamp,omitempty"` // for a rejection, only in imported attempts
}

// plainExtra is the extra data of all other messages of imported attempts. It contains
// the cause, because the role of a message does not determine it: agents use user
// messages for different purposes.
type plainExtra struct {
	Timestamp *float64 `json:"timestamp,omitempty"`
	Cause     Cause    `json:"cause"`
}

// exitExtra is the extra data of the exit message.
type exitExtra struct {
	Status     string `json:"exit_status"`
	Submission string `json:"submission"`
	*observationExtra
}

// roleExit is the role of the exit message, the last message of a finished attempt.
const roleExit model.Role = "exit"

// execution returns the execution that entry e with the given index reports, nil if there is
// none.
func (t *trajConverter) execution(e *Entry, index int) *Execution {
	executions := t.SetupExecutions
	switch {
	case e.Cause == CauseUserCommand:
		executions = e.Executions
	case t.newest != nil:
		executions = t.newest.Executions
	}
	for i := len(executions) - 1; i >= 0; i-- {
		if x := &executions[i]; x.ObservationEntry == index || t.newest == nil && x.Record < e.Record {
			return x
		}
	}
	return nil
}

// exitMessage returns the message for the outcome.
func (t *trajConverter) exitMessage() *trajMessage {
	o := t.Outcome
	content := cmp.Or(string(o.Submission), o.ExitStatus)
	extra := exitExtra{Status: o.ExitStatus, Submission: string(o.Submission)}
	if t.imported && t.newest != nil {
		for _, x := range t.newest.Executions {
			if x.ObservationEntry < 0 {
				observation := x.observation(x.Start.Add(time.Duration(x.Duration)))
				extra.observationExtra = &observation
			}
		}
	}
	return newTrajMessage(model.Message{Role: roleExit, Content: content}, extra)
}

// extra returns the extra data of the message of entry e with the given index, or nil.
func (t *trajConverter) extra(e *Entry, index int) any {
	m, at := e.Message, e.Time
	switch m.Cause {
	case CauseReply:
		t.newest, t.answered = e, false
		return t.replyExtra(e)
	case CauseObservation, CauseMalformedPatch:
		t.answered = true
		if x := t.execution(e, index); x != nil {
			observation := x.observation(at)
			observation.Tools = x.ToolCalls
			observation.TimedOut = t.imported && x.TimedOut
			return observation
		}
	case CauseFormatError:
		return t.rejection("FormatError", m, at)
	case CauseRejection:
		return t.rejection("UserRejection", m, at)
	case CauseNotRun:
		return t.rejection("NotRun", m, at)
	case CauseInterruption, CauseSteer:
		return interruptExtra{Type: "UserInterruption", Timestamp: timestamp(at)}
	case CauseFollowUp:
		return interruptExtra{Type: "UserNewTask", Timestamp: timestamp(at)}
	case CauseUserCommand:
		return t.userCommand(e, index)
	}
	if t.imported {
		return plainExtra{timestamp(at), m.Cause}
	}
	return nil
}

// commandExtra is the extra data of a user command.
type commandExtra struct {
	Actions []trajAction `json:"actions"`
	*observationExtra
}

func (t *trajConverter) userCommand(e *Entry, index int) commandExtra {
	extra := commandExtra{Actions: []trajAction{}}
	for _, command := range e.Actions {
		extra.Actions = append(extra.Actions, trajAction{Command: command})
	}
	if x := t.execution(e, index); x != nil {
		observation := x.observation(e.Time)
		observation.Tools = x.ToolCalls
		extra.observationExtra = &observation
	}
	return extra
}

func (t *trajConverter) replyExtra(m *Entry) replyExtra {
	e := replyExtra{Actions: []trajAction{}, Timestamp: timestamp(m.Time)}
	for _, c := range t.Compactions {
		if c.Record < m.Record {
			e.Compactions++
		}
	}
	if c := m.Call; c != nil {
		e.Model, e.Cost = c.Model, c.Cost.IfKnown(c.Usage)
		if t.responses {
			e.Response = c.Raw
		}
		if len(e.Response) == 0 {
			e.Response = c.usageResponse()
		}
	}
	ids := ActionCallIDs(m.Message)
	for i, command := range m.Actions {
		e.Actions = append(e.Actions, trajAction{Command: command, CallID: ids[i]})
	}
	return e
}

// ActionCallIDs returns the tool call ID of each action of a reply, empty if there is
// none. If there are as many tool calls as actions, they correspond in order; otherwise
// an action belongs to the next tool call with the same command.
func ActionCallIDs(m Message) []string {
	ids := make([]string, len(m.Actions))
	if len(m.ToolCalls) == len(m.Actions) {
		for i, c := range m.ToolCalls {
			ids[i] = c.ID
		}
		return ids
	}
	next := 0
	for _, c := range m.ToolCalls {
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

// usageResponse returns a provider response that contains only the model and the usage,
// for calls whose response was not recorded. It returns nil if the usage is not known.
func (c *Call) usageResponse() json.RawMessage {
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
	response := object{"usage": usage}
	if c.Model != "" {
		response["model"] = c.Model
	}
	raw, err := encode(response)
	if err != nil {
		return nil
	}
	return raw
}

// rejection returns the extra data of a message that rejects a reply, or one of its tool
// calls. Several messages may reject one reply. Tool messages always quote the reply, other
// messages only if t.answered is not set.
func (t *trajConverter) rejection(kind string, m Message, at time.Time) interruptExtra {
	e := interruptExtra{Type: kind}
	if t.imported {
		e.Timestamp = timestamp(at)
	}
	reply := t.newest
	if reply == nil || t.answered && m.Role != model.Tool {
		return e
	}
	count, content := max(len(reply.Actions), len(reply.ToolCalls)), reply.Content
	e.Actions, e.ModelResponse = &count, &content
	t.answered = m.Role != model.Tool // other tool calls of the reply may be rejected too
	return e
}

// observation returns the extra data of an observation that was recorded at time at.
func (x *Execution) observation(at time.Time) observationExtra {
	e := observationExtra{RawOutput: x.text(), Timestamp: timestamp(at), Exception: x.Exception}
	if !x.ExitCodeUnknown {
		e.ReturnCode = &x.ExitCode
	}
	return e
}

// timestamp returns a Unix time in seconds, or nil for the zero time.
func timestamp(at time.Time) *float64 {
	if at.IsZero() {
		return nil
	}
	s := float64(at.UnixMicro()) / 1e6
	return &s
}

// text returns the output. If the output was truncated, a line between its beginning
// and its end contains the number of missing bytes.
func (x *Execution) text() string {
	if !x.Truncated || x.Head < 0 || x.Head > len(x.Output) {
		return string(x.Output)
	}
	omitted := strconv.FormatInt(x.Bytes-int64(len(x.Output)), 10)
	return string(x.Output[:x.Head]) + "\n[" + omitted + " bytes were not kept]\n" + string(x.Output[x.Head:])
}
