package runner

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Abilities are what the commands of a run could ask for beside the shell, and
// what was done to its conversations; what is off is left out.
type Abilities struct {
	Tools []Tool `json:"tools,omitempty"`
	// MCP are the servers whose tools are among Tools.
	MCP    []Server `json:"mcp,omitempty"`
	Skills []Skill  `json:"skills,omitempty"`
	// Notes is whose they are: "workspace" or "attempt".
	Notes string `json:"notes,omitempty"`
	// Compaction is the policy: "elide" or "summarize".
	Compaction string `json:"compaction,omitempty"`
	// Agents bounds the children of an attempt.
	Agents *Children `json:"agents,omitempty"`
}

// Tool is one that could be called. Kind says where it is done: "file" in the
// sandbox, "host" by a program beside mini, "mcp" by a server; "skill", "memory"
// and "agent" are mini's own.
type Tool struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// Server is a server of the Model Context Protocol, as it said of itself.
type Server struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version,omitempty"`
}

// Skill is one whose text could be asked for; SHA256 is of all its files.
type Skill struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
}

// Children are the bounds of delegation.
type Children struct {
	Depth     int      `json:"depth"`
	Max       int      `json:"max"`
	StepLimit int      `json:"step_limit,omitempty"`
	CostLimit float64  `json:"cost_limit,omitempty"`
	Profiles  []string `json:"profiles,omitempty"`
}

// changedAbilities says what the session before had otherwise that its settings
// need not show: tools, their servers, the texts of skills. It is empty where
// nothing is different.
func changedAbilities(old, now *Abilities) (changed []string) {
	if old == nil {
		old = &Abilities{}
	}
	if now == nil {
		now = &Abilities{}
	}
	for _, group := range []struct {
		name     string
		old, now map[string]string
	}{
		{"set of tools", named(old.Tools), named(now.Tools)},
		{"set of MCP servers", named(old.MCP), named(now.MCP)},
		{"set of skills", named(old.Skills), named(now.Skills)},
	} {
		all := maps.Clone(group.old)
		maps.Copy(all, group.now)
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return group.old[name] == group.now[name] })
		if more := len(names) - maxChanged; more > 0 {
			names = append(names[:maxChanged], fmt.Sprintf("and %d more", more))
		}
		if len(names) > 0 {
			changed = append(changed, group.name+" ("+strings.Join(names, ", ")+")")
		}
	}
	return changed
}

// named maps the names of a list to all that is known of each.
func named[T Tool | Server | Skill](list []T) map[string]string {
	by := map[string]string{}
	for _, one := range list {
		data, _ := json.Marshal(one) // of texts only
		var name struct{ Name string }
		_ = json.Unmarshal(data, &name)
		by[name.Name] = string(data)
	}
	return by
}
