package subagents

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/minibench/mini/agent"
)

//go:embed system.tmpl
var systemTemplate string

//go:embed instance.tmpl
var instanceTemplate string

//go:embed tools.tmpl
var toolsTemplate string

// ChildConfig derives the configuration of a child from its parent's, with the
// prompts of a child and the limits of c. The parent's limits apply in
// addition.
func ChildConfig(parent agent.Config, c Config) agent.Config {
	parent.SystemTemplate, parent.InstanceTemplate = systemTemplate, instanceTemplate
	parent.StepLimit, parent.CostLimit = 0, 0
	return reportingConfig(parent, c)
}

// ProfileConfig derives the configuration of a child with a profile. profile is
// the configuration of an agent with that profile, parent that of the child's
// parent. It keeps prompts that the profile sets, and replaces the others by
// the prompts of a child. Of the limits of profile and c, the lower one
// applies.
func ProfileConfig(profile, parent agent.Config, c Config) agent.Config {
	ownInstance := profile.InstanceTemplate != parent.InstanceTemplate
	if !ownInstance {
		profile.InstanceTemplate = instanceTemplate
	}
	if profile.SystemTemplate == parent.SystemTemplate {
		profile.SystemTemplate = systemTemplate
		if ownInstance { // the replaced instance template would list the tools
			profile.SystemTemplate = strings.TrimRight(systemTemplate, "\n") + toolsTemplate
		}
	}
	return reportingConfig(profile, c)
}

// reportingConfig returns a configuration with the options of an agent that
// submits a report.
func reportingConfig(cfg agent.Config, c Config) agent.Config {
	cfg.StepLimit, cfg.CostLimit = smallerLimit(cfg.StepLimit, c.StepLimit), smallerLimit(cfg.CostLimit, c.CostLimit)
	cfg.WallTimeLimit = 0 // the parent's limit applies
	cfg.PlainReply, cfg.Submission = agent.PlainReplyEnd, agent.SubmissionText
	cfg.Autosubmit, cfg.Scrub, cfg.SkipWorktree, cfg.StartupCommand = false, false, true, ""
	return cfg
}

// smallerLimit returns the smaller of two limits; 0 means no limit.
func smallerLimit[T int | float64](a, b T) T {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// taskPrompt returns a child's task with all of its inputs.
func taskPrompt(t childTask) string {
	var b strings.Builder
	b.WriteString(t.text)
	for _, p := range t.passed {
		fmt.Fprintf(&b, "\n\n<passed%s>\n%s</passed>", p.title(), withNewline(p.text))
	}
	if t.loadedSkill.Body != "" {
		fmt.Fprintf(&b, "\n\nWork by this skill:\n\n<skill name=%q>\n%s</skill>", t.skill, withNewline(t.loadedSkill.Body))
	}
	if t.schema != nil {
		fmt.Fprintf(&b, "\n\nYour report is JSON, and nothing else, that satisfies this schema:\n\n%s", t.schema.text)
	}
	return b.String()
}
