package trajectories

import (
	"encoding/json"
	"time"

	"github.com/minibench/mini/model"
)

// ToolCall is what a command asked for by mini-tool, and what it was answered. It
// precedes the execution of that command. What people and programs are to know
// beyond the answer is in Details.
type ToolCall struct {
	Name     string          `json:"name"`
	Args     []string        `json:"args,omitempty"` // after the name
	Input    Bytes           `json:"input,omitempty"`
	Dir      string          `json:"dir,omitempty"`
	Output   Bytes           `json:"output"`
	Errors   Bytes           `json:"errors,omitempty"`
	ExitCode int             `json:"returncode"`
	Start    time.Time       `json:"start"`
	Duration Seconds         `json:"duration"`
	Details  json.RawMessage `json:"details,omitempty"`
}

// Parent is the attempt that handed a part of its task to a child. InstanceID and
// Attempt of the child's header are the parent's.
type Parent struct {
	// Child counts the children of an attempt from 1; their own children have
	// numbers from the same row.
	Child int `json:"child"`
	// Journal is the parent's, as seen from the child's folder; empty where it has
	// no file.
	Journal string `json:"journal,omitempty"`
	// Step is the parent's model call whose command asked, Depth 1 for a child of
	// the attempt itself.
	Step  int `json:"step"`
	Depth int `json:"depth"`
	// Of is the child whose child this is; 0 for one of the attempt itself, whose
	// journal Journal is in any case.
	Of int `json:"of,omitempty"`
	// Task is what the child was asked to do; Skill and Profile are what it was
	// to do it with, where that was said.
	Task    string `json:"task"`
	Skill   string `json:"skill,omitempty"`
	Profile string `json:"profile,omitempty"`
}

// Child is what came of a child, as the details of the tool call that asked for it
// have it.
type Child struct {
	Child int `json:"child"`
	// Name is that of a step of a chain.
	Name string `json:"name,omitempty"`
	Task string `json:"task"`
	// Journal is the child's, as seen from the folder of its parent's, and SHA256
	// that of its bytes, in hex; both are empty where it has no file.
	Journal string `json:"journal,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	// Class and ExitStatus are those of the child's outcome, Steps, Usage and Cost
	// its totals.
	Class      Class       `json:"class"`
	ExitStatus string      `json:"exit_status"`
	Steps      int         `json:"steps"`
	Usage      model.Usage `json:"usage"`
	Cost       model.Cost  `json:"cost"`
	// Problem says why there is no report, or none that serves.
	Problem string `json:"problem,omitempty"`
}

// Children are those that a tool call made.
func (c ToolCall) Children() []Child {
	var d struct {
		Children []Child `json:"children"`
	}
	if len(c.Details) == 0 || json.Unmarshal(c.Details, &d) != nil {
		return nil
	}
	return d.Children
}

// Spent is one call of the model by a child, or by a child of one. It counts as a
// step of the attempt, and against its limits.
type Spent struct {
	Child int `json:"child"`
	// Summary says that it was a call for a summary, which costs, and is no step.
	Summary bool        `json:"summary,omitempty"`
	Usage   model.Usage `json:"usage"`
	Cost    model.Cost  `json:"cost"`
	Start   time.Time   `json:"start"`
	// Duration is that of the call, Waited the part of it that was spent waiting
	// for the provider.
	Duration Seconds `json:"duration"`
	Waited   Seconds `json:"waited,omitempty"`
}
