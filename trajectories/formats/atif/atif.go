// Package atif writes the Agent Trajectory Interchange Format (ATIF). An attempt is one JSON
// document with a list of steps. A step is a message of the system, the user or the agent.
// The step of an agent's message also has the results of its tool calls.
//
//	losses, err := atif.Write(w, attempt, "resolved")
package atif

import (
	"encoding/json"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// WriteVersion is the version of documents that Write makes. It is the newest version that
// all known readers support.
const WriteVersion = "ATIF-v1.7"

// document is a trajectory. In this and the following types, nil pointers and empty optional
// values stand for missing fields.
type document struct {
	SchemaVersion string          `json:"schema_version"`
	SessionID     string          `json:"session_id,omitempty"`
	TrajectoryID  string          `json:"trajectory_id,omitempty"`
	Agent         agent           `json:"agent"`
	Notes         string          `json:"notes,omitempty"`
	Extra         json.RawMessage `json:"extra,omitempty"`
	FinalMetrics  finalMetrics    `json:"final_metrics"`
	Steps         []step          `json:"steps,omitempty"`
	Subagents     []document      `json:"subagent_trajectories,omitempty"`
}

// agent describes the agent that made a trajectory.
type agent struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	ModelName string `json:"model_name,omitempty"`
	Tools     []tool `json:"tool_definitions,omitempty"`
}

// tool is a tool definition in OpenAI's format.
type tool struct {
	Type     string               `json:"type"`
	Function model.ToolDefinition `json:"function"`
}

// finalMetrics are the totals of an attempt.
type finalMetrics struct {
	Prompt     *int64          `json:"total_prompt_tokens,omitempty"`
	Completion *int64          `json:"total_completion_tokens,omitempty"`
	Cached     *int64          `json:"total_cached_tokens,omitempty"`
	Cost       *float64        `json:"total_cost_usd,omitempty"`
	Steps      int             `json:"total_steps"`
	Extra      json.RawMessage `json:"extra,omitempty"`
}

// step is a message of the system, the user or the agent.
type step struct {
	ID          int          `json:"step_id"`
	Timestamp   string       `json:"timestamp,omitempty"`
	Source      string       `json:"source"`
	ModelName   string       `json:"model_name,omitempty"`
	Message     string       `json:"message"`
	Reasoning   string       `json:"reasoning_content,omitempty"`
	Calls       []toolCall   `json:"tool_calls,omitempty"`
	Observation *observation `json:"observation,omitempty"`
	Metrics     *metrics     `json:"metrics,omitempty"`
	// Copied is set if the step was copied from another trajectory and must not be
	// used for training again.
	Copied   bool            `json:"is_copied_context,omitempty"`
	LLMCalls int             `json:"llm_call_count,omitempty"` // number of model calls in this step
	Extra    json.RawMessage `json:"extra,omitempty"`
}

// toolCall is a call of a tool. Arguments is an object.
type toolCall struct {
	ID        string          `json:"tool_call_id"`
	Function  string          `json:"function_name"`
	Arguments json.RawMessage `json:"arguments"`
	Extra     json.RawMessage `json:"extra,omitempty"`
}

// observation has the results of the tool calls of a step.
type observation struct {
	Results []result `json:"results"`
}

// result is the result of a tool call.
type result struct {
	CallID  string          `json:"source_call_id,omitempty"`
	Content *string         `json:"content,omitempty"`
	Refs    []ref           `json:"subagent_trajectory_ref,omitempty"`
	Extra   json.RawMessage `json:"extra,omitempty"`
}

// ref refers to the trajectory of a subagent.
type ref struct {
	TrajectoryID string `json:"trajectory_id"`
}

// metrics are the usage, the cost and the tokens of a step. Numbers that are not known are missing.
type metrics struct {
	Prompt        *int64          `json:"prompt_tokens,omitempty"`
	Completion    *int64          `json:"completion_tokens,omitempty"`
	Cached        int64           `json:"cached_tokens,omitempty"`
	Cost          *float64        `json:"cost_usd,omitempty"`
	PromptIDs     []int32         `json:"prompt_token_ids,omitempty"`
	CompletionIDs []int32         `json:"completion_token_ids,omitempty"`
	Logprobs      []float64       `json:"logprobs,omitempty"`
	Extra         json.RawMessage `json:"extra,omitempty"`
}

// The following types are the "extra" data that mini writes.

// extraRoot is the extra data of a trajectory. The fields of the outcome, such as
// exit_status and submission, are at the top level.
type extraRoot struct {
	// Journal is the format of the journal. Only documents that mini wrote have it.
	Journal string `json:"journal"`
	Verdict string `json:"verdict,omitempty"`
	*trajectories.Outcome
	// Usage and Cost are written instead of those of Outcome; nil if unknown.
	Usage *model.Usage `json:"usage,omitempty"`
	Cost  *float64     `json:"cost,omitempty"`
	// Records are the records of the journal without provider responses, except those
	// to summaries.
	Records []trajectories.Record `json:"records"`
}

// extraStep is the extra data of a step that changed the context, as suggested by the ATIF
// specification.
type extraStep struct {
	Context contextManagement `json:"context_management"`
}

// contextManagement describes how a step changed the context.
type contextManagement struct {
	Type     string `json:"type"`
	Boundary string `json:"boundary"`
}

// extraToolCall is the extra data of a tool call. Written is set if the command was in the
// text of the reply and Write made the tool call, including its ID.
type extraToolCall struct {
	Written bool `json:"written,omitempty"`
}

// extraResult is the extra data of a result.
type extraResult struct {
	Cause    trajectories.Cause   `json:"cause,omitempty"` // cause of the message unless it is an observation
	ExitCode *int                 `json:"returncode,omitempty"`
	Duration trajectories.Seconds `json:"duration,omitempty"`
	TimedOut bool                 `json:"timed_out,omitempty"`
}

// extraMetrics is the extra data of metrics: counts for which ATIF has no field.
type extraMetrics struct {
	Reasoning      int64 `json:"reasoning_tokens,omitempty"`
	CacheWrite     int64 `json:"cache_write_tokens,omitempty"`
	CacheWriteHour int64 `json:"cache_write_hour_tokens,omitempty"`
	Unpriced       int64 `json:"unpriced_calls,omitempty"`
}
