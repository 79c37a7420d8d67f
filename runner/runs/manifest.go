package runs

import (
	"fmt"
	"slices"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// MaxRepetitions is the maximum number of repetitions of an instance.
const MaxRepetitions = 10_000

// ImportedClass is the model class in the run.json of imported attempts.
const ImportedClass = "imported"

// Manifest is run.json: the configuration, dataset and version of a run.
type Manifest struct {
	Format string `json:"format"`
	// Sessions has one entry for each start of mini on this folder, oldest first.
	// The other fields, except Images, describe the newest session.
	Sessions    []Session    `json:"sessions"`
	MiniVersion string       `json:"mini_version"`
	ConfigHash  string       `json:"config_sha256"` // SHA-256 of config.yaml
	Dataset     Dataset      `json:"dataset"`
	Model       ClassAndName `json:"model"`
	Environment ClassAndName `json:"environment"`
	// AgentFolderSHA256 is the hash of the folder of another agent; "" if it has none.
	AgentFolderSHA256 string `json:"agent_folder_sha256,omitempty"`
	// Command are the arguments that continue the run, for mini report; empty if they may contain a secret.
	Command []string `json:"command,omitempty"`
	// Profile is the name of the configuration profile.
	Profile string `json:"profile,omitempty"`
	// Capabilities are the agent's features beyond the shell; null if none.
	Capabilities *Capabilities     `json:"abilities,omitempty"`
	Images       map[string]string `json:"images,omitempty"` // of all sessions: name -> digest or, without one, ID
}

// Session is one start of mini on a run's folder.
type Session struct {
	MiniVersion string `json:"mini_version"`
	ConfigHash  string `json:"config_sha256"`
	// InstanceCount is the number of instances requested; 0 in older files.
	InstanceCount int                   `json:"selected,omitempty"`
	Editions      []datasets.SourceInfo `json:"editions,omitempty"` // the datasets of the rows
	Started       time.Time             `json:"started"`
	Ended         *time.Time            `json:"ended"` // null while running, or if mini was killed
	Summary       *Summary              `json:"summary,omitempty"`
}

// Selected returns the largest number of instances requested by a session.
func (m Manifest) Selected() int {
	largest := m.Dataset.Selected
	for _, s := range m.Sessions {
		largest = max(largest, s.InstanceCount)
		if s.Summary != nil {
			largest = max(largest, s.Summary.Instances)
		}
	}
	return largest
}

// Repetitions returns the largest number of repetitions in a completed session, at
// least 1 and at most MaxRepetitions.
func (m Manifest) Repetitions() int {
	largest := 1
	for _, s := range m.Sessions {
		if s.Summary != nil {
			largest = max(largest, min(s.Summary.Repetitions, MaxRepetitions))
		}
	}
	return largest
}

// Dataset describes the selected rows and their source.
type Dataset struct {
	Name      string                `json:"name"`
	Editions  []datasets.SourceInfo `json:"editions"` // one for each dataset
	Rows      int                   `json:"rows"`     // distinct instance IDs in all datasets
	Selected  int                   `json:"selected"`
	Selection any                   `json:"selection,omitempty"`
}

// ClassAndName is the class of a component and its name.
type ClassAndName struct {
	Class string `json:"class"`
	Name  string `json:"name,omitempty"`
}

// Summary is the result of a run.
type Summary struct {
	Instances       int                        `json:"instances"`                // requested
	Repetitions     int                        `json:"samples,omitempty"`        // per instance, if more than one; the next fields count repetitions
	Skipped         int                        `json:"skipped"`                  // had a result before
	Classes         map[trajectories.Class]int `json:"classes"`                  // of all requested
	Unstarted       int                        `json:"unstarted"`                // without an ended attempt
	KeptSandboxes   int                        `json:"kept,omitempty"`           // number of sandboxes kept
	Cost            *model.Cost                `json:"cost"`                     // of this run's attempts; null if no cost is known
	Unpriced        int64                      `json:"unpriced_calls,omitempty"` // calls of unknown cost
	BudgetExhausted bool                       `json:"budget_exhausted,omitempty"`
	Halt            *HaltError                 `json:"halt,omitempty"`    // why the run was stopped
	Drained         bool                       `json:"drained,omitempty"` // ended early by a drain request
	Elapsed         time.Duration              `json:"-"`
}

// KnownCost returns the cost, or 0 if it is unknown.
func (s Summary) KnownCost() model.Cost {
	if s.Cost == nil {
		return 0
	}
	return *s.Cost
}

// ExpectedResults returns the number of results requested.
func (s Summary) ExpectedResults() int { return s.Instances * max(1, s.Repetitions) }

// Results returns the number of results.
func (s Summary) Results() int {
	return s.Classes[trajectories.Submitted] + s.Classes[trajectories.Limit]
}

// Complete reports whether all results are present.
func (s Summary) Complete() bool { return s.Results() == s.ExpectedResults() }

// Capabilities are the features available to the agent beyond the shell. Disabled
// features are omitted.
type Capabilities struct {
	Tools []Tool `json:"tools,omitempty"`
	// MCP are the servers that provide some of Tools.
	MCP    []MCPServer `json:"mcp,omitempty"`
	Skills []Skill     `json:"skills,omitempty"`
	// NotesScope is the scope of notes: "workspace" or "attempt".
	NotesScope string `json:"notes,omitempty"`
	// Compaction is the compaction policy: "elide" or "summarize".
	Compaction string `json:"compaction,omitempty"`
	// Subagents are the limits of delegation.
	Subagents *SubagentLimits `json:"agents,omitempty"`
}

// Tool is a tool of the agent. Its Kind is "file" (runs in the sandbox), "host"
// (a program on the host), "mcp" (in an MCP server), or one of the built-in kinds
// "skill", "memory" and "agent".
type Tool struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// MCPServer is the name and version that an MCP server reports about itself.
type MCPServer struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version,omitempty"`
}

