package subagents

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy/shell"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// reportPrograms are the programs that submit a report. They may run if they
// write no files.
var reportPrograms = []string{"echo", "printf", "cat", "true", ":"}

// refusal says why a command may not run under the skill; "" if it may. Like a
// policy, it analyzes the text of the command: it guides a model and is not a
// security boundary.
func (s Skill) refusal(command, dir string) string {
	if !s.Restricted || s.Bash && len(s.Commands) == 0 {
		return ""
	}
	for _, p := range shell.Analyze(command, shell.Workspace{Dir: dir}) {
		isKnown := p.Known && !p.IsCalledByPath() // a path may name any program
		switch {
		case p.Undecided != "":
			return "the skill allows certain commands only, and this one cannot be told: " + p.Undecided
		case isKnown && p.Program == env.ToolProgram && len(p.Via) == 0:
		case isKnown && slices.Contains(reportPrograms, p.Program) && !writesFiles(p):
		case isKnown && s.Bash && slices.ContainsFunc(s.Commands, func(pattern string) bool { return matchesPattern(p.Command(), pattern) }):
		default:
			return fmt.Sprintf("the skill does not allow %s", tools.Clip(p.Command(), 200))
		}
	}
	return ""
}

// writesFiles reports whether a part may write a file.
func writesFiles(p shell.Part) bool {
	return slices.ContainsFunc(p.Paths, func(path shell.Path) bool { return path.Mode != shell.Reads && path.Text != "/dev/null" })
}

// matchesPattern reports whether a command begins with a pattern such as "git
// add:*" or "git add *". A pattern without a star must equal the command.
func matchesPattern(command, pattern string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	if !isPrefix {
		return command == pattern
	}
	prefix = strings.TrimRight(strings.TrimSuffix(prefix, ":"), " ")
	return command == prefix || strings.HasPrefix(command, prefix+" ")
}

// skillApprover enforces a skill's restrictions before the next approver is
// asked.
type skillApprover struct {
	skill Skill
	next  agent.Approver // may be nil
}

// Decide implements agent.Approver.
func (u skillApprover) Decide(ctx context.Context, p agent.ApprovalRequest) (agent.Decision, error) {
	if why := u.skill.refusal(p.Command, p.Dir); why != "" {
		return agent.Decision{Action: agent.Deny, Reason: why, By: "rule", Rule: "allowed-tools"}, nil
	}
	if u.next == nil {
		return agent.Decision{Action: trajectories.Allow, By: "default"}, nil
	}
	return u.next.Decide(ctx, p)
}
