package configs

import "slices"

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

// UsesModel reports whether the agent asks a model.
func (c Config) UsesModel() bool {
	return c.Agent.Class != AgentOracle && c.Agent.Class != AgentNop
}
