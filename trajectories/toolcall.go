package trajectories

import (
	"encoding/json"
	"time"
)

// ToolCall is a mini-tool request that a command made, and the response. It precedes the
// execution of the command. Details is data in a form that depends on the tool; it is
// not sent to the model.
type ToolCall struct {
	Name     string          `json:"name"`
	Args     []string        `json:"args,omitempty"` // without the name of the tool
	Input    Bytes           `json:"input,omitempty"`
	Dir      string          `json:"dir,omitempty"`
	Output   Bytes           `json:"output"`
	Errors   Bytes           `json:"errors,omitempty"`
	ExitCode int             `json:"returncode"`
	Start    time.Time       `json:"start"`
	Duration Seconds         `json:"duration"`
	Details  json.RawMessage `json:"details,omitempty"`
}

// Children returns the results of the children that the tool call started.
func (c ToolCall) Children() []ChildResult {
	var details struct {
		Children []ChildResult `json:"children"`
	}
	if len(c.Details) == 0 || json.Unmarshal(c.Details, &details) != nil {
		return nil
	}
	return details.Children
}
