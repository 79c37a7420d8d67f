package atif

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// addSteps adds the steps of all entries and of the compactions before them. Messages that
// answer a reply become results in the step of the reply.
func (b *builder) addSteps() {
	compactions := b.t.Compactions
	for i, e := range b.t.Entries {
		for len(compactions) > 0 && compactions[0].Record < e.Record {
			b.addCompaction(compactions[0])
			compactions = compactions[1:]
		}
		if isAnswer(e.Message) && len(b.steps) > 0 {
			b.addAnswer(i, e)
		} else {
			b.addStep(e)
		}
	}
	for step := range b.steps { // add executions that no message reports, such as that of the submit command
		for k, execution := range b.entries[step].Executions {
			if !b.hasResult[execution.Record] {
				b.addResult(step, result{CallID: b.executionCallID(step, k)}, &execution, "")
			}
		}
	}
}

// isAnswer reports whether a message has the result of a tool call or the reason why there
// is no result.
func isAnswer(m trajectories.Message) bool {
	switch m.Cause {
	case trajectories.CauseObservation, trajectories.CauseMalformedPatch, trajectories.CauseFormatError,
		trajectories.CauseRejection, trajectories.CauseNotRun:
		return true
	}
	return m.Role == model.Tool
}

// addStep adds the step of an entry.
func (b *builder) addStep(e trajectories.Entry) {
	s := step{ID: len(b.steps) + 1, Timestamp: timestamp(e.Time), Source: "user", Message: e.Content}
	switch e.Role {
	case model.System:
		s.Source = "system"
	case model.Assistant:
		s.Source = "agent"
		b.fillReply(&s, e)
	default:
	}
	b.steps, b.entries = append(b.steps, s), append(b.entries, e)
}

// fillReply sets the fields that only steps of the agent have.
func (b *builder) fillReply(s *step, e trajectories.Entry) {
	s.Reasoning = e.Reasoning
	s.Copied = e.Cause != trajectories.CauseReply // the model did not write the message in this attempt
	s.Calls = b.toolCalls(e, s.ID)
	if c := e.Call; c != nil {
		s.ModelName, s.Metrics, s.LLMCalls = c.Model, b.metrics(c), 1
	}
	if c := e.ContextRecord; c != nil {
		context := contextManagement{Type: "pruning", Boundary: "truncate"}
		if c.Tail != "" {
			context = contextManagement{Type: "injection", Boundary: "append"}
		}
		s.Extra = b.extra(extraStep{context})
	}
}

// toolCalls returns the tool calls of a reply. If the reply has none, toolCalls makes a tool
// call of each command. step is the ID of the step.
func (b *builder) toolCalls(e trajectories.Entry, step int) []toolCall {
	var calls []toolCall
	used := map[string]bool{}
	newID := func(k int) string { return fmt.Sprintf("call_%d_%d", step, k+1) }
	for k, c := range e.ToolCalls {
		id := c.ID
		if id == "" || used[id] { // ATIF does not allow empty or duplicate IDs
			for id = newID(k); used[id]; {
				id += "x"
			}
		}
		used[id] = true
		arguments := json.RawMessage("{}")
		var compact bytes.Buffer
		if isObject(c.Arguments) && json.Compact(&compact, []byte(c.Arguments)) == nil {
			arguments = compact.Bytes()
		}
		calls = append(calls, toolCall{ID: id, Function: c.Name, Arguments: arguments})
	}
	if len(e.ToolCalls) > 0 {
		return calls
	}
	for k, command := range e.Actions {
		arguments := b.extra(map[string]string{"command": command})
		calls = append(calls, toolCall{ID: newID(k), Function: "bash", Arguments: arguments, Extra: b.extra(extraToolCall{Written: true})})
	}
	return calls
}

// isObject reports whether text is a JSON object.
func isObject(text string) bool {
	return trajectories.JSONKind(json.RawMessage(bytes.TrimSpace([]byte(text)))) == "an object" && json.Valid([]byte(text))
}

// addAnswer adds entry e, which has index i, as a result to the step with its tool call, or
// else to the last step.
func (b *builder) addAnswer(i int, e trajectories.Entry) {
	step := len(b.steps) - 1
	if e.ToolCallID != "" {
		for n := step; n >= 0; n-- {
			if b.callByID(n, e.ToolCallID) != nil {
				step = n
				break
			}
		}
	}
	r := result{Content: &e.Content}
	execution, executionIndex := b.executionFor(step, i)
	switch call := b.callByID(step, e.ToolCallID); {
	case call != nil:
		r.CallID = call.ID
	case execution != nil && len(b.entries[step].ToolCalls) == 0: // toolCalls made the tool call from the command
		r.CallID = b.executionCallID(step, executionIndex)
	}
	cause := e.Cause
	if cause == trajectories.CauseObservation {
		cause = ""
	}
	b.addResult(step, r, execution, cause)
}

// executionFor returns the execution of a step that entry i reports, and its index; nil if
// there is none.
func (b *builder) executionFor(step, i int) (*trajectories.Execution, int) {
	for k, r := range b.entries[step].Executions {
		if r.ObservationEntry == i {
			return &r, k
		}
	}
	return nil, 0
}

// addCompaction adds a step for a compaction, with the text of the messages that replace
// earlier ones.
func (b *builder) addCompaction(c trajectories.Compaction) {
	texts := make([]string, len(c.Replaced))
	for i, r := range c.Replaced {
		texts[i] = r.Message.Content
	}
	b.steps = append(b.steps, step{
		ID: len(b.steps) + 1, Source: "system", Message: strings.Join(texts, "\n\n"),
		Extra: b.extra(extraStep{contextManagement{Type: "compaction", Boundary: "replace"}}),
	})
	b.entries = append(b.entries, trajectories.Entry{})
}

// callByID returns the tool call of a step that has the given ID in the journal, or nil.
func (b *builder) callByID(step int, id string) *toolCall {
	calls := b.steps[step].Calls // only assistant messages have calls
	k := slices.IndexFunc(b.entries[step].ToolCalls, func(c model.ToolCall) bool { return c.ID == id })
	if id == "" || k < 0 || len(calls) == 0 {
		return nil
	}
	return &calls[k]
}

// executionCallID returns the ID of the tool call for the execution at index in a step, or
// "" if tool calls and commands do not correspond.
func (b *builder) executionCallID(step, index int) string {
	calls := b.steps[step].Calls
	if index >= len(calls) || len(calls) != len(b.entries[step].Actions) {
		return ""
	}
	return calls[index].ID
}

// addResult adds a result to a step. execution may be nil. cause is the cause of the
// message with the result, or "" for an observation.
func (b *builder) addResult(step int, r result, execution *trajectories.Execution, cause trajectories.Cause) {
	s := &b.steps[step]
	if s.Observation == nil {
		s.Observation = &observation{}
	}
	extra := extraResult{Cause: cause}
	if execution != nil {
		b.hasResult[execution.Record] = true
		extra.Duration, extra.TimedOut = execution.Duration, execution.TimedOut
		if !execution.ExitCodeUnknown {
			extra.ExitCode = &execution.ExitCode
		}
		r.Refs = b.refs(execution.Record)
	}
	r.Extra = b.extra(extra)
	s.Observation.Results = append(s.Observation.Results, r)
}

// timestamp formats a time. It returns "" for the zero time.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
