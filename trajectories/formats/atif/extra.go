package atif

import (
	"encoding/json"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// The following types are the "extra" data that mini writes.

// extraRoot is the extra of a trajectory. The fields of the outcome, such as
// exit_status and submission, are at the top level.
type extraRoot struct {
	// Journal is the format of the journal; it marks documents that mini wrote.
	// Records are the journal without the responses of providers.
	Journal string `json:"journal"`
	Verdict string `json:"verdict,omitempty"`
	*trajectories.Outcome
	Records []trajectories.Record `json:"records"`
}

// extraStep is the extra of a step, as the ATIF specification suggests it: how the
// step changed the context.
type extraStep struct {
	Context contextManagement `json:"context_management"`
}

type contextManagement struct {
	Type     string `json:"type"`
	Boundary string `json:"boundary"`
}

// extraToolCall is the extra of a tool call. Written is set if the command was in the
// text of the reply, so the ID is not the model's.
type extraToolCall struct {
	Written bool `json:"written,omitempty"`
}

// extraResult is the extra of a result: how the execution ended, or why there was
// none.
type extraResult struct {
	Cause    trajectories.Cause   `json:"cause,omitempty"`
	ExitCode *int                 `json:"returncode,omitempty"`
	Duration trajectories.Seconds `json:"duration,omitempty"`
	TimedOut bool                 `json:"timed_out,omitempty"`
}

// shellTools are the names that agents use for tools that run a bash command.
var shellTools = map[string]bool{
	"bash": true, "execute_bash": true, "run_bash": true, "shell": true, "run_shell_command": true,
	"execute_command": true, "run_command": true,
}

// commandsOf returns the shell commands of tool calls. It ignores input to running
// commands.
func commandsOf(calls []model.ToolCall) []string {
	var commands []string
	for _, c := range calls {
		var a struct {
			Command *string `json:"command"`
			Input   any     `json:"is_input"`
		}
		if shellTools[c.Name] && json.Unmarshal([]byte(c.Arguments), &a) == nil && a.Command != nil && a.Input != true && a.Input != "true" {
			commands = append(commands, *a.Command)
		}
	}
	return commands
}
