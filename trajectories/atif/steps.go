package atif

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// build makes the steps. What answers a reply stands in the reply's step.
func (b *builder) build() {
	compactions := b.t.Compactions
	for i, e := range b.t.Entries {
		for len(compactions) > 0 && compactions[0].Record < e.Record {
			b.compacted(compactions[0])
			compactions = compactions[1:]
		}
		if answers(e.Message) && len(b.steps) > 0 {
			b.answer(i, e)
			continue
		}
		b.rest(e.Record)
		b.begin(i, e)
	}
	b.rest(-1)
	for at := range b.steps { // of which a message tells that stands elsewhere
		b.untold(at, -1, true)
	}
}

// answers says whether a message tells of what was done, or not.
func answers(m trajectories.Message) bool {
	switch m.Cause {
	case trajectories.CauseObservation, trajectories.CauseMalformedPatch, trajectories.CauseFormatError,
		trajectories.CauseRejection, trajectories.CauseNotRun:
		return true
	}
	return m.Role == model.Tool
}

// begin adds the step of a message that answers nothing.
func (b *builder) begin(i int, e trajectories.Entry) {
	s := Step{ID: int64(len(b.steps) + 1), Timestamp: stamp(e.Time)}
	own := ownStep{Record: e.Record, CallID: e.CallID, Kept: e.Kept}
	switch e.Role {
	case model.System:
		s.Source = sourceSystem
	case model.Assistant:
		s.Source = sourceAgent
		b.reply(&s, &own, e)
	default:
		s.Source = sourceUser
		if e.Role != model.User {
			own.Role = e.Role
		}
	}
	if e.Role != model.Assistant && e.Cause != trajectories.CausePrompt {
		own.Cause = cmp.Or(e.Cause, none)
	}
	if e.Cause == trajectories.CauseCommand {
		own.Actions = &e.Actions
	}
	s.Message, own.Images = &Content{Text: e.Content}, e.Images
	if !b.foreign {
		s.Extra = b.extra(own)
	}
	b.steps, b.origin = append(b.steps, s), append(b.origin, i)
}

// reply fills in what only an agent's step has.
func (b *builder) reply(s *Step, own *ownStep, e trajectories.Entry) {
	if e.Reasoning != "" {
		s.Reasoning = &e.Reasoning
	}
	if e.Cause != trajectories.CauseReply && !b.foreign {
		own.Cause, s.Copied = cmp.Or(e.Cause, none), ptr(true) // it was no reply to anybody here
	}
	s.Calls = b.calls(e, int(s.ID))
	if said := commandsIn(s.Calls); !slices.Equal(said, e.Actions) {
		actions := append([]string{}, e.Actions...)
		own.Actions = &actions
	}
	if c := e.Call; c != nil {
		if c.Model != "" {
			s.ModelName = &c.Model
		}
		s.Metrics = b.metrics(c)
		own.Call = &ownCall{
			Finish: c.Finish, Start: c.Start, Duration: c.Duration, Waited: c.Waited, Tries: c.Tries, Attempts: c.Attempts,
		}
		if s.Metrics == nil || s.Metrics.Cost == nil {
			own.Call.Cost = c.Cost
		}
		if !b.foreign {
			s.LLMCalls = ptr(int64(1))
		}
	}
	if c := e.Recorded; c != nil {
		own.Sent = c
		own.Context = &contextManagement{Type: "pruning", Boundary: "truncate"}
		if c.Tail != "" {
			own.Context = &contextManagement{Type: "injection", Boundary: "append"}
		}
	}
}

// commandsIn are those that tool calls hold.
func commandsIn(calls []ToolCall) []string {
	var commands []string
	for _, c := range calls {
		if command, ok := commandOf(c.Function, c.Arguments); ok {
			commands = append(commands, command)
		}
	}
	return commands
}

// calls are the tool calls of a reply, or what stands for its commands where it
// used no tool.
func (b *builder) calls(e trajectories.Entry, step int) []ToolCall {
	var calls []ToolCall
	taken := map[string]bool{}
	made := func(k int) string { return fmt.Sprintf("call_%d_%d", step, k+1) }
	for k, c := range e.Calls {
		var own ownToolCall
		id := c.ID
		if (id == "" || taken[id]) && !b.foreign {
			own.ID, id = &c.ID, made(k)
			for taken[id] {
				id += "x"
			}
		}
		taken[id] = true
		arguments := json.RawMessage("{}")
		var compact bytes.Buffer
		if isObject(c.Arguments) && json.Compact(&compact, []byte(c.Arguments)) == nil {
			arguments = compact.Bytes()
		}
		if string(arguments) != c.Arguments {
			own.Arguments = &c.Arguments
		}
		t := ToolCall{ID: id, Function: c.Name, Arguments: arguments}
		if !b.foreign {
			t.Extra = b.extra(own)
		}
		calls = append(calls, t)
	}
	if len(e.Calls) > 0 || b.foreign {
		return calls
	}
	for k, command := range e.Actions {
		arguments := b.extra(map[string]string{"command": command})
		calls = append(calls, ToolCall{ID: made(k), Function: "bash", Arguments: arguments, Extra: b.extra(ownToolCall{Written: true})})
	}
	return calls
}

func isObject(text string) bool {
	return trajectories.KindOf(json.RawMessage(bytes.TrimSpace([]byte(text)))) == "an object" && json.Valid([]byte(text))
}

