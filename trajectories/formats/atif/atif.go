// Package atif reads, checks and writes the Agent Trajectory Interchange Format
// (ATIF), versions 1.0 to 1.8. An attempt is one JSON document with a list of steps. A
// step is a message of the system, the user or the agent. The step of an agent's message
// also has the results of its tool calls.
//
// Check validates a document, Write converts an attempt to a document, and Read
// converts a document to the records of a journal. Write and Read report information that
// the other format cannot represent.
//
//	for _, p := range atif.Check(data, atif.LatestSpec) { fmt.Println(p.Path, p.Reason) }
//	losses, err := atif.Write(w, attempt, "resolved")
//	f, err := atif.Read("trajectory.json", data)
package atif

import (
	"encoding/json"

	"github.com/minibench/mini/trajectories"
)

// WriteVersion is the version of documents that Write makes. It is the newest version that
// all known readers support.
const WriteVersion = "ATIF-v1.7"

// The sources of steps.
const (
	sourceSystem = "system"
	sourceUser   = "user"
	sourceAgent  = "agent"
)

// Trajectory is a document. In this and the following types, nil pointers and empty
// optional values stand for missing fields. The tag "schema" is that of package schema.
type Trajectory struct {
	SchemaVersion string          `json:"schema_version" schema:"notnull,format=version"`
	SessionID     *string         `json:"session_id,omitempty"`
	TrajectoryID  *string         `json:"trajectory_id,omitempty"`
	Agent         Agent           `json:"agent" schema:"required"`
	Notes         *string         `json:"notes,omitempty"`
	Extra         json.RawMessage `json:"extra,omitempty" schema:"object"`
	FinalMetrics  *FinalMetrics   `json:"final_metrics,omitempty"`
	Continuation  *string         `json:"continued_trajectory_ref,omitempty"` // the trajectory that continues this one
	Steps         []Step          `json:"steps,omitempty" schema:"required"`
	Subagents     []Trajectory    `json:"subagent_trajectories,omitempty"`
}

// Agent describes the agent that made a trajectory.
type Agent struct {
	Name      string            `json:"name" schema:"required"`
	Version   string            `json:"version" schema:"required"`
	ModelName *string           `json:"model_name,omitempty"`
	Tools     []json.RawMessage `json:"tool_definitions,omitempty" schema:"object"`
	Extra     json.RawMessage   `json:"extra,omitempty" schema:"object"`
}

// FinalMetrics are the totals of an attempt.
type FinalMetrics struct {
	Prompt     *int64          `json:"total_prompt_tokens,omitempty"`
	Completion *int64          `json:"total_completion_tokens,omitempty"`
	Cached     *int64          `json:"total_cached_tokens,omitempty"`
	Cost       *float64        `json:"total_cost_usd,omitempty"`
	Steps      *int64          `json:"total_steps,omitempty" schema:"min=0"`
	Extra      json.RawMessage `json:"extra,omitempty" schema:"object"`
}

// Step is a message of the system, the user or the agent.
type Step struct {
	ID        int64   `json:"step_id" schema:"required,min=1"`
	Timestamp *string `json:"timestamp,omitempty" schema:"format=time"`
	Source    string  `json:"source,omitempty" schema:"required,one=system|user|agent"`
	ModelName *string `json:"model_name,omitempty"`
	// Effort is the reasoning effort, a string or a number.
	Effort      json.RawMessage `json:"reasoning_effort,omitempty" schema:"scalar"`
	Message     *Content        `json:"message,omitempty" schema:"required"`
	Reasoning   *string         `json:"reasoning_content,omitempty"`
	Calls       []ToolCall      `json:"tool_calls,omitempty"`
	Observation *Observation    `json:"observation,omitempty"`
	Metrics     *Metrics        `json:"metrics,omitempty"`
	// Copied is set if the step was copied from another trajectory and must not be
	// used for training again.
	Copied *bool `json:"is_copied_context,omitempty"`
	// LLMCalls is the number of model calls in this step. It is 0 if a program and not
	// a model produced the step.
	LLMCalls *int64          `json:"llm_call_count,omitempty" schema:"min=0"`
	Extra    json.RawMessage `json:"extra,omitempty" schema:"object"`
}

// ToolCall is a call of a tool. Arguments is an object.
type ToolCall struct {
	ID        string          `json:"tool_call_id" schema:"required"`
	Function  string          `json:"function_name" schema:"required"`
	Arguments json.RawMessage `json:"arguments,omitempty" schema:"required,object"`
	Extra     json.RawMessage `json:"extra,omitempty" schema:"object"`
}

// Observation has the results of the tool calls of a step.
type Observation struct {
	Results []Result `json:"results" schema:"required"`
}

// Result is the result of a tool call.
type Result struct {
	CallID  *string         `json:"source_call_id,omitempty"`
	Content *Content        `json:"content,omitempty"`
	Refs    []Ref           `json:"subagent_trajectory_ref,omitempty"`
	Extra   json.RawMessage `json:"extra,omitempty" schema:"object"`
}

// Ref refers to the trajectory of a subagent.
type Ref struct {
	TrajectoryID *string         `json:"trajectory_id,omitempty"`
	Path         *string         `json:"trajectory_path,omitempty"`
	SessionID    *string         `json:"session_id,omitempty"`
	Extra        json.RawMessage `json:"extra,omitempty" schema:"object"`
}

// Metrics are the usage and cost of a step.
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

// Content is the content of a message or a result: a string or a list of parts.
type Content struct {
	Text  string
	Parts []Part // nil for a string
}

// MarshalJSON implements json.Marshaler.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.Parts != nil {
		return trajectories.EncodeJSON(c.Parts)
	}
	return trajectories.EncodeJSON(c.Text)
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Content) UnmarshalJSON(data []byte) error {
	if trajectories.JSONKind(data) == "a list" {
		return json.Unmarshal(data, &c.Parts)
	}
	return json.Unmarshal(data, &c.Text)
}

// Part is an element of a content.
type Part struct {
	Type   string  `json:"type" schema:"required"` // "text", "image" or, since 1.8, "audio"
	Text   *string `json:"text,omitempty"`
	Source *Source `json:"source,omitempty"`
}

// Source is the file of an image or audio part. Path may be a data URL.
type Source struct {
	MediaType string   `json:"media_type" schema:"required"`
	Path      string   `json:"path" schema:"required"`
	Duration  *float64 `json:"duration_sec,omitempty"` // of audio
}
