package delegate

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

// Child is the configuration of a child, out of its parent's: it works on a part of
// somebody else's task. Limits are those of c; the parent's hold in any case.
func Child(parent agent.Config, c Config) agent.Config {
	parent.SystemTemplate, parent.InstanceTemplate = systemTemplate, instanceTemplate
	parent.StepLimit, parent.CostLimit = 0, 0
	return reporting(parent, c)
}

// OfProfile is the configuration of a child of a profile, out of that of an agent
// under the profile, and of the child's parent. Prompts that the profile sets are
// kept, and its limits hold beside those of c. The parent's prompts are for work
// that is nobody else's: a child has its own instead.
func OfProfile(profile, parent agent.Config, c Config) agent.Config {
	own := profile.InstanceTemplate != parent.InstanceTemplate
	if !own {
		profile.InstanceTemplate = instanceTemplate
	}
	if profile.SystemTemplate == parent.SystemTemplate {
		profile.SystemTemplate = systemTemplate
		if own { // a child's own instance template tells of tools
			profile.SystemTemplate = strings.TrimRight(systemTemplate, "\n") + toolsTemplate
		}
	}
	return reporting(profile, c)
}

// reporting is the configuration of an agent that hands in a report.
func reporting(a agent.Config, c Config) agent.Config {
	a.StepLimit, a.CostLimit = lower(a.StepLimit, c.StepLimit), lower(a.CostLimit, c.CostLimit)
	a.WallTimeLimit = 0 // the parent's holds
	a.PlainReply, a.Submission = agent.PlainEnd, agent.SubmissionText
	a.Autosubmit, a.Scrub, a.NoTree, a.StartupCommand = false, false, true, ""
	return a
}

func lower[T int | float64](a, b T) T {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// told is all that a child is told of what it is to do.
func told(o order, s Skill) string {
	var b strings.Builder
	b.WriteString(o.task)
	for _, p := range o.passed {
		fmt.Fprintf(&b, "\n\n<passed%s>\n%s</passed>", p.title(), endLine(p.text))
	}
	if s.Body != "" {
		fmt.Fprintf(&b, "\n\nWork by this skill:\n\n<skill name=%q>\n%s</skill>", o.skill, endLine(s.Body))
	}
	if o.schema != nil {
		fmt.Fprintf(&b, "\n\nYour report is JSON, and nothing else, that satisfies this schema:\n\n%s", o.schema.text)
	}
	return b.String()
}
