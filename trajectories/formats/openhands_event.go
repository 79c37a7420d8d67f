package formats

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// event is an event of OpenHands before its SDK. Actions of the agent cause
// observations.
type event struct {
	ID          json.RawMessage `json:"id"`
	Time        string          `json:"timestamp"`
	Source      string          `json:"source"`
	Cause       json.RawMessage `json:"cause"`
	Action      string          `json:"action"`
	Observation string          `json:"observation"`
	Content     json.RawMessage `json:"content"`
	Args        eventArgs       `json:"args"`
	Extras      eventExtras     `json:"extras"`
	Tool        *eventTool      `json:"tool_call_metadata"`
	Metrics     *eventMetrics   `json:"llm_metrics"`
}

type eventArgs struct {
	Command string          `json:"command"`
	Input   json.RawMessage `json:"is_input"`
	Content string          `json:"content"`
	Thought string          `json:"thought"`
	Final   string          `json:"final_thought"`
	Tools   json.RawMessage `json:"tools"`
	Version string          `json:"openhands_version"`
	Images  []string        `json:"image_urls"`
}

type eventExtras struct {
	ExitCode *int   `json:"exit_code"`
	State    string `json:"agent_state"`
	Metadata struct {
		ExitCode *int `json:"exit_code"`
	} `json:"metadata"`
}

// eventTool is the tool call of an action, with the provider's response that contains
// it.
type eventTool struct {
	ID       string          `json:"tool_call_id"`
	Name     string          `json:"function_name"`
	Response json.RawMessage `json:"model_response"`
}

// eventMetrics are the totals up to an event.
type eventMetrics struct {
	Cost  float64 `json:"accumulated_cost"`
	Usage *struct {
		Prompt     float64 `json:"prompt_tokens"`
		Completion float64 `json:"completion_tokens"`
		CacheRead  float64 `json:"cache_read_tokens"`
		CacheWrite float64 `json:"cache_write_tokens"`
	} `json:"accumulated_token_usage"`
}

// eventReader converts events to records.
type eventReader struct {
	b      *builder
	status string

	agentStarted bool                      // there was an event of the agent
	responseID   string                    // ID of the response of the newest reply; "" if unknown
	actions      map[string]*pendingAction // by event ID
	calls        map[string]*pendingAction // by tool call ID
	totals       eventMetrics              // totals at the newest call

	newestReply *trajectories.Message // the newest reply
	newestIndex int                   // its index in the body
	changed     bool                  // it has changed since it was encoded
}

// pendingAction is an action without an observation so far.
type pendingAction struct {
	command, callID string
	isShell         bool
}

func newEventReader(b *builder) *eventReader {
	b.imported.Agent = "OpenHands"
	return &eventReader{b: b, actions: map[string]*pendingAction{}, calls: map[string]*pendingAction{}}
}

func (r *eventReader) read(list []json.RawMessage) error {
	for i := 0; i < len(list); i++ {
		if bytes.HasPrefix(bytes.TrimSpace(list[i]), []byte("[")) { // an action and its observation
			var pair []json.RawMessage
			if err := json.Unmarshal(list[i], &pair); err != nil {
				return fmt.Errorf("[%d]: %w", i, explain(err))
			}
			for _, e := range pair {
				if err := r.addEvent(e); err != nil {
					return fmt.Errorf("[%d]: %w", i, err)
				}
			}
			continue
		}
		if err := r.addEvent(list[i]); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

func (r *eventReader) addEvent(raw json.RawMessage) error {
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return explain(err)
	}
	if kind.Kind != "" {
		return r.sdk(kind.Kind, raw)
	}
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		return explain(err)
	}
	switch {
	case e.Observation != "":
		return r.observation(e)
	case e.Source == "agent" && e.Action != "" && e.Action != "system":
		r.action(e)
	case e.Action == "system":
		r.b.imported.AgentVersion = cmp.Or(e.Args.Version, r.b.imported.AgentVersion)
		r.b.header.Tools = readTools(e.Args.Tools)
		r.b.message(model.Message{Role: model.System, Content: e.Args.Content}, trajectories.CausePrompt, parseTime(e.Time))
	case e.Action == "message":
		r.addUser(model.Message{Role: model.User, Content: e.Args.Content}, parseTime(e.Time))
		r.b.addLoss("an image that a message refers to", len(e.Args.Images))
	default:
		r.skip(e.name())
	}
	return nil
}

