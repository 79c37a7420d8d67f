package formats

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// sweFile is a .traj file of SWE-agent, releases 0.x and 1.x.
type sweFile struct {
	Environment string          `json:"environment"`
	Steps       []sweStep       `json:"trajectory"`
	History     []sweMessage    `json:"history"`
	Info        json.RawMessage `json:"info"`
	Replay      json.RawMessage `json:"replay_config"` // an object, or a string with JSON
}

// sweStep is a reply with the result of its action. sweFile.Steps has rejected replies too,
// but sweFile.History does not.
type sweStep struct {
	Action      string          `json:"action"`
	Observation string          `json:"observation"`
	Response    string          `json:"response"`
	Thought     string          `json:"thought"`
	State       json.RawMessage `json:"state"`
	Duration    float64         `json:"execution_time"`
	Query       json.RawMessage `json:"query"`
	Extra       json.RawMessage `json:"extra_info"`
}

// sweMessage is a message of the history.
type sweMessage struct {
	Role     string          `json:"role"`
	Content  json.RawMessage `json:"content"`
	Demo     bool            `json:"is_demo"`
	Action   *string         `json:"action"`
	Thought  string          `json:"thought"`
	Calls    []fileCall      `json:"tool_calls"`
	CallIDs  []string        `json:"tool_call_ids"`
	CallID   string          `json:"tool_call_id"`
	Thinking json.RawMessage `json:"thinking_blocks"`
	Reason   string          `json:"reasoning_content"`
}

// sweInfo describes the end and the totals of an attempt.
type sweInfo struct {
	Status     string `json:"exit_status"`
	Submission string `json:"submission"`
	Stats      struct {
		Cost     *model.Cost `json:"instance_cost"`
		Sent     float64     `json:"tokens_sent"`
		Received float64     `json:"tokens_received"`
		Calls    int         `json:"api_calls"`
	} `json:"model_stats"`
	Version string `json:"swe_agent_version"`
}

// readSWE reads a .traj file of SWE-agent.
func readSWE(src source, data []byte) (*File, error) {
	var f sweFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, explainJSON(err)
	}
	if len(f.Steps) == 0 && len(f.History) == 0 {
		return nil, fmt.Errorf("%w: no steps and no history", ErrUnknownFormat)
	}
	var info sweInfo
	if len(f.Info) > 0 {
		if err := json.Unmarshal(f.Info, &info); err != nil {
			return nil, fmt.Errorf("info: %w", explainJSON(err))
		}
	}
	b := newBuilder(src, string(formatSWE))
	b.imported.Agent, b.imported.AgentVersion = "SWE-agent", info.Version
	b.setOtherFields(data, "environment", "trajectory", "history", "info", "replay_config")
	b.setSWEHeader(f)
	r := sweReader{b: b, steps: f.Steps}
	if err := r.read(f.History); err != nil {
		return nil, err
	}
	u := model.Usage{Prompt: tokenCount(info.Stats.Sent), Completion: tokenCount(info.Stats.Received)}
	e := ending{status: info.Status, submission: info.Submission, steps: info.Stats.Calls, cost: info.Stats.Cost, usage: &u}
	b.addLoss("costs per call are not in the file; the total is kept", boolInt(info.Stats.Cost != nil && *info.Stats.Cost != 0))
	b.addLoss("tokens per call are not in the file; the total is kept", boolInt(u.Prompt > 0))
	if info.Status == "" && len(f.Info) > 4 {
		b.addLoss("the total tokens are only in the import record", boolInt(u.Prompt > 0))
	}
	b.end(e)
	return b.file()
}

