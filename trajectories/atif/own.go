package atif

import (
	"encoding/json"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// What follows is what mini puts into "extra": all that a journal says and the
// format has no field for, so that a journal can be made of it again. The names
// are those of the journal's records.

// ownRoot is the extra of a trajectory. Those of the outcome stand in it without
// a level of their own, as exit_status and submission.
type ownRoot struct {
	// Journal is the format of the journal, by which mini knows its own files.
	Journal string `json:"journal"`
	Verdict string `json:"verdict,omitempty"`
	*trajectories.Outcome
	Header  trajectories.Header   `json:"header"` // without the tools
	Import  *trajectories.Import  `json:"import,omitempty"`
	Diff    *trajectories.Diff    `json:"diff,omitempty"`
	Setup   []ownResult           `json:"setup,omitempty"`
	Failed  []trajectories.Call   `json:"failed_calls,omitempty"`
	Records []trajectories.Record `json:"records,omitempty"`
}

// ownStep is the extra of a step.
type ownStep struct {
	Record int `json:"record,omitempty"` // of the message, in the journal
	// Role and Cause are there where they do not follow from the source.
	Role  model.Role         `json:"role,omitempty"`
	Cause trajectories.Cause `json:"cause,omitempty"`
	// Actions are the commands of a reply, where its tool calls do not say them.
	Actions *[]string             `json:"actions,omitempty"`
	CallID  string                `json:"call_id,omitempty"`
	Images  []model.Image         `json:"images,omitempty"`
	Kept    json.RawMessage       `json:"kept,omitempty"`
	Call    *ownCall              `json:"call,omitempty"`
	Sent    *trajectories.Context `json:"sent,omitempty"`
	Context *contextManagement    `json:"context_management,omitempty"`
	// Compaction is the record that this step tells of: it is no message.
	Compaction int `json:"compaction,omitempty"`
}

// none is written for a cause that is empty.
const none trajectories.Cause = "none"

// contextManagement is a convention of the format, for what a step did to what
// the model sees.
type contextManagement struct {
	Type     string `json:"type"`
	Boundary string `json:"boundary"`
}

// ownCall is what metrics do not say of a call.
type ownCall struct {
	Finish   model.Finish           `json:"finish_reason,omitempty"`
	Start    time.Time              `json:"start"`
	Duration trajectories.Seconds   `json:"duration"`
	Waited   trajectories.Seconds   `json:"waited,omitempty"`
	Tries    int                    `json:"tries"`
	Attempts []trajectories.Attempt `json:"attempts,omitempty"`
	Cost     model.Cost             `json:"cost,omitempty"` // where the metrics have none
}

// ownToolCall is the extra of a tool call.
type ownToolCall struct {
	// Written says that the model wrote the command into its message: it used no
	// tool, and the id is made up.
	Written bool `json:"written,omitempty"`
	// ID is what the model called it, where the format does not allow that.
	ID *string `json:"id,omitempty"`
	// Arguments are the model's own text, where that is not the object's.
	Arguments *string `json:"arguments,omitempty"`
}

// ownResult is the extra of a result: the message of it, and the execution,
// whose fields stand without a level of their own.
type ownResult struct {
	Record int                `json:"record,omitempty"` // of the message
	Role   model.Role         `json:"role,omitempty"`   // where it is not that of an answer
	Cause  trajectories.Cause `json:"cause,omitempty"`  // where it is no observation
	Time   *time.Time         `json:"time,omitempty"`
	CallID string             `json:"call_id,omitempty"` // where no call of the step has it
	Images []model.Image      `json:"images,omitempty"`
	// Ran is the record of the execution; Command is there where no tool call
	// says it.
	Ran     int    `json:"execution,omitempty"`
	Command string `json:"command,omitempty"`
	// Tools are what the command asked for by mini-tool.
	Tools []ownTool `json:"tools,omitempty"`
	*trajectories.Execution
}

// ownTool is a record of what a command asked for.
type ownTool struct {
	Record int `json:"record,omitempty"`
	trajectories.ToolCall
}

func toolsOf(ran *trajectories.Ran) []ownTool {
	var all []ownTool
	for _, c := range ran.Tools {
		all = append(all, ownTool{c.Record, c.ToolCall})
	}
	return all
}

// shells are the tools that are given a command for bash, by the names that
// agents have for them.
var shells = map[string]bool{
	"bash": true, "execute_bash": true, "run_bash": true, "shell": true, "run_shell_command": true,
	"execute_command": true, "run_command": true,
}

// commandOf is the command that a call has bash run; false where it is for
// another tool, or input for a command that runs already.
func commandOf(function string, arguments []byte) (string, bool) {
	var a struct {
		Command *string `json:"command"`
		Input   any     `json:"is_input"`
	}
	if !shells[function] || json.Unmarshal(arguments, &a) != nil || a.Command == nil {
		return "", false
	}
	return *a.Command, a.Input != true && a.Input != "true"
}

// commandsOf are those of the calls of a reply.
func commandsOf(calls []model.Call) []string {
	var commands []string
	for _, c := range calls {
		if command, ok := commandOf(c.Name, []byte(c.Arguments)); ok {
			commands = append(commands, command)
		}
	}
	return commands
}
