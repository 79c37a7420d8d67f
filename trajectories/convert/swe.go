package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// sweFile is a .traj of SWE-agent, releases 0.x and 1.x.
type sweFile struct {
	Environment string          `json:"environment"`
	Steps       []sweStep       `json:"trajectory"`
	History     []sweMessage    `json:"history"`
	Info        json.RawMessage `json:"info"`
	Replay      json.RawMessage `json:"replay_config"` // an object, or one as a string
}

// sweStep is one reply and what its action gave. Those whose reply was refused
// stand here, and not in the history.
type sweStep struct {
	Action      string          `json:"action"`
	Observation string          `json:"observation"`
	Response    string          `json:"response"`
	Thought     string          `json:"thought"`
	State       json.RawMessage `json:"state"`
	Seconds     float64         `json:"execution_time"`
	Query       json.RawMessage `json:"query"`
	Extra       json.RawMessage `json:"extra_info"`
}

// sweMessage is one message as the model saw it.
type sweMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Demo    bool            `json:"is_demo"`
	Action  *string         `json:"action"`
	Thought string          `json:"thought"`
	Calls   []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	CallIDs  []string        `json:"tool_call_ids"`
	CallID   string          `json:"tool_call_id"`
	Thinking json.RawMessage `json:"thinking_blocks"`
	Reason   string          `json:"reasoning_content"`
}

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

func readSWE(src source, data []byte) (*File, error) {
	var f sweFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, explain(err)
	}
	if len(f.Steps) == 0 && len(f.History) == 0 {
		return nil, fmt.Errorf("%w: neither steps nor a history", ErrUnknown)
	}
	var info sweInfo
	if len(f.Info) > 0 {
		if err := json.Unmarshal(f.Info, &info); err != nil {
			return nil, fmt.Errorf("info: %w", explain(err))
		}
	}
	b := newBuilder(src, string(formatSWE))
	b.from.Agent, b.from.AgentVersion = "SWE-agent", info.Version
	b.others(data, "environment", "trajectory", "history", "info", "replay_config")
	b.describe(f)
	r := sweReader{b: b, steps: f.Steps}
	if err := r.read(f.History); err != nil {
		return nil, err
	}
	u := model.Usage{Prompt: tokens(info.Stats.Sent), Completion: tokens(info.Stats.Received)}
	e := ending{status: info.Status, submission: info.Submission, steps: info.Stats.Calls, cost: info.Stats.Cost, usage: &u}
	b.lose("the cost of single calls is not in the file; the total is kept", b2i(info.Stats.Cost != nil && *info.Stats.Cost != 0))
	b.lose("the tokens of single calls are not in the file; the total is kept", b2i(u.Prompt > 0))
	if info.Status == "" && len(f.Info) > 4 {
		b.lose("the tokens in all stand in the import record alone", b2i(u.Prompt > 0))
	}
	b.end(e)
	return b.done()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// describe takes the model and the instance from how the run was started, and
