package atif

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
)

// These functions are the rules for each object: its fields, and what they say
// of each other. The latter is looked at only where all fields are as they
// should be.

func (r *reader) trajectory(v json.RawMessage, at *place, depth int) *Trajectory {
	before := len(r.problems)
	o, ok := r.object(v, at)
	if !ok {
		return nil
	}
	t := &Trajectory{SchemaVersion: Version}
	if _, ok := o.fields["schema_version"]; ok { // which has a default, and may not be null
		t.SchemaVersion = required(o, "schema_version", version)
	} else {
		r.notes = append(r.notes, "it does not say which version of the format it is; it was read as "+Version)
	}
	t.SessionID = optional(o, "session_id", text)
	t.TrajectoryID = optional(o, "trajectory_id", text)
	t.Agent = required(o, "agent", agent)
	t.Steps = required(o, "steps", listOf(step))
	t.Notes = optional(o, "notes", text)
	if m := optional(o, "final_metrics", finalMetrics); m != nil {
		t.FinalMetrics = m
	}
	t.Continued = optional(o, "continued_trajectory_ref", text)
	t.Extra = raw(optional(o, "extra", mapping))
	t.Subagents = orEmpty(optional(o, "subagent_trajectories", listOf(
		func(r *reader, v json.RawMessage, at *place) (Trajectory, bool) {
			if depth+1 == maxNesting {
				r.wrong(at, "trajectories within trajectories, more than %d deep", maxNesting)
				return Trajectory{}, false
			}
			before := len(r.problems)
			sub := r.trajectory(v, at, depth+1)
			if sub == nil {
				return Trajectory{}, false
			}
			return *sub, len(r.problems) == before
		})))
	o.done()
	if t.Steps != nil && len(t.Steps) == 0 {
		r.wrong(at.in("steps"), "at least one step is needed")
	}
	if len(r.problems) == before {
		r.together(t, at)
	}
	return t
}

var versionPattern = regexp.MustCompile(`^ATIF-v1\.(0|[1-9][0-9]?)$`)

func version(r *reader, v json.RawMessage, at *place) (string, bool) {
	s, ok := text(r, v, at)
	if !ok {
		return "", false
	}
	minor := -1
	if m := versionPattern.FindStringSubmatch(s); m != nil {
		minor, _ = strconv.Atoi(m[1])
	}
	switch {
	case 0 <= minor && minor <= r.newest:
	case minor >= 0 && r.lenient:
		r.newer = true
		r.notes = append(r.notes, fmt.Sprintf("the version %s is newer than what is known; it was read as 1.%d", s, r.newest))
	default:
		r.wrong(at, "ATIF-v1.0 to ATIF-v1.%d are known, got %.60q", r.newest, s)
		return "", false
	}
	return s, true
}

func agent(r *reader, v json.RawMessage, at *place) (a Agent, ok bool) {
	o, ok := r.object(v, at)
	if !ok {
		return a, false
	}
	a.Name = required(o, "name", text)
	a.Version = required(o, "version", text)
	a.ModelName = optional(o, "model_name", text)
	a.Tools = orEmpty(optional(o, "tool_definitions", listOf(mapping)))
	a.Extra = raw(optional(o, "extra", mapping))
	o.done()
	return a, true
}

func finalMetrics(r *reader, v json.RawMessage, at *place) (m FinalMetrics, ok bool) {
	o, ok := r.object(v, at)
	if !ok {
		return m, false
	}
	m.Prompt = optional(o, "total_prompt_tokens", whole)
	m.Completion = optional(o, "total_completion_tokens", whole)
	m.Cached = optional(o, "total_cached_tokens", whole)
	m.Cost = optional(o, "total_cost_usd", number)
	m.Steps = optional(o, "total_steps", atLeast(0))
	m.Extra = raw(optional(o, "extra", mapping))
	o.done()
	return m, true
}

