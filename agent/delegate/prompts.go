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

// Child is the configuration of a child, out of its parent's or of a profile's: it
// speaks as that does, and works on a part of somebody else's task. A profile's
// system prompt is kept. Limits are those of c, but for time, of which the parent's
// holds.
func Child(parent agent.Config, c Config, ofProfile bool) agent.Config {
	parent.InstanceTemplate = instanceTemplate
	if !ofProfile {
		parent.SystemTemplate = systemTemplate
		parent.StepLimit, parent.CostLimit = 0, 0 // which are the parent's own, and hold in any case
	}
	parent.StepLimit, parent.CostLimit = lower(parent.StepLimit, c.StepLimit), lower(parent.CostLimit, c.CostLimit)
	parent.WallTimeLimit = 0
	parent.PlainReply, parent.Submission = agent.PlainEnd, agent.SubmissionText
	parent.Autosubmit, parent.Scrub, parent.NoTree, parent.StartupCommand = false, false, true, ""
	return parent
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