// skip notes an event that is not part of the conversation.
func (r *eventReader) skip(name string) {
	if len(name) > 40 {
		name = name[:40] + "..."
	}
	r.b.addLoss("an event "+printable(name)+", which is not part of the conversation", 1)
}

func (e event) name() string {
	return cmp.Or(e.Observation, e.Action, "of unknown kind")
}

func (r *eventReader) addUser(m model.Message, at time.Time) {
	cause := trajectories.CausePrompt
	if r.agentStarted {
		cause = ""
	}
	r.b.message(m, cause, at)
}

// action adds an action of the agent. A reply may have several.
func (r *eventReader) action(e event) {
	at := parseTime(e.Time)
	switch e.Action {
	case "recall", "change_agent_state", "condensation", "condensation_request", "start", "null":
		r.skip(e.name())
		return
	case "finish", "reject":
		r.status = e.Action
	}
	pending := &pendingAction{command: e.Args.Command, isShell: e.Action == "run" && e.Args.Command != ""}
	if input := string(e.Args.Input); pending.isShell && (input == "true" || input == `"true"`) {
		pending.isShell = false
		r.b.addLoss("an input to a running process", 1)
	}
	if e.Tool != nil {
		pending.callID = e.Tool.ID
		r.calls[pending.callID] = pending
	}
	if id := string(e.ID); id != "" {
		r.actions[id] = pending
	}
	m, a, same := r.message(e)
	if same { // the reply was added before
		if pending.isShell {
			r.appendAction(pending.command)
		}
		return
	}
	var actions []string
	if pending.isShell {
		actions = []string{pending.command}
	}
	r.addReply(m, actions, r.call(e, a), at)
}

// message returns the reply that contains an action. same reports that it is the
// newest reply.
func (r *eventReader) message(e event) (m model.Message, a response, same bool) {
	if e.Tool != nil {
		id := struct {
			ID string `json:"id"`
		}{}
		_ = json.Unmarshal(e.Tool.Response, &id) // a missing ID is equivalent to ""
		if id.ID != "" && id.ID == r.responseID {
			return m, a, true
		}
		r.responseID = id.ID
		a, _ = readResponse(e.Tool.Response)
		if len(a.Choices) > 0 && messageOf(e.Tool.Response, a, &m) {
			m.Role = model.Assistant
			return m, a, false
		}
	}
	r.responseID = ""
	m = model.Message{Role: model.Assistant, Content: cmp.Or(e.Args.Thought, e.Args.Content, e.Args.Final)}
	if e.Tool != nil {
		m.ToolCalls = []model.ToolCall{{ID: e.Tool.ID, Name: e.Tool.Name, Arguments: "{}"}}
		r.b.addLoss("the arguments of a tool call are not in the file", 1)
	}
	if e.Action != "message" {
		r.b.addLoss("the text of a reply is not in the file, only its thought and action", 1)
	}
	return m, a, false
}

// addReply adds a reply. Its later actions are added by flush.
func (r *eventReader) addReply(m model.Message, actions []string, c *trajectories.Call, at time.Time) {
	r.flush()
	r.agentStarted = true
	r.b.reply(m, actions, c, at)
	r.newestReply = &trajectories.Message{Message: m, Cause: trajectories.CauseReply, Actions: actions}
	r.newestIndex, r.changed = len(r.b.body)-1, false
}

// flush encodes the newest reply again if it has changed.
func (r *eventReader) flush() {
	if r.newestReply == nil || !r.changed {
		return
	}
	raw, err := trajectories.EncodeJSON(*r.newestReply)
	if err != nil {
		r.b.err = err
		return
	}
	r.b.body[r.newestIndex].Data = raw
}

