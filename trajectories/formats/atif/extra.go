package atif

import (
	"encoding/json"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// The following types are the "extra" data that mini writes.

// extraRoot is the extra data of a trajectory. The fields of the outcome, such as
// exit_status and submission, are at the top level.
type extraRoot struct {
	// Journal is the format of the journal. Only documents that mini wrote have it.
	Journal string `json:"journal"`
	Verdict string `json:"verdict,omitempty"`
	*trajectories.Outcome
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

// shellTools are the names that agents use for tools that run a bash command.
var shellTools = map[string]bool{
	"bash": true, "execute_bash": true, "run_bash": true, "shell": true, "run_shell_command": true,
	"execute_command": true, "run_command": true,
}

// shellCommands returns the shell commands of tool calls. It ignores input to running
// commands.
func shellCommands(calls []model.ToolCall) []string {
	var commands []string
	for _, c := range calls {
		var args struct {
			Command *string `json:"command"`
			Input   any     `json:"is_input"`
		}
		if shellTools[c.Name] && json.Unmarshal([]byte(c.Arguments), &args) == nil && args.Command != nil && args.Input != true && args.Input != "true" {
			commands = append(commands, *args.Command)
		}
	}
	return commands
}
