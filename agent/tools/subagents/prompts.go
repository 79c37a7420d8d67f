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
// prompts of a child and the limits of c. The parent's limits apply in any
// case.
func ChildConfig(parent agent.Config, c Config) agent.Config {
	parent.SystemTemplate, parent.InstanceTemplate = systemTemplate, instanceTemplate
	parent.StepLimit, parent.CostLimit = 0, 0
	return reportingConfig(parent, c)
}

// ProfileConfig derives the configuration of a child with a profile. profile is
// the configuration of an agent with that profile, parent that of the child's
// parent. Prompts that the profile sets are kept; otherwise the prompts of a
// child replace the parent's. The lower of the limits of profile and c applies.
func ProfileConfig(profile, parent agent.Config, c Config) agent.Config {
	own := profile.InstanceTemplate != parent.InstanceTemplate
	if !own {
		profile.InstanceTemplate = instanceTemplate
	}
	if profile.SystemTemplate == parent.SystemTemplate {
		profile.SystemTemplate = systemTemplate
		if own { // the instance template of a child lists the tools
			profile.SystemTemplate = strings.TrimRight(systemTemplate, "\n") + toolsTemplate
		}
	}
	return reportingConfig(profile, c)
}

// reportingConfig sets the options of an agent that submits a report.
func reportingConfig(a agent.Config, c Config) agent.Config {
	a.StepLimit, a.CostLimit = smallerLimit(a.StepLimit, c.StepLimit), smallerLimit(a.CostLimit, c.CostLimit)
	a.WallTimeLimit = 0 // the parent's limit applies
	a.PlainReply, a.Submission = agent.PlainEnd, agent.SubmissionText
	a.Autosubmit, a.Scrub, a.SkipWorktree, a.StartupCommand = false, false, true, ""
	return a
}

// smallerLimit returns the smaller of two limits; 0 means no limit.
func smallerLimit[T int | float64](a, b T) T {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// taskPrompt returns a child's task with all of its inputs.
func taskPrompt(o childTask) string {
	var b strings.Builder
	b.WriteString(o.task)
	for _, p := range o.passed {
		fmt.Fprintf(&b, "\n\n<passed%s>\n%s</passed>", p.title(), withNewline(p.text))
	}
	if o.loadedSkill.Body != "" {
		fmt.Fprintf(&b, "\n\nWork by this skill:\n\n<skill name=%q>\n%s</skill>", o.skill, withNewline(o.loadedSkill.Body))
	}
	if o.schema != nil {
		fmt.Fprintf(&b, "\n\nYour report is JSON, and nothing else, that satisfies this schema:\n\n%s", o.schema.text)
	}
	return b.String()
}
