// Package atif reads, checks and writes the Agent Trajectory Interchange
// Format, versions 1.0 to 1.8: one JSON document an attempt, whose steps are
// turns of the system, the user or the agent; what an action gave stands in the
// step of the action.
//
// Check holds a document against the rules, Write makes one of an attempt, and
// Read makes the records of a journal of anybody's. What one of the two formats
// cannot hold is named, a sentence each, never left out in silence.
//
//	for _, p := range atif.Check(data, atif.Newest) { fmt.Println(p.Path, p.Reason) }
//	lost, err := atif.Write(w, transcript, "resolved")
//	f, err := atif.Read("trajectory.json", data)
package atif

import (
	"encoding/json"

	"github.com/minibench/mini/trajectories"
)

// Version is what Write writes: the newest that every reader of the format
// knows.
const Version = "ATIF-v1.7"

// The sources of steps.
const (
	sourceSystem = "system"
	sourceUser   = "user"
	sourceAgent  = "agent"
)

// Trajectory is a document. A pointer that is nil, and an empty list or text
// that may be left out, stand for a field that is not there.
type Trajectory struct {
	SchemaVersion string          `json:"schema_version" schema:"notnull,format=version"`
	SessionID     *string         `json:"session_id,omitempty"`
	TrajectoryID  *string         `json:"trajectory_id,omitempty"`
	Agent         Agent           `json:"agent" schema:"required"`
	Notes         *string         `json:"notes,omitempty"`
	Extra         json.RawMessage `json:"extra,omitempty" schema:"object"`
	FinalMetrics  *FinalMetrics   `json:"final_metrics,omitempty"`
	Continued     *string         `json:"continued_trajectory_ref,omitempty"`
	Steps         []Step          `json:"steps,omitempty" schema:"required"`
	Subagents     []Trajectory    `json:"subagent_trajectories,omitempty"`
}

// Agent says who made a trajectory.
type Agent struct {
	Name      string            `json:"name" schema:"required"`
	Version   string            `json:"version" schema:"required"`
	ModelName *string           `json:"model_name,omitempty"`
	Tools     []json.RawMessage `json:"tool_definitions,omitempty" schema:"object"`
	Extra     json.RawMessage   `json:"extra,omitempty" schema:"object"`
}

// FinalMetrics are totals.
type FinalMetrics struct {
	Prompt     *int64          `json:"total_prompt_tokens,omitempty"`
	Completion *int64          `json:"total_completion_tokens,omitempty"`
	Cached     *int64          `json:"total_cached_tokens,omitempty"`
	Cost       *float64        `json:"total_cost_usd,omitempty"`
	Steps      *int64          `json:"total_steps,omitempty" schema:"min=0"`
	Extra      json.RawMessage `json:"extra,omitempty" schema:"object"`
}

// Step is a turn.
type Step struct {
	ID        int64   `json:"step_id" schema:"required,min=1"`
	Timestamp *string `json:"timestamp,omitempty" schema:"format=time"`
	Source    string  `json:"source,omitempty" schema:"required,one=system|user|agent"`
	ModelName *string `json:"model_name,omitempty"`
	// Effort is a string or a number.
	Effort      json.RawMessage `json:"reasoning_effort,omitempty" schema:"scalar"`
	Message     *Content        `json:"message,omitempty" schema:"required"`
	Reasoning   *string         `json:"reasoning_content,omitempty"`
	Calls       []ToolCall      `json:"tool_calls,omitempty"`
	Observation *Observation    `json:"observation,omitempty"`
	Metrics     *Metrics        `json:"metrics,omitempty"`
	// Copied says that the step was taken over from another trajectory: nobody
	// is to be trained on it again.
	Copied *bool `json:"is_copied_context,omitempty"`
	// LLMCalls counts the calls of a model in this step; 0 are those of a
	// program, not of a model.
	LLMCalls *int64          `json:"llm_call_count,omitempty" schema:"min=0"`
	Extra    json.RawMessage `json:"extra,omitempty" schema:"object"`
}

// ToolCall is one use of a tool. Arguments are an object.
type ToolCall struct {
	ID        string          `json:"tool_call_id" schema:"required"`
	Function  string          `json:"function_name" schema:"required"`
	Arguments json.RawMessage `json:"arguments,omitempty" schema:"required,object"`
	Extra     json.RawMessage `json:"extra,omitempty" schema:"object"`
}

// Observation is what the actions of a step gave.
type Observation struct {
	Results []Result `json:"results" schema:"required"`
}

// Result is what one action gave.
type Result struct {
	CallID  *string         `json:"source_call_id,omitempty"`
	Content *Content        `json:"content,omitempty"`
	Refs    []Ref           `json:"subagent_trajectory_ref,omitempty"`
	Extra   json.RawMessage `json:"extra,omitempty" schema:"object"`
}

// Ref points to the trajectory of another agent.
type Ref struct {
	TrajectoryID *string         `json:"trajectory_id,omitempty"`
	Path         *string         `json:"trajectory_path,omitempty"`
	SessionID    *string         `json:"session_id,omitempty"`
	Extra        json.RawMessage `json:"extra,omitempty" schema:"object"`
}

// Metrics say what a step took.
type Metrics struct {
	Prompt        *int64          `json:"prompt_tokens,omitempty"`
	Completion    *int64          `json:"completion_tokens,omitempty"`
	Cached        *int64          `json:"cached_tokens,omitempty"`
	Cost          *float64        `json:"cost_usd,omitempty"`
	PromptIDs     []int64         `json:"prompt_token_ids,omitempty"`
	CompletionIDs []int64         `json:"completion_token_ids,omitempty"`
	Logprobs      []float64       `json:"logprobs,omitempty"`
	Extra         json.RawMessage `json:"extra,omitempty" schema:"object"`
}

// Content is a text, or parts.
type Content struct {
	Text  string
	Parts []Part // nil for a text
}

// MarshalJSON implements json.Marshaler.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.Parts != nil {
		return trajectories.Encode(c.Parts)
	}
	return trajectories.Encode(c.Text)
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Content) UnmarshalJSON(data []byte) error {
	if trajectories.KindOf(data) == "a list" {
		return json.Unmarshal(data, &c.Parts)
	}
	return json.Unmarshal(data, &c.Text)
}

// Part is a piece of a content.
type Part struct {
	Type   string  `json:"type" schema:"required"` // "text", "image" or, from 1.8 on, "audio"
	Text   *string `json:"text,omitempty"`
	Source *Source `json:"source,omitempty"`
}

// Source says where the data of a part is.
type Source struct {
	MediaType string   `json:"media_type" schema:"required"`
	Path      string   `json:"path" schema:"required"`
	Duration  *float64 `json:"duration_sec,omitempty"` // of audio
}