// answer adds a message to the step that it is about: the one with its call,
// else the last.
func (b *builder) answer(i int, e trajectories.Entry) {
	at := len(b.steps) - 1
	if e.CallID != "" {
		for n := at; n >= 0; n-- {
			if b.calledIn(n, e.CallID) != nil {
				at = n
				break
			}
		}
		if at < len(b.steps)-1 && !b.foreign {
			b.lost = append(b.lost, fmt.Sprintf("the place of message %d, which answers a call of step %d after later steps", i+1, at+1))
		}
	}
	ran := b.ranFor(at, i, e)
	if at == len(b.steps)-1 {
		b.rest(e.Record)
	}
	own := ownResult{Record: e.Record}
	if e.Cause != trajectories.CauseObservation {
		own.Cause = cmp.Or(e.Cause, none)
	}
	if !e.Time.IsZero() {
		own.Time = &e.Time
	}
	own.Images = e.Images
	res := Result{Content: &Content{Text: e.Content}}
	role := model.User // as one expects
	switch call := b.calledIn(at, e.CallID); {
	case call != nil:
		res.CallID, role = &call.ID, model.Tool
	case e.CallID != "":
		own.CallID = e.CallID
	case ran >= 0 && len(b.entry(at).Calls) == 0: // of a call that was made up
		res.CallID = b.idOf(at, ran)
	}
	if e.Role != role {
		own.Role = e.Role
	}
	if ran >= 0 {
		b.execution(&own, at, ran)
	}
	b.add(at, res, own)
}

// ranFor is the execution that a message tells of; -1 where there is none. Of
// one that did not come to its end another message tells, under the same call.
func (b *builder) ranFor(step, i int, e trajectories.Entry) int {
	for k, r := range b.entry(step).Ran {
		cut := r.Told < 0 && e.Cause == trajectories.CauseNotRun && r.Record < e.Record && k == b.position(step, e.CallID)
		if r.Told == i || cut && !b.shown[shown{step, k}] {
			b.shown[shown{step, k}] = true
			return k
		}
	}
	return -1
}

// entry is that of a step; one without anything for the step of a compaction.
func (b *builder) entry(step int) trajectories.Entry {
	if b.origin[step] < 0 {
		return trajectories.Entry{}
	}
	return b.t.Entries[b.origin[step]]
}

// compacted adds the step of a compaction, for those who read the format: what
// stands in place of earlier steps. The record of it is among those of the root.
func (b *builder) compacted(c trajectories.Compacted) {
	if b.foreign {
		return
	}
	b.rest(c.Record)
	texts := make([]string, len(c.Replaced))
	for i, r := range c.Replaced {
		texts[i] = r.Message.Content
	}
	b.steps = append(b.steps, Step{
		ID: int64(len(b.steps) + 1), Source: sourceSystem, Message: &Content{Text: strings.Join(texts, "\n\n")},
		Extra: b.extra(ownStep{Compaction: c.Record, Context: &contextManagement{Type: "compaction", Boundary: "replace"}}),
	})
	b.origin = append(b.origin, -1)
}

// calledIn is the call of a step that the model knows by an id.
func (b *builder) calledIn(step int, id string) *ToolCall {
	if k := b.position(step, id); k >= 0 {
		return &b.steps[step].Calls[k]
	}
	return nil
}

func (b *builder) position(step int, id string) int {
	if id == "" {
		return -1
	}
	return slices.IndexFunc(b.entry(step).Calls, func(c model.Call) bool { return c.ID == id })
}

// idOf is the id of the call that an execution was of; nil where that is not
// certain.
func (b *builder) idOf(step, ran int) *string {
	calls := b.steps[step].Calls
	if ran >= len(calls) || len(calls) != len(b.entry(step).Actions) {
		return nil
	}
	return &calls[ran].ID
}

// execution puts what a command did into a result's extra, once.
func (b *builder) execution(own *ownResult, step, ran int) {
	r := b.entry(step).Ran[ran]
	own.Ran, own.Tools, own.Execution = r.Record, toolsOf(&r), &r.Execution
	calls := b.steps[step].Calls
	if id := b.idOf(step, ran); id != nil {
		if command, ok := commandOf(calls[ran].Function, calls[ran].Arguments); ok && command == r.Command {
			return
		}
	}
	own.Command = r.Command
}

// rest adds the executions of the last step up to a record, of which the model
// was told nothing, as of the command that handed in the work; -1 is all.
func (b *builder) rest(record int) {
	if len(b.steps) > 0 {
		b.untold(len(b.steps)-1, record, false)
	}
}

// untold adds the executions of a step that stand in none of its results yet;
// told ones are waited for, but at the end.
func (b *builder) untold(at, record int, end bool) {
	if b.foreign {
		return
	}
	for k, r := range b.entry(at).Ran {
		if r.Told >= 0 && !end || record >= 0 && r.Record > record || b.shown[shown{at, k}] {
			continue
		}
		b.shown[shown{at, k}] = true
		var own ownResult
		b.execution(&own, at, k)
		b.add(at, Result{CallID: b.idOf(at, k)}, own)
	}
}

func (b *builder) add(step int, res Result, own ownResult) {
	s := &b.steps[step]
	if s.Observation == nil {
		s.Observation = &Observation{}
	}
	if !b.foreign {
		res.Extra = b.extra(own)
	}
	res.Refs = b.refs(own.Ran)
	s.Observation.Results = append(s.Observation.Results, res)
}

// stamp is a time as the format has it; nil where it is not known.
func stamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return ptr(t.UTC().Format(time.RFC3339Nano))
}