// boolInt returns 1 for true and 0 for false, as the count of a loss.
func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// setSWEHeader sets the model, the instance and the image from the replay configuration,
// and the extra data of the import record.
func (b *builder) setSWEHeader(f sweFile) {
	replay := f.Replay
	if text := asString(replay); text != "" {
		replay = json.RawMessage(text)
	}
	var config struct {
		Problem struct {
			ID string `json:"id"`
		} `json:"problem_statement"`
		Agent struct {
			Model struct {
				Name string `json:"name"`
			} `json:"model"`
		} `json:"agent"`
		Env struct {
			Deployment struct {
				Image string `json:"image"`
			} `json:"deployment"`
		} `json:"env"`
	}
	_ = json.Unmarshal(replay, &config) // releases differ in the fields
	b.header.InstanceID, b.header.ModelName = config.Problem.ID, config.Agent.Model.Name
	b.header.Image = config.Env.Deployment.Image

	extra := map[string]json.RawMessage{}
	if len(f.Info) > 0 {
		extra["info"] = withoutField(f.Info, "submission")
	}
	if f.Environment != "" {
		extra["environment"], _ = json.Marshal(f.Environment)
	}
	if json.Valid(replay) {
		extra["replay_config"] = replay
	}
	if raw, err := json.Marshal(extra); err == nil {
		b.setExtra(raw)
	}
}

// sweReader merges the history and the steps.
type sweReader struct {
	b        *builder
	steps    []sweStep
	next     int      // index of the first step that was not added
	step     *sweStep // step of the newest reply; nil if there is none
	executed bool     // the execution of step was added
	replied  bool     // there was a reply that is not a demonstration
}

// read adds the records of all messages and steps.
func (r *sweReader) read(history []sweMessage) error {
	states, queries, extras := 0, 0, 0
	for _, s := range r.steps {
		states += boolInt(!isEmpty(s.State) && asString(s.State) != "")
		queries += boolInt(!isEmpty(s.Query))
		extras += boolInt(!isEmpty(s.Extra))
	}
	r.b.addLoss("the field \"extra_info\" of a step", extras)
	r.b.addLoss("the state of the shell after a step (open file, folder)", states)
	r.b.addLoss("the prompt of a call that differs from the history", queries)
	for i, m := range history {
		if err := r.addMessage(m); err != nil {
			return fmt.Errorf("history[%d].%w", i, err)
		}
	}
	if r.finishStep(); len(history) == 0 {
		r.b.addLoss("the prompts are not in the file", 1)
	}
	for r.next < len(r.steps) {
		r.addStep(r.steps[r.next], len(history) == 0)
	}
	return nil
}

// addStep adds a step whose reply is not in the history. noHistory is set if the file has
// no history at all; otherwise the step is a rejected reply, or SWE-agent made it to submit
// for the agent.
func (r *sweReader) addStep(s sweStep, noHistory bool) {
	r.next++
	m := model.Message{Role: model.Assistant, Content: s.Response}
	var actions []string
	if s.Action != "" {
		actions = []string{s.Action}
	}
	switch {
	case noHistory:
		r.b.addReply(m, actions, nil, time.Time{})
		r.step, r.executed = &s, false
		r.addObservation(model.Message{Role: model.User, Content: s.Observation})
	case s.Action == "submit" || s.Action == "" && s.Response == "": // added by SWE-agent when it stops the agent
		r.b.addLoss("a step without a reply, added by SWE-agent when it submits for the model", 1)
	default:
		r.b.addReply(m, nil, nil, time.Time{})
		r.b.addMessage(model.Message{Role: model.User, Content: s.Observation}, trajectories.CauseFormatError, time.Time{})
		r.b.addLoss("a reply that SWE-agent requested again is treated as a format error; the file has no reason", 1)
	}
}

