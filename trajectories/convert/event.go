package convert

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// event is one of OpenHands' stream, before its SDK. What an agent does is an
// action, what comes of it an observation that names its cause.
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

// eventTool is the call of a tool that an action was made of, and the reply it
// stood in.
type eventTool struct {
	ID       string          `json:"tool_call_id"`
	Name     string          `json:"function_name"`
	Response json.RawMessage `json:"model_response"`
}

// eventMetrics are totals up to an event.
type eventMetrics struct {
	Cost  float64 `json:"accumulated_cost"`
	Usage *struct {
		Prompt     float64 `json:"prompt_tokens"`
		Completion float64 `json:"completion_tokens"`
		CacheRead  float64 `json:"cache_read_tokens"`
		CacheWrite float64 `json:"cache_write_tokens"`
	} `json:"accumulated_token_usage"`
}

// eventReader turns events into records.
type eventReader struct {
	b      *builder
	status string

	begun   bool                // the agent has spoken
	reply   string              // the response that the newest reply came from; "" where unknown
	actions map[string]*started // by the id of the event
	calls   map[string]*started // by the id of the tool call
	spent   eventMetrics        // as far as it is in the calls

	newest *trajectories.Message // the newest reply
	place  int                   // of it, in the body
	grown  bool                  // since it was written
}

// started is a command whose observation has not come.
type started struct {
	command, callID string
	shell           bool
}

func newEventReader(b *builder) *eventReader {
	b.from.Agent = "OpenHands"
	return &eventReader{b: b, actions: map[string]*started{}, calls: map[string]*started{}}
}

