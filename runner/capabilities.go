package runner

import "slices"

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

// changedCapabilities names the sets that differ between two sessions: tools,
// MCP servers or skills. These can change while the settings stay the same.
// Other capabilities are not compared.
func changedCapabilities(old, current *Capabilities) (changed []string) {
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