// keeps what else the file says as a whole.
func (b *builder) describe(f sweFile) {
	replay := f.Replay
	if text := asString(replay); text != "" {
		replay = json.RawMessage(text)
	}
	var started struct {
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
	_ = json.Unmarshal(replay, &started) // releases differ; what is not there stays empty
	b.header.InstanceID, b.header.ModelName = started.Problem.ID, started.Agent.Model.Name
	b.header.Image = started.Env.Deployment.Image

	all := map[string]json.RawMessage{}
	if len(f.Info) > 0 {
		all["info"] = without(f.Info, "submission")
	}
	if f.Environment != "" {
		all["environment"], _ = json.Marshal(f.Environment)
	}
	if json.Valid(replay) {
		all["replay_config"] = replay
	}
	if raw, err := json.Marshal(all); err == nil {
		b.extra(raw)
	}
}

// sweReader puts the history and the steps together.
type sweReader struct {
	b     *builder
	steps []sweStep
	next  int      // the first step that is not told of
	step  *sweStep // of the newest reply; nil where none belongs to it
	ran   bool     // its action has an execution
	begun bool     // there was a reply that is no demonstration
}

func (r *sweReader) read(history []sweMessage) error {
	states, queries, extras := 0, 0, 0
	for _, s := range r.steps {
		states += b2i(!saysNothing(s.State) && asString(s.State) != "")
		queries += b2i(!saysNothing(s.Query))
		extras += b2i(!saysNothing(s.Extra))
	}
	r.b.lose("the field \"extra_info\" of a step", extras)
	r.b.lose("the state of the shell after a step (open file, folder)", states)
	r.b.lose("what a call was sent, where that was not the history as it stands", queries)
	for i, m := range history {
		if err := r.message(m); err != nil {
			return fmt.Errorf("history[%d].%w", i, err)
		}
	}
	if r.finishStep(); len(history) == 0 {
		r.b.lose("the prompts are not in the file", 1)
	}
	for r.next < len(r.steps) {
		r.left(r.steps[r.next], len(history) == 0)
	}
	return nil
}

// left is a step that the history does not have.
func (r *sweReader) left(s sweStep, alone bool) {
	r.next++
	m := model.Message{Role: model.Assistant, Content: s.Response}
	var actions []string
	if s.Action != "" {
		actions = []string{s.Action}
	}
	switch {
	case alone:
		r.b.reply(m, actions, nil, time.Time{})
		r.step, r.ran = &s, false
		r.observed(model.Message{Role: model.User, Content: s.Observation})
	case s.Action == "submit" || s.Action == "" && s.Response == "": // made by SWE-agent as it gave up
		r.b.lose("a step without a reply, as SWE-agent adds them when it hands in for a model", 1)
	default:
		r.refused(s)
	}
}

// refused is a reply that was asked for again: the history does not have it.
func (r *sweReader) refused(s sweStep) {
	r.b.reply(model.Message{Role: model.Assistant, Content: s.Response}, nil, nil, time.Time{})
	r.b.message(model.Message{Role: model.User, Content: s.Observation}, trajectories.CauseFormatError, time.Time{})
	r.b.lose("a reply that was asked for again is marked as refused for its format; why, the file does not say", 1)
}

func (r *sweReader) message(m sweMessage) error {
	content, err := trajectories.TextOf(m.Content)
	if err != nil {
		return fmt.Errorf("content: %w", explain(err))
	}
	out := model.Message{Role: model.Role(m.Role), Content: content, Images: r.b.images(m.Content), Reasoning: m.thinking()}
	if out.Role == "" {
		return fmt.Errorf("role is missing")
	}
	for _, c := range m.Calls {
		arguments := string(c.Function.Arguments)
		if text := ""; json.Unmarshal(c.Function.Arguments, &text) == nil {
			arguments = text
		}
		out.Calls = append(out.Calls, model.Call{ID: c.ID, Name: c.Function.Name, Arguments: arguments})
	}
	out.CallID = m.CallID
	if len(m.CallIDs) > 0 {
		out.CallID = m.CallIDs[0]
	}
	switch {
	case m.Demo, m.Role == string(model.System):
		r.b.message(out, trajectories.CausePrompt, time.Time{})
	case m.Role == string(model.Assistant):
		r.reply(m, out)
	case !r.begun:
		r.b.message(out, trajectories.CausePrompt, time.Time{})
	default:
		r.observed(out)
	}
	return nil
}

// thinking joins the texts of thinking blocks.
func (m sweMessage) thinking() string {
	if m.Reason != "" {
		return m.Reason
	}
	var blocks []struct {
		Thinking string `json:"thinking"`
	}
	_ = json.Unmarshal(m.Thinking, &blocks) // another form says nothing
	var all []string
	for _, b := range blocks {
		all = append(all, b.Thinking)
	}
	return strings.Join(all, "\n")
}

func (r *sweReader) reply(m sweMessage, out model.Message) {
	r.finishStep()
	r.begun, r.step, r.ran = true, nil, false
	if !strings.Contains(out.Content, strings.TrimSpace(m.Thought)) {
		r.b.lose("the thought of a reply, where it is not in its words", 1)
	}
	same := func(s sweStep) bool {
		return s.Response == out.Content && (m.Action == nil || s.Action == *m.Action)
	}
	i := slices.IndexFunc(r.steps[r.next:], same)
	if i < 0 && r.next < len(r.steps) && m.Action != nil && r.steps[r.next].Action == *m.Action {
		i = 0 // one of the two was changed by hand, as demonstrations are
	}
	if i >= 0 {
		for range i { // not in the history
			r.left(r.steps[r.next], false)
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
	r.b.reply(out, actions, nil, time.Time{})
	if r.step == nil && len(actions) == 1 {
		r.step = &sweStep{Action: actions[0], Seconds: -1} // its output is only in the message
	}
}

// observed is what the model was told of the newest reply's action.
func (r *sweReader) observed(m model.Message) {
	if r.step == nil || r.ran || r.step.Action == "" {
		cause := trajectories.CauseObservation
		if r.step == nil && r.begun {
			cause = "" // a turn of the user's own
		}
		r.b.message(m, cause, time.Time{})
		return
	}
	if r.step.Seconds < 0 {
		r.step.Observation = m.Content
		r.b.lose("an output stands in the file only as the model was shown it", 1)
	}
	r.execute()
	r.b.message(m, trajectories.CauseObservation, time.Time{})
}

// finishStep keeps what an action gave that no message tells of.
func (r *sweReader) finishStep() {
	if r.step != nil && !r.ran && r.step.Action != "" && r.step.Seconds >= 0 {
		r.execute()
	}
}

func (r *sweReader) execute() {
	r.ran = true
	x := trajectories.Execution{
		Command: r.step.Action, Output: trajectories.Bytes(r.step.Observation), CodeUnknown: true,
		TimedOut: strings.TrimSpace(r.step.Observation) == "EXECUTION TIMED OUT",
	}
	if s := r.step.Seconds; s > 0 && s < 1e7 {
		x.Duration = trajectories.Seconds(s * float64(time.Second))
	}
	r.b.execution(x, time.Time{})
	r.b.lose("the file does not say with which code a command ended", 1)
}
