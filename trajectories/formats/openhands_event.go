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

// event is an event of OpenHands without its SDK. An action of the agent causes an
// observation.
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

// eventArgs are the arguments of an action.
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

// eventExtras are the extras of an observation.
type eventExtras struct {
	ExitCode *int   `json:"exit_code"`
	State    string `json:"agent_state"`
	Metadata struct {
		ExitCode *int `json:"exit_code"`
	} `json:"metadata"`
}

// eventTool is the tool call of an action. Response is the provider's response that
// contains the call.
type eventTool struct {
	ID       string          `json:"tool_call_id"`
	Name     string          `json:"function_name"`
	Response json.RawMessage `json:"model_response"`
}

// eventMetrics are the totals of the attempt up to an event.
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
	status string // exit status so far

	agentStarted bool                      // there was a reply
	responseID   string                    // ID of the response of the newest reply; "" if unknown
	actions      map[string]*pendingAction // by event ID
	calls        map[string]*pendingAction // by tool call ID
	totals       eventMetrics              // at the newest call

	newestReply *trajectories.Message
	newestIndex int  // index of newestReply in builder.body
	changed     bool // newestReply has changed since it was encoded
}

// pendingAction is an action without an observation so far.
type pendingAction struct {
	command, callID string
	isShell         bool // the action runs command
}

func newEventReader(b *builder) *eventReader {
	b.imported.Agent = "OpenHands"
	return &eventReader{b: b, actions: map[string]*pendingAction{}, calls: map[string]*pendingAction{}}
}

