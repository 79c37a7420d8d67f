package atif

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// What a foreign document says beyond what becomes records is kept in the
// import record, as a document of its own: all of the root, and of each step
// what Write would not make of the records again. So a document that was read
// is written as it was.

// keptOf is what an attempt keeps of the document it was read from; false where
// it was no document, or has been gone on with since.
func keptOf(t *trajectories.Transcript) (*Trajectory, bool) {
	if t.Import == nil || !strings.HasPrefix(t.Import.Format, "ATIF-") || len(t.Import.Extra) == 0 || t.Header.Origin != nil {
		return nil, false
	}
	kept := &Trajectory{}
	if json.Unmarshal(t.Import.Extra, kept) != nil || kept.SchemaVersion == "" {
		return nil, false
	}
	return kept, true
}

// restored puts what was kept around and into the steps.
func (b *builder) restored(kept *Trajectory) *Trajectory {
	doc := *kept
	doc.Steps = b.steps
	for _, k := range kept.Steps {
		if k.ID < 1 || k.ID > int64(len(doc.Steps)) {
			b.lost = append(b.lost, fmt.Sprintf("what was kept of step %d, which is not there", k.ID))
			continue
		}
		doc.Steps[k.ID-1].merge(k)
	}
	return &doc
}

// merge puts over a step what was kept of it.
func (s *Step) merge(k Step) {
	over(&s.Timestamp, k.Timestamp)
	over(&s.ModelName, k.ModelName)
	overList(&s.Effort, k.Effort)
	over(&s.Message, k.Message)
	over(&s.Reasoning, k.Reasoning)
	over(&s.Metrics, k.Metrics)
	over(&s.Copied, k.Copied)
	over(&s.LLMCalls, k.LLMCalls)
	overList(&s.Extra, k.Extra)
	if len(k.Calls) != len(s.Calls) {
		overList(&s.Calls, k.Calls)
	} else {
		for i, c := range k.Calls {
			overList(&s.Calls[i].Extra, c.Extra)
		}
	}
	if k.Observation == nil {
		return
	}
	if s.Observation == nil || len(k.Observation.Results) != len(s.Observation.Results) {
		s.Observation = k.Observation
		return
	}
	for i, r := range k.Observation.Results {
		of := &s.Observation.Results[i]
		over(&of.CallID, r.CallID)
		over(&of.Content, r.Content)
		overList(&of.Refs, r.Refs)
		overList(&of.Extra, r.Extra)
	}
}

func over[T any](p **T, kept *T) {
	if kept != nil {
		*p = kept
	}
}

func overList[L ~[]T, T any](p *L, kept L) {
	if kept != nil {
		*p = kept
	}
}

// beyond is what a step says that made, the step of the same records, does not;
// false where there is nothing.
func (s Step) beyond(made Step, d difference) (Step, bool) {
	k := Step{
		ID:        s.ID,
		Timestamp: only(d, "timestamp", s.Timestamp, made.Timestamp),
		ModelName: only(d, "model_name", s.ModelName, made.ModelName),
		Effort:    onlyList(d, "reasoning_effort", s.Effort, made.Effort),
		Message:   only(d, "message", s.Message, made.Message),
		Reasoning: only(d, "reasoning_content", s.Reasoning, made.Reasoning),
		Metrics:   only(d, "metrics", s.Metrics, made.Metrics),
		Copied:    s.Copied, LLMCalls: s.LLMCalls, Extra: s.Extra,
	}
	if len(s.Calls) != len(made.Calls) {
		k.Calls = onlyList(d, "tool_calls", s.Calls, made.Calls)
	} else if slices.ContainsFunc(s.Calls, func(c ToolCall) bool { return c.Extra != nil }) {
		for _, c := range s.Calls {
			k.Calls = append(k.Calls, ToolCall{ID: c.ID, Function: c.Function, Extra: c.Extra})
		}
	}
	k.Observation = only(d, "observation", s.Observation, made.Observation)
	if k.Observation != nil && made.Observation != nil && len(k.Observation.Results) == len(made.Observation.Results) {
		k.Observation = &Observation{Results: make([]Result, len(k.Observation.Results))}
		for i, r := range s.Observation.Results {
			m := made.Observation.Results[i]
			k.Observation.Results[i] = Result{
				CallID:  only(d, "source_call_id", r.CallID, m.CallID),
				Content: only(d, "content", r.Content, m.Content),
				Refs:    r.Refs, Extra: r.Extra,
			}
		}
	}
	return k, !bytes.Equal(formOf(k), formOf(Step{ID: s.ID}))
}

// difference counts the fields that Write adds, by their names.
type difference map[string]int

// only is what a step has where the one made of its records has another.
func only[T any](d difference, name string, is, made *T) *T {
	if is == nil && made != nil {
		d[name]++
	}
	if is == nil || bytes.Equal(formOf(is), formOf(made)) {
		return nil
	}
	return is
}

func onlyList[L ~[]T, T any](d difference, name string, is, made L) L {
	if len(is) == 0 && len(made) > 0 {
		d[name]++
	}
	if bytes.Equal(formOf(is), formOf(made)) {
		return nil
	}
	return is
}

func formOf(v any) []byte {
	data, err := encode(v)
	if err != nil { // of what was read there is always a form
		return nil
	}
	return data
}