// Skill is a skill of the agent; SHA256 covers all its files.
type Skill struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
}

// SubagentLimits are the limits of delegation to subagents: Depth of their
// nesting, MaxChildren of one attempt at all depths together, StepLimit and
// CostLimit (US dollars) of each subagent.
type SubagentLimits struct {
	Depth       int      `json:"depth"`
	MaxChildren int      `json:"max"`
	StepLimit   int      `json:"step_limit,omitempty"`
	CostLimit   float64  `json:"cost_limit,omitempty"`
	Profiles    []string `json:"profiles,omitempty"`
}

// ChangedCapabilities names the sets that differ between two sessions: tools,
// MCP servers or skills. These can change while the settings stay the same.
// Other capabilities are not compared.
func ChangedCapabilities(old, current *Capabilities) (changed []string) {
	if old == nil {
		old = &Capabilities{}
	}
	if current == nil {
		current = &Capabilities{}
	}
	for _, group := range []struct {
		name string
		same bool
	}{
		{"set of tools", sameSet(old.Tools, current.Tools)},
		{"set of MCP servers", sameSet(old.MCP, current.MCP)},
		{"set of skills", sameSet(old.Skills, current.Skills)},
	} {
		if !group.same {
			changed = append(changed, group.name)
		}
	}
	return changed
}

// sameSet reports whether two lists without duplicates have the same items.
func sameSet[T comparable](a, b []T) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(item T) bool { return !slices.Contains(b, item) })
}

// HaltError reports that the circuit breaker stopped a batch. It interrupts the
// running attempts; the next start of mini on the folder retries them.
type HaltError struct {
	Failures   int    `json:"failures"` // consecutive instances
	ExitStatus string `json:"exit_status"`
	Reason     string `json:"error"`          // of the last failure
	Hint       string `json:"hint,omitempty"` // instruction for the user
}

func (h *HaltError) Error() string {
	if h.ExitStatus == string(env.SandboxRefused) {
		return "stopped: " + withHint(h.Reason, h.Hint)
	}
	instances := fmt.Sprintf("%d instances in a row", h.Failures)
	if h.Failures == 1 {
		instances = "an instance"
	}
	text := fmt.Sprintf("stopped: %s failed at the model's provider, the last with %s", instances, h.Reason)
	return withHint(text, h.Hint)
}

func withHint(text, hint string) string {
	if hint != "" {
		text += "; " + hint
	}
	return text
}

// Unwrap returns agent.ErrInterrupted: attempts that HaltError ends are
// interrupted.
func (h *HaltError) Unwrap() error { return agent.ErrInterrupted }