// addMessage adds a message of the history.
func (r *sweReader) addMessage(m sweMessage) error {
	content, err := contentText(m.Content)
	if err != nil {
		return fmt.Errorf("content: %w", explainJSON(err))
	}
	msg := model.Message{Role: model.Role(m.Role), Content: content, Images: r.b.images(m.Content), Reasoning: m.thinking()}
	if msg.Role == "" {
		return fmt.Errorf("role is missing")
	}
	msg.ToolCalls = toolCalls(m.Calls)
	msg.ToolCallID = m.CallID
	if len(m.CallIDs) > 0 {
		msg.ToolCallID = m.CallIDs[0]
	}
	switch {
	case m.Demo, m.Role == string(model.System):
		r.b.addMessage(msg, trajectories.CausePrompt, time.Time{})
	case m.Role == string(model.Assistant):
		r.addReply(m, msg)
	case !r.replied:
		r.b.addMessage(msg, trajectories.CausePrompt, time.Time{})
	default:
		r.addObservation(msg)
	}
	return nil
}

// thinking returns the reasoning of a reply.
func (m sweMessage) thinking() string {
	if m.Reason != "" {
		return m.Reason
	}
	var blocks []struct {
		Thinking string `json:"thinking"`
	}
	_ = json.Unmarshal(m.Thinking, &blocks) // other forms are ignored
	var texts []string
	for _, b := range blocks {
		texts = append(texts, b.Thinking)
	}
	return strings.Join(texts, "\n")
}

// addReply adds a reply of the history with its step. It first adds the preceding steps
// that are not added yet, whose replies were rejected.
func (r *sweReader) addReply(m sweMessage, msg model.Message) {
	r.finishStep()
	r.replied, r.step, r.executed = true, nil, false
	if !strings.Contains(msg.Content, strings.TrimSpace(m.Thought)) {
		r.b.addLoss("a thought that is not in the text of the reply", 1)
	}
	isStep := func(s sweStep) bool {
		return s.Response == msg.Content && (m.Action == nil || s.Action == *m.Action)
	}
	i := slices.IndexFunc(r.steps[r.next:], isStep)
	if i < 0 && r.next < len(r.steps) && m.Action != nil && r.steps[r.next].Action == *m.Action {
		i = 0 // the next step is that of the reply; the text of one of them was edited
	}
	if i >= 0 {
		for range i {
			r.addStep(r.steps[r.next], false)
		}
		r.step = &r.steps[r.next]
		r.next++
	}
	var actions []string
	switch {
	case m.Action != nil && *m.Action != "":
		actions = []string{*m.Action}
	case r.step != nil && r.step.Action != "":
		actions = []string{r.step.Action}
	}
	r.b.addReply(msg, actions, nil, time.Time{})
	if r.step == nil && len(actions) == 1 {
		r.step = &sweStep{Action: actions[0], Duration: -1} // only the next message has the output
	}
}

// addObservation adds a message after a reply: the observation of the reply's action with
// its execution, or a message of the user.
func (r *sweReader) addObservation(m model.Message) {
	if r.step == nil || r.executed || r.step.Action == "" {
		cause := trajectories.CauseObservation
		if r.step == nil && r.replied {
			cause = "" // a plain user message
		}
		r.b.addMessage(m, cause, time.Time{})
		return
	}
	if r.step.Duration < 0 {
		r.step.Observation = m.Content
		r.b.addLoss("only the output shown to the model is in the file", 1)
	}
	r.addExecution()
	r.b.addMessage(m, trajectories.CauseObservation, time.Time{})
}

// finishStep adds the execution of the newest reply's action if no message reported it.
func (r *sweReader) finishStep() {
	if r.step != nil && !r.executed && r.step.Action != "" && r.step.Duration >= 0 {
		r.addExecution()
	}
}

// addExecution adds the execution of the newest reply's action.
func (r *sweReader) addExecution() {
	r.executed = true
	x := trajectories.Execution{
		Command: r.step.Action, Output: trajectories.Bytes(r.step.Observation), ExitCodeUnknown: true,
		TimedOut: strings.TrimSpace(r.step.Observation) == "EXECUTION TIMED OUT",
	}
	if s := r.step.Duration; s > 0 && s < 1e7 {
		x.Duration = trajectories.Seconds(s * float64(time.Second))
	}
	r.b.addExecution(x, time.Time{})
	r.b.addLoss("the exit code of a command is not in the file", 1)
}
