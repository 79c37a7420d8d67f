package agent

import (
	"github.com/minibench/mini/env"
)

// Prompts are what a session would begin with, rendered without a model or a
// sandbox: info stands for what the sandbox would say of itself.
func (a *Agent) Prompts(t Task, info env.Info) (system, instance string, err error) {
	vars := a.cfg.variables(t, info, Abilities{}, 0, 0, 0)
	if system, err = a.templates.system.render(vars); err != nil {
		return "", "", err
	}
	instance, err = a.templates.instance.render(vars)
	return system, instance, err
}