// appendAction adds an action to the newest reply.
func (r *eventReader) appendAction(command string) {
	if r.newestReply != nil {
		r.newestReply.Actions, r.changed = append(r.newestReply.Actions, command), true
	}
}

// call returns the call of a reply. Its cost and usage are the increase of the
// totals.
func (r *eventReader) call(e event, a response) *trajectories.Call {
	if e.Tool == nil && e.Metrics == nil {
		return nil
	}
	c := &trajectories.Call{Usage: a.usage(), Model: a.Model}
	if e.Tool != nil {
		c.Raw = e.Tool.Response
	}
	if len(a.Choices) > 0 {
		c.Finish = a.Choices[0].Finish
	}
	m := e.Metrics
	if m == nil {
		c.Usage.Unpriced = 1
		return c
	}
	c.Cost = model.Cost(max(0, m.Cost-r.totals.Cost))
	if u, previous := m.Usage, r.totals.Usage; u != nil && a.Usage == nil {
		c.Usage = model.Usage{Prompt: tokenCount(u.Prompt), Completion: tokenCount(u.Completion), CacheRead: tokenCount(u.CacheRead), CacheWrite: tokenCount(u.CacheWrite)}
		if previous != nil {
			c.Usage = model.Usage{
				Prompt: tokenCount(u.Prompt - previous.Prompt), Completion: tokenCount(u.Completion - previous.Completion),
				CacheRead: tokenCount(u.CacheRead - previous.CacheRead), CacheWrite: tokenCount(u.CacheWrite - previous.CacheWrite),
			}
		}
	}
	r.totals = *m
	return c
}

// observation adds an observation, or a message of the environment.
func (r *eventReader) observation(e event) error {
	content, err := textOf(e.Content)
	if err != nil {
		return fmt.Errorf("content: %w", explain(err))
	}
	switch e.Observation {
	case "agent_state_changed":
		r.setState(e.Extras.State)
		return nil
	case "recall", "null", "condense", "loop_detection":
		r.skip(e.name())
		return nil
	}
	if !r.agentStarted {
		r.skip(e.name())
		return nil
	}
	pending := r.take(e)
	m := model.Message{Role: model.User, Content: content}
	if pending != nil && pending.callID != "" {
		m.Role, m.ToolCallID = model.Tool, pending.callID
	}
	if pending == nil && e.Observation == "error" {
		r.b.message(m, trajectories.CauseFormatError, parseTime(e.Time))
		return nil
	}
	if pending != nil && pending.isShell {
		x := trajectories.Execution{Command: pending.command, Output: trajectories.Bytes(content), ExitCodeUnknown: true}
		for _, code := range []*int{e.Extras.ExitCode, e.Extras.Metadata.ExitCode} {
			if code != nil {
				x.ExitCode, x.ExitCodeUnknown = *code, false
			}
		}
		r.b.execution(x, parseTime(e.Time))
		r.b.addLoss("the text that OpenHands adds to an output for the model (folder, exit code) is not in the file", 1)
	}
	r.b.message(m, trajectories.CauseObservation, parseTime(e.Time))
	return nil
}

// take returns and removes the action that an observation belongs to.
func (r *eventReader) take(e event) *pendingAction {
	pending := r.actions[string(e.Cause)]
	if e.Tool != nil && r.calls[e.Tool.ID] != nil {
		pending = r.calls[e.Tool.ID]
	}
	if pending == nil {
		return nil
	}
	delete(r.actions, string(e.Cause))
	delete(r.calls, pending.callID)
	return pending
}

// setState sets the exit status for states that end the attempt.
func (r *eventReader) setState(state string) {
	switch state {
	case "finished", "error", "rejected", "stopped", "paused":
		r.status = state
	}
}

func (r *eventReader) end(e ending) (*File, error) {
	r.flush()
	r.b.end(e)
	return r.b.done()
}
