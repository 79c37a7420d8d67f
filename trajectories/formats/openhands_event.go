package formats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
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
	Cost  float64     `json:"accumulated_cost"`
	Usage *eventUsage `json:"accumulated_token_usage"`
}

type eventUsage struct {
	Prompt     float64 `json:"prompt_tokens"`
	Completion float64 `json:"completion_tokens"`
	CacheRead  float64 `json:"cache_read_tokens"`
	CacheWrite float64 `json:"cache_write_tokens"`
}

// eventReader converts events to records.
type eventReader struct {
	b          *builder
	status     string                    // exit status so far
	reply      *trajectories.Message     // the newest reply; nil before the first
	responseID string                    // ID of the response with the newest reply; "" if unknown
	actions    map[string]*pendingAction // by event ID
	calls      map[string]*pendingAction // by tool call ID
	totals     eventMetrics              // at the newest call
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
	for i, item := range list {
		events := []json.RawMessage{item}
		if isList(item) { // an action and its observation
			if err := json.Unmarshal(item, &events); err != nil {
				return fmt.Errorf("[%d]: %w", i, explainJSON(err))
			}
		}
		for _, e := range events {
			if err := r.addEvent(e); err != nil {
				return fmt.Errorf("[%d]: %w", i, explainJSON(err))
			}
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
		return err
	}
	if kind.Kind != "" {
		return r.addSDKEvent(kind.Kind, raw)
	}
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	at := parseTime(e.Time)
	switch {
	case e.Observation != "":
		return r.addObservation(e, at)
	case e.Source == "agent" && e.Action != "" && e.Action != "system":
		r.addAction(e, at)
	case e.Action == "system":
		r.b.imported.AgentVersion = cmp.Or(e.Args.Version, r.b.imported.AgentVersion)
		r.b.header.Tools = readTools(e.Args.Tools)
		r.b.addMessage(model.Message{Role: model.System, Content: e.Args.Content}, trajectories.CausePrompt, at)
	case e.Action == "message":
		r.addUser(model.Message{Role: model.User, Content: e.Args.Content}, at)
		r.b.addLoss("an image that a message refers to", len(e.Args.Images))
	default:
		r.skip(cmp.Or(e.Action, "of unknown kind"))
	}
	return nil
}

// skip adds a loss for an event that is not part of the conversation.
func (r *eventReader) skip(name string) {
	r.b.addLoss("an event "+printable(name)+", which is not part of the conversation", 1)
}

// addUser adds a message of the user. Before the first reply, it is a prompt.
func (r *eventReader) addUser(m model.Message, at time.Time) {
	cause := trajectories.CausePrompt
	if r.reply != nil {
		cause = ""
	}
	r.b.addMessage(m, cause, at)
}

// addAction adds an action of the agent, and its reply unless an earlier action added it.
func (r *eventReader) addAction(e event, at time.Time) {
	switch e.Action {
	case "recall", "change_agent_state", "condensation", "condensation_request", "start", "null":
		r.skip(e.Action)
		return
	case "finish", "reject":
		r.status = e.Action
	}
	pending := &pendingAction{}
	if e.Action == "run" {
		r.setCommand(pending, e.Args.Command, isTrue(e.Args.Input))
	}
	if e.Tool != nil {
		pending.callID = e.Tool.ID
		r.calls[pending.callID] = pending
	}
	if id := string(e.ID); id != "" {
		r.actions[id] = pending
	}
	r.addActionReply(e, at)
	r.act(pending)
}

// setCommand sets the command of an action of a shell tool.
func (r *eventReader) setCommand(p *pendingAction, command string, isInput bool) {
	p.command, p.isShell = command, command != "" && !isInput
	r.b.addLoss("an input to a running process", boolInt(command != "" && isInput))
}

// act adds the command of an action to the newest reply.
func (r *eventReader) act(p *pendingAction) {
	if p.isShell {
		r.reply.Actions = append(r.reply.Actions, p.command)
	}
}

// continues reports whether a response has the newest reply, which was added before.
func (r *eventReader) continues(responseID string) bool {
	if responseID != "" && responseID == r.responseID {
		return true
	}
	r.responseID = responseID
	return false
}

// addActionReply adds the reply that contains an action, unless an earlier action added it.
func (r *eventReader) addActionReply(e event, at time.Time) {
	m := model.Message{Role: model.Assistant}
	var resp response
	decoded := false
	if e.Tool != nil {
		var id struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(e.Tool.Response, &id) // without an ID it stays ""
		if r.continues(id.ID) {
			return
		}
		resp, _ = readResponse(e.Tool.Response)
		decoded = len(resp.Choices) > 0 && decodeReply(e.Tool.Response, resp, &m)
	}
	if !decoded {
		r.responseID = ""
		m.Content = cmp.Or(e.Args.Thought, e.Args.Content, e.Args.Final)
		if e.Tool != nil {
			m.ToolCalls = []model.ToolCall{{ID: e.Tool.ID, Name: e.Tool.Name, Arguments: "{}"}}
			r.b.addLoss("the arguments of a tool call are not in the file", 1)
		}
		r.b.addLoss("the text of a reply is not in the file, only its thought and action", boolInt(e.Action != "message"))
	}
	r.reply = r.b.addReply(m, nil, r.call(e, resp), at)
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
	if u := m.Usage; u != nil && resp.Usage == nil {
		previous := cmp.Or(r.totals.Usage, &eventUsage{})
		c.Usage = model.Usage{
			Prompt: tokenCount(u.Prompt - previous.Prompt), Completion: tokenCount(u.Completion - previous.Completion),
			CacheRead: tokenCount(u.CacheRead - previous.CacheRead), CacheWrite: tokenCount(u.CacheWrite - previous.CacheWrite),
		}
	}
	r.totals = *m
	return c
}

// addObservation adds an observation. An error that belongs to no action is a format error.
func (r *eventReader) addObservation(e event, at time.Time) error {
	content, err := contentText(e.Content)
	if err != nil {
		return fmt.Errorf("content: %w", err)
	}
	switch {
	case e.Observation == "agent_state_changed":
		if state := e.Extras.State; slices.Contains([]string{"finished", "error", "rejected", "stopped", "paused"}, state) {
			r.status = state // it ends the attempt
		}
		return nil
	case r.reply == nil, slices.Contains([]string{"recall", "null", "condense", "loop_detection"}, e.Observation):
		r.skip(e.Observation)
		return nil
	}
	pending := r.takeAction(e)
	m := model.Message{Role: model.User, Content: content}
	if pending != nil && pending.callID != "" {
		m.Role, m.ToolCallID = model.Tool, pending.callID
	}
	if pending == nil && e.Observation == "error" {
		r.b.addMessage(m, trajectories.CauseFormatError, at)
		return nil
	}
	r.observe(pending, m, at, false, e.Extras.ExitCode, e.Extras.Metadata.ExitCode)
	r.b.addLoss("the text that OpenHands adds to an output for the model (folder, exit code) is not in the file", boolInt(pending != nil && pending.isShell))
	return nil
}

// observe adds the message with the result of an action, and the execution of its command.
// The last exit code that is not nil counts.
func (r *eventReader) observe(p *pendingAction, m model.Message, at time.Time, timedOut bool, codes ...*int) {
	if p != nil && p.isShell {
		x := trajectories.Execution{Command: p.command, Output: trajectories.Bytes(m.Content), TimedOut: timedOut, ExitCodeUnknown: true}
		for _, code := range codes {
			if code != nil {
				x.ExitCode, x.ExitCodeUnknown = *code, false
			}
		}
		r.b.addExecution(x, at)
	}
	r.b.addMessage(m, trajectories.CauseObservation, at)
}

// takeAction removes and returns the action that caused an observation, or nil.
func (r *eventReader) takeAction(e event) *pendingAction {
	pending := r.actions[string(e.Cause)]
	if e.Tool != nil && r.calls[e.Tool.ID] != nil {
		pending = r.calls[e.Tool.ID]
	}
	if pending != nil {
		delete(r.actions, string(e.Cause))
		delete(r.calls, pending.callID)
	}
	return pending
}