func step(r *reader, v json.RawMessage, at *place) (s Step, ok bool) {
	before := len(r.problems)
	o, ok := r.object(v, at)
	if !ok {
		return s, false
	}
	s.ID = required(o, "step_id", atLeast(1))
	s.Timestamp = optional(o, "timestamp", timestamp)
	s.Source = required(o, "source", oneOf(sourceSystem, sourceUser, sourceAgent))
	s.ModelName = optional(o, "model_name", text)
	s.Effort = raw(optional(o, "reasoning_effort", effort))
	message := required(o, "message", content)
	s.Message = &message
	s.Reasoning = optional(o, "reasoning_content", text)
	s.Calls = orEmpty(optional(o, "tool_calls", listOf(toolCall)))
	s.Observation = optional(o, "observation", observation)
	s.Metrics = optional(o, "metrics", metrics)
	s.Copied = optional(o, "is_copied_context", truth)
	s.LLMCalls = optional(o, "llm_call_count", atLeast(0))
	s.Extra = raw(optional(o, "extra", mapping))
	o.done()
	if len(r.problems) == before {
		r.step(s, at)
	}
	return s, len(r.problems) == before
}

// step holds the fields of a step against each other.
func (r *reader) step(s Step, at *place) {
	given := func(key string, is bool) bool {
		if is && s.Source != sourceAgent {
			r.wrong(at.in(key), "only steps of the source agent may have this, got %q", s.Source)
		}
		return is
	}
	given("model_name", s.ModelName != nil)
	given("reasoning_effort", s.Effort != nil)
	given("tool_calls", s.Calls != nil)
	thought := given("reasoning_content", s.Reasoning != nil)
	measured := given("metrics", s.Metrics != nil)
	if s.Source != sourceAgent || s.LLMCalls == nil || *s.LLMCalls > 0 {
		return
	}
	if measured {
		r.wrong(at.in("metrics"), "a step with llm_call_count 0 may have none")
	}
	if thought {
		r.wrong(at.in("reasoning_content"), "a step with llm_call_count 0 may have none")
	}
}

func toolCall(r *reader, v json.RawMessage, at *place) (c ToolCall, ok bool) {
	o, ok := r.object(v, at)
	if !ok {
		return c, false
	}
	c.ID = required(o, "tool_call_id", text)
	c.Function = required(o, "function_name", text)
	c.Arguments = required(o, "arguments", mapping)
	c.Extra = raw(optional(o, "extra", mapping))
	o.done()
	return c, true
}

func metrics(r *reader, v json.RawMessage, at *place) (m Metrics, ok bool) {
	o, ok := r.object(v, at)
	if !ok {
		return m, false
	}
	m.Prompt = optional(o, "prompt_tokens", whole)
	m.Completion = optional(o, "completion_tokens", whole)
	m.Cached = optional(o, "cached_tokens", whole)
	m.Cost = optional(o, "cost_usd", number)
	m.PromptIDs = orEmpty(optional(o, "prompt_token_ids", listOf(whole)))
	m.CompletionIDs = orEmpty(optional(o, "completion_token_ids", listOf(whole)))
	m.Logprobs = orEmpty(optional(o, "logprobs", listOf(number)))
	m.Extra = raw(optional(o, "extra", mapping))
	o.done()
	return m, true
}

func observation(r *reader, v json.RawMessage, at *place) (b Observation, ok bool) {
	o, ok := r.object(v, at)
	if !ok {
		return b, false
	}
	b.Results = required(o, "results", listOf(result))
	o.done()
	return b, true
}

func result(r *reader, v json.RawMessage, at *place) (res Result, ok bool) {
	o, ok := r.object(v, at)
	if !ok {
		return res, false
	}
	res.CallID = optional(o, "source_call_id", text)
	res.Content = optional(o, "content", content)
	res.Refs = orEmpty(optional(o, "subagent_trajectory_ref", listOf(ref)))
	res.Extra = raw(optional(o, "extra", mapping))
	o.done()
	return res, true
}

func ref(r *reader, v json.RawMessage, at *place) (f Ref, ok bool) {
	before := len(r.problems)
	o, ok := r.object(v, at)
	if !ok {
		return f, false
	}
	f.TrajectoryID = optional(o, "trajectory_id", text)
	f.Path = optional(o, "trajectory_path", text)
	f.SessionID = optional(o, "session_id", text)
	f.Extra = raw(optional(o, "extra", mapping))
	o.done()
	if len(r.problems) == before && f.TrajectoryID == nil && f.Path == nil && (!r.lenient || f.SessionID == nil) {
		r.wrong(at, "trajectory_id or trajectory_path is needed; a session_id alone finds nothing")
	}
	return f, true
}
