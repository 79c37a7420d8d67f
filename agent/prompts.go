package agent

import (
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/lazyregexp"
)

// RenderPrompts renders the first prompts of a session without a model or a
// sandbox. info describes the sandbox, caps the tools and skills that commands
// can use.
func (a *Agent) RenderPrompts(t Task, info env.Info, caps Capabilities) (system, instance string, err error) {
	vars := a.cfg.variables(t, info, caps, 0, 0, 0)
	if system, err = a.templates.system.render(vars); err != nil {
		return "", "", err
	}
	instance, err = a.templates.instance.render(vars)
	return system, instance, err
}

// UnmentionedCapabilities returns the capabilities that the prompts do not
// mention, so that the model could not know of them: "tools", "skills" or both.
// A prompt mentions tools with .tools or "mini-tool", and skills with .skills
// or "mini-tool skill".
func (a *Agent) UnmentionedCapabilities(caps Capabilities) (names []string) {
	prompts := a.cfg.SystemTemplate + "\n" + a.cfg.InstanceTemplate
	if len(caps.Tools) > 0 && !mentionsTools.MatchString(prompts) {
		names = append(names, "tools")
	}
	if len(caps.Skills) > 0 && !mentionsSkills.MatchString(prompts) {
		names = append(names, "skills")
	}
	return names
}

var (
	mentionsTools  = lazyregexp.New(`\.tools\b|\b` + env.ToolProgram + `\b`)
	mentionsSkills = lazyregexp.New(`\.skills\b|\b` + env.ToolProgram + ` skill\b`)
)
