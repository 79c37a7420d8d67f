package configs

import (
	"embed"
	"os"
	"slices"
	"strings"
)

// Agents that need no model: AgentOracle runs the solution of a task, AgentNop does
// nothing.
const (
	AgentOracle = "oracle"
	AgentNop    = "nop"
)

// ownAgentClasses are the names of mini's own agent: its own, and those of the classes of
// mini-swe-agent whose place it takes.
var ownAgentClasses = []string{"mini", "default", "defaultagent", "interactive", "interactiveagent"}

// agentClass returns the value of agent.agent_class without aliases: "" is mini's own agent.
func agentClass(name string) string {
	if slices.Contains(ownAgentClasses, shortClass(name)) {
		return ""
	}
	return name
}

// UsesOtherAgent reports whether an agent other than mini's own asks the model.
func (c Config) UsesOtherAgent() bool { return c.Agent.Class != "" && c.UsesModel() }

//go:embed agents/*.yaml
var agentFiles embed.FS

// OtherAgents returns the names of the agents that mini has definitions of.
func OtherAgents() []string {
	var names []string
	entries, _ := agentFiles.ReadDir("agents") // embedded
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), yamlExt))
	}
	return names
}

// AgentDefinition returns the definition of an agent, which NAME or FILE names; see package
// agent/external. The error wraps os.ErrNotExist if there is none.
func AgentDefinition(name string) ([]byte, error) {
	if slices.Contains(OtherAgents(), name) {
		return agentFiles.ReadFile("agents/" + name + yamlExt)
	}
	return os.ReadFile(name) //nolint:gosec // G304: reading the named file is the purpose
}

// UsesModel reports whether the agent asks a model.
func (c Config) UsesModel() bool {
	return c.Agent.Class != AgentOracle && c.Agent.Class != AgentNop
}
