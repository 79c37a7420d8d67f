package trajectories

import (
	"encoding/json"
	"time"
)

// ToolCall is a mini-tool request of a command and the response. It precedes the
// execution of the command. Details is tool-specific data for viewers and programs.
type ToolCall struct {
	Name     string          `json:"name"`
	Args     []string        `json:"args,omitempty"` // without the name
	Input    Bytes           `json:"input,omitempty"`
	Dir      string          `json:"dir,omitempty"`
	Output   Bytes           `json:"output"`
	Errors   Bytes           `json:"errors,omitempty"`
	ExitCode int             `json:"returncode"`
	Start    time.Time       `json:"start"`
	Duration Seconds         `json:"duration"`
	Details  json.RawMessage `json:"details,omitempty"`
}

// Children returns the results of the children that a tool call started.
func (c ToolCall) Children() []ChildResult {
	var d struct {
		Children []ChildResult `json:"children"`
	}
	if len(c.Details) == 0 || json.Unmarshal(c.Details, &d) != nil {
		return nil
	}
	return d.Children
}
