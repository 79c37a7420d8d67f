package agent

import (
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/lazyregexp"
)

// Prompts are what a session would begin with, rendered without a model or a
// sandbox: info stands for what the sandbox would say of itself, can for what its
// commands could ask for.
func (a *Agent) Prompts(t Task, info env.Info, can Abilities) (system, instance string, err error) {
	vars := a.cfg.variables(t, info, can, 0, 0, 0)
	if system, err = a.templates.system.render(vars); err != nil {
		return "", "", err
	}
	instance, err = a.templates.instance.render(vars)
	return system, instance, err
}

// Untold are the abilities that neither the system nor the instance prompt says a
// word of, so that the model could not know of them: "tools", "skills" or both. A
// prompt tells of one by its variable, or by the name of the program and, for
// skills, of the tool that prints them.
func (a *Agent) Untold(can Abilities) (names []string) {
	said := a.cfg.SystemTemplate + "\n" + a.cfg.InstanceTemplate
	if len(can.Tools) > 0 && !toolsTold.MatchString(said) {
		names = append(names, "tools")
	}
	if len(can.Skills) > 0 && !skillsTold.MatchString(said) {
		names = append(names, "skills")
	}
	return names
}

var (
	toolsTold  = lazyregexp.New(`\.tools\b|\b` + env.ToolProgram + `\b`)
	skillsTold = lazyregexp.New(`\.skills\b|\b` + env.ToolProgram + ` skill\b`)
)