// read adds all events.
func (r *eventReader) read(list []json.RawMessage) error {
	for i := 0; i < len(list); i++ {
		if bytes.HasPrefix(bytes.TrimSpace(list[i]), []byte("[")) { // an action and its observation
			var pair []json.RawMessage
			if err := json.Unmarshal(list[i], &pair); err != nil {
				return fmt.Errorf("[%d]: %w", i, explainJSON(err))
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

// addEvent adds an event of OpenHands or of its SDK. Only events of the SDK have a kind
// field.
func (r *eventReader) addEvent(raw json.RawMessage) error {
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return explainJSON(err)
	}
	if kind.Kind != "" {
		return r.addSDKEvent(kind.Kind, raw)
	}
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		return explainJSON(err)
	}
	switch {
	case e.Observation != "":
		return r.addObservation(e)
	case e.Source == "agent" && e.Action != "" && e.Action != "system":
		r.addAction(e)
	case e.Action == "system":
		r.b.imported.AgentVersion = cmp.Or(e.Args.Version, r.b.imported.AgentVersion)
		r.b.header.Tools = readTools(e.Args.Tools)
		r.b.addMessage(model.Message{Role: model.System, Content: e.Args.Content},
			trajectories.CausePrompt, parseTime(e.Time))
	case e.Action == "message":
		r.addUser(model.Message{Role: model.User, Content: e.Args.Content}, parseTime(e.Time))
		r.b.addLoss("an image that a message refers to", len(e.Args.Images))
	default:
		r.skip(e.name())
	}
	return nil
}

// skip adds a loss for an event that is not part of the conversation.
func (r *eventReader) skip(name string) {
	if len(name) > 40 {
		name = name[:40] + "..."
	}
	r.b.addLoss("an event "+printable(name)+", which is not part of the conversation", 1)
}

// name returns the name of the event for losses.
func (e event) name() string {
	return cmp.Or(e.Observation, e.Action, "of unknown kind")
}

// addUser adds a message of the user. Before the first reply, it is a prompt.
func (r *eventReader) addUser(m model.Message, at time.Time) {
	cause := trajectories.CausePrompt
	if r.agentStarted {
		cause = ""
	}
	r.b.addMessage(m, cause, at)
}

// addAction adds an action of the agent, and its reply unless an earlier action added it.
func (r *eventReader) addAction(e event) {
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
	m, resp, added := r.reply(e)
	if added {
		if pending.isShell {
			r.appendAction(pending.command)
		}
		return
	}
	var actions []string
	if pending.isShell {
		actions = []string{pending.command}
	}
	r.addReply(m, actions, r.call(e, resp), at)
}

// reply returns the reply that contains an action, and the provider's response. added
// reports whether this reply is the newest one, which was added before; m and resp are
// then empty.
func (r *eventReader) reply(e event) (m model.Message, resp response, added bool) {
	if e.Tool != nil {
		id := struct {
			ID string `json:"id"`
		}{}
		_ = json.Unmarshal(e.Tool.Response, &id) // without an ID it stays ""
		if id.ID != "" && id.ID == r.responseID {
			return m, resp, true
		}
		r.responseID = id.ID
		resp, _ = readResponse(e.Tool.Response)
		if len(resp.Choices) > 0 && decodeReply(e.Tool.Response, resp, &m) {
			m.Role = model.Assistant
			return m, resp, false
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
	return m, resp, false
}

// addReply adds a reply with its first actions. appendAction adds further ones.
func (r *eventReader) addReply(m model.Message, actions []string, c *trajectories.Call, at time.Time) {
	r.flush()
	r.agentStarted = true
	r.b.addReply(m, actions, c, at)
	r.newestReply = &trajectories.Message{Message: m, Cause: trajectories.CauseReply, Actions: actions}
	r.newestIndex, r.changed = len(r.b.body)-1, false
}

// flush encodes the newest reply again if it has changed since addReply.
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

// call returns the call of a reply, or nil if the file has no data about it. The cost and,
// if the response has no usage, the usage are the increase of the totals.
func (r *eventReader) call(e event, resp response) *trajectories.Call {
	if e.Tool == nil && e.Metrics == nil {
		return nil
	}
	c := &trajectories.Call{Usage: resp.usage(), Model: resp.Model}
	if e.Tool != nil {
		c.Raw = e.Tool.Response
	}
	if len(resp.Choices) > 0 {
		c.Finish = resp.Choices[0].Finish
	}
	m := e.Metrics
	if m == nil {
		c.Usage.Unpriced = 1
		return c
	}
	c.Cost = model.Cost(max(0, m.Cost-r.totals.Cost))
	if u, previous := m.Usage, r.totals.Usage; u != nil && resp.Usage == nil {
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

// addObservation adds an observation. An error that belongs to no action is a format error.
func (r *eventReader) addObservation(e event) error {
	content, err := contentText(e.Content)
	if err != nil {
		return fmt.Errorf("content: %w", explainJSON(err))
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
	pending := r.takeAction(e)
	m := model.Message{Role: model.User, Content: content}
	if pending != nil && pending.callID != "" {
		m.Role, m.ToolCallID = model.Tool, pending.callID
	}
	if pending == nil && e.Observation == "error" {
		r.b.addMessage(m, trajectories.CauseFormatError, parseTime(e.Time))
		return nil
	}
	if pending != nil && pending.isShell {
		x := trajectories.Execution{Command: pending.command, Output: trajectories.Bytes(content), ExitCodeUnknown: true}
		for _, code := range []*int{e.Extras.ExitCode, e.Extras.Metadata.ExitCode} {
			if code != nil {
				x.ExitCode, x.ExitCodeUnknown = *code, false
			}
		}
		r.b.addExecution(x, parseTime(e.Time))
		r.b.addLoss("the text that OpenHands adds to an output for the model (folder, exit code) is not in the file", 1)
	}
	r.b.addMessage(m, trajectories.CauseObservation, parseTime(e.Time))
	return nil
}

// takeAction removes and returns the action that caused an observation, or nil.
func (r *eventReader) takeAction(e event) *pendingAction {
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

// setState sets the exit status if a state of the agent ends the attempt.
func (r *eventReader) setState(state string) {
	switch state {
	case "finished", "error", "rejected", "stopped", "paused":
		r.status = state
	}
}

// end adds the outcome and returns the file.
func (r *eventReader) end(e ending) (*File, error) {
	r.flush()
	r.b.end(e)
	return r.b.file()
}