func (r *eventReader) read(list []json.RawMessage) error {
	for i := 0; i < len(list); i++ {
		if bytes.HasPrefix(bytes.TrimSpace(list[i]), []byte("[")) { // an action and its observation
			var pair []json.RawMessage
			if err := json.Unmarshal(list[i], &pair); err != nil {
				return fmt.Errorf("[%d]: %w", i, explain(err))
			}
			for _, e := range pair {
				if err := r.take(e); err != nil {
					return fmt.Errorf("[%d]: %w", i, err)
				}
			}
			continue
		}
		if err := r.take(list[i]); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

func (r *eventReader) take(raw json.RawMessage) error {
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
		return r.observed(e)
	case e.Source == "agent" && e.Action != "" && e.Action != "system":
		r.acted(e)
	case e.Action == "system":
		r.b.from.AgentVersion = cmp.Or(e.Args.Version, r.b.from.AgentVersion)
		r.b.header.Tools = readTools(e.Args.Tools)
		r.b.message(model.Message{Role: model.System, Content: e.Args.Content}, trajectories.CausePrompt, when(e.Time))
	case e.Action == "message":
		r.user(model.Message{Role: model.User, Content: e.Args.Content}, when(e.Time))
		r.b.lose("a picture that a message names", len(e.Args.Images))
	default:
		r.passed(e.name())
	}
	return nil
}

// passed notes an event that is no part of the conversation.
func (r *eventReader) passed(name string) {
	if len(name) > 40 {
		name = name[:40] + "..."
	}
	r.b.lose("an event "+printable(name)+", which is no part of the conversation", 1)
}

func (e event) name() string {
	return cmp.Or(e.Observation, e.Action, "without a kind")
}

func (r *eventReader) user(m model.Message, at time.Time) {
	cause := trajectories.CausePrompt
	if r.begun {
		cause = ""
	}
	r.b.message(m, cause, at)
}

// acted is an action of the agent. Several can come from one reply.
func (r *eventReader) acted(e event) {
	at := when(e.Time)
	switch e.Action {
	case "recall", "change_agent_state", "condensation", "condensation_request", "start", "null":
		r.passed(e.name())
		return
	case "finish", "reject":
		r.status = e.Action
	}
	start := &started{command: e.Args.Command, shell: e.Action == "run" && e.Args.Command != ""}
	if input := string(e.Args.Input); start.shell && (input == "true" || input == `"true"`) {
		start.shell = false
		r.b.lose("an input to a running process, which is no command of its own", 1)
	}
	if e.Tool != nil {
		start.callID = e.Tool.ID
		r.calls[start.callID] = start
	}
	if id := string(e.ID); id != "" {
		r.actions[id] = start
	}
	m, a, same := r.message(e)
	if same { // the reply stands there already
		if start.shell {
			r.join(start.command)
		}
		return
	}
	var actions []string
	if start.shell {
		actions = []string{start.command}
	}
	r.answer(m, actions, r.call(e, a), at)
}

// message is the reply that an action came from; same says that it is the newest
// one again.
func (r *eventReader) message(e event) (m model.Message, a answered, same bool) {
	if e.Tool != nil {
		id := struct {
			ID string `json:"id"`
		}{}
		_ = json.Unmarshal(e.Tool.Response, &id) // none is as good as another
		if id.ID != "" && id.ID == r.reply {
			return m, a, true
		}
		r.reply = id.ID
		a, _ = readResponse(e.Tool.Response)
		if len(a.Choices) > 0 && restated(e.Tool.Response, a, &m) {
			m.Role = model.Assistant
			return m, a, false
		}
	}
	r.reply = ""
	m = model.Message{Role: model.Assistant, Content: cmp.Or(e.Args.Thought, e.Args.Content, e.Args.Final)}
	if e.Tool != nil {
		m.Calls = []model.Call{{ID: e.Tool.ID, Name: e.Tool.Name, Arguments: "{}"}}
		r.b.lose("the arguments of a call of a tool are not in the file", 1)
	}
	if e.Action != "message" {
		r.b.lose("the words of a reply are not in the file, only its thought and its action", 1)
	}
	return m, a, false
}

// answer adds a reply. It is written when all of its actions have come.
func (r *eventReader) answer(m model.Message, actions []string, c *trajectories.Call, at time.Time) {
	r.flush()
	r.begun = true
	r.b.reply(m, actions, c, at)
	r.newest = &trajectories.Message{Message: m, Cause: trajectories.CauseReply, Actions: actions}
	r.place, r.grown = len(r.b.body)-1, false
}

// flush writes the newest reply again, where it has grown.
func (r *eventReader) flush() {
	if r.newest == nil || !r.grown {
		return
	}
	raw, err := trajectories.Encode(*r.newest)
	if err != nil {
		r.b.err = err
		return
	}
	r.b.body[r.place].Data = raw
}

// join adds an action to the newest reply.
func (r *eventReader) join(command string) {
	if r.newest != nil {
		r.newest.Actions, r.grown = append(r.newest.Actions, command), true
	}
}

// call is what a reply took: the totals since the one before.
func (r *eventReader) call(e event, a answered) *trajectories.Call {
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
	c.Cost = model.Cost(max(0, m.Cost-r.spent.Cost))
	if u, before := m.Usage, r.spent.Usage; u != nil && a.Usage == nil {
		c.Usage = model.Usage{Prompt: tokens(u.Prompt), Completion: tokens(u.Completion), CacheRead: tokens(u.CacheRead), CacheWrite: tokens(u.CacheWrite)}
		if before != nil {
			c.Usage = model.Usage{
				Prompt: tokens(u.Prompt - before.Prompt), Completion: tokens(u.Completion - before.Completion),
				CacheRead: tokens(u.CacheRead - before.CacheRead), CacheWrite: tokens(u.CacheWrite - before.CacheWrite),
			}
		}
	}
	r.spent = *m
	return c
}

// observed is what came of an action, or what the environment says unasked.
func (r *eventReader) observed(e event) error {
	content, err := trajectories.TextOf(e.Content)
	if err != nil {
		return fmt.Errorf("content: %w", explain(err))
	}
	switch e.Observation {
	case "agent_state_changed":
		r.state(e.Extras.State)
		return nil
	case "recall", "null", "condense", "loop_detection":
		r.passed(e.name())
		return nil
	}
	if !r.begun {
		r.passed(e.name())
		return nil
	}
	start := r.cause(e)
	m := model.Message{Role: model.User, Content: content}
	if start != nil && start.callID != "" {
		m.Role, m.CallID = model.Tool, start.callID
	}
	if start == nil && e.Observation == "error" {
		r.b.message(m, trajectories.CauseFormatError, when(e.Time))
		return nil
	}
	if start != nil && start.shell {
		x := trajectories.Execution{Command: start.command, Output: trajectories.Bytes(content), CodeUnknown: true}
		for _, code := range []*int{e.Extras.ExitCode, e.Extras.Metadata.ExitCode} {
			if code != nil {
				x.ExitCode, x.CodeUnknown = *code, false
			}
		}
		r.b.execution(x, when(e.Time))
		r.b.lose("what OpenHands writes around an output for the model (folder, code) is not in the file", 1)
	}
	r.b.message(m, trajectories.CauseObservation, when(e.Time))
	return nil
}

// cause is the action that an observation is of; each is answered once.
func (r *eventReader) cause(e event) *started {
	start := r.actions[string(e.Cause)]
	if e.Tool != nil && r.calls[e.Tool.ID] != nil {
		start = r.calls[e.Tool.ID]
	}
	if start == nil {
		return nil
	}
	delete(r.actions, string(e.Cause))
	delete(r.calls, start.callID)
	return start
}

// state is how the agent stands; some states are ends.
func (r *eventReader) state(state string) {
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
