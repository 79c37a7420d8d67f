package setup

import (
	"fmt"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
)

// NewAgent returns the agent of a configuration. It renders the prompts for every row to find
// template errors before the first model call.
func NewAgent(cfg *configs.Resolved, rows []datasets.Instance) (*agent.Agent, error) {
	if err := checkOwnAgent(cfg); err != nil {
		return nil, err
	}
	return newAgent(cfg, rows)
}

// newAgent is NewAgent for any class of agent: others use the limits and the settings of
// the diff.
func newAgent(cfg *configs.Resolved, rows []datasets.Instance) (*agent.Agent, error) {
	for _, set := range []func(*configs.Resolved) error{setImages, setWindow} {
		if err := set(cfg); err != nil {
			return nil, err
		}
	}
	a, err := agent.New(cfg.Agent)
	if err != nil {
		return nil, cfg.Locate(err)
	}
	for _, in := range rows {
		if err := a.CheckTask(agent.Task{Text: in.ProblemStatement, Instance: in.Fields()}); err != nil {
			return nil, fmt.Errorf("%w (instance %s)", cfg.Locate(err), in.ID)
		}
	}
	return a, nil
}
