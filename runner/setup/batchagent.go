package setup

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/harborrun"
)

// AgentClasses are the values of agent.agent_class.
var AgentClasses = []string{"mini", configs.AgentOracle, configs.AgentNop}

// NewBatchAgent returns the agent of a batch: the one that agent.agent_class names. The
// rows are those of NewAgent.
func NewBatchAgent(cfg *configs.Resolved, rows []datasets.Instance) (runner.Agent, error) {
	switch name := cfg.Agent.Class; name {
	case "":
		return NewAgent(cfg, rows)
	case configs.AgentOracle:
		return harborrun.Oracle{}, nil
	case configs.AgentNop:
		return harborrun.Nop{}, nil
	default:
		text := fmt.Sprintf("%.60q is not one of %s", name, strings.Join(AgentClasses, ", "))
		if best := configs.ClosestName(name, AgentClasses); best != "" {
			text += "; did you mean " + best + "?"
		}
		return nil, cfg.KeyErrors(configs.KeyError{Key: "agent.agent_class", Text: text})
	}
}

// checkOwnAgent returns an error if the configuration names another agent than mini's own.
func checkOwnAgent(cfg *configs.Resolved) error {
	if cfg.Agent.Class == "" {
		return nil
	}
	return usage.Errorf("agent.agent_class: %.60s runs only in a batch; leave it out, or run mini bench --agent NAME", cfg.Agent.Class)
}
