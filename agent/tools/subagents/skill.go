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

// denialReason returns why a command may not run under the skill; "" if it may.
// Like a policy, it analyzes the text of the command. It guides a model and is
// not a security boundary.
func (s Skill) denialReason(command, dir string) string {
	if !s.Restricted || s.Bash && len(s.Commands) == 0 {
		return ""
	}
	for _, p := range shell.Analyze(command, shell.Workspace{Dir: dir}) {
		isKnown := p.Known && !p.IsCalledByPath() // a path may name any program
		switch {
		case p.UndecidedReason != "" && !p.IsUnlisted():
			return "the skill allows certain commands only, and this one cannot be told: " + p.UndecidedReason
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

// skillApprover denies commands that a skill does not allow, and asks the next
// approver about the others.
type skillApprover struct {
	skill Skill
	next  agent.Approver // may be nil
}

// Decide implements agent.Approver.
func (a skillApprover) Decide(ctx context.Context, request agent.ApprovalRequest) (agent.Decision, error) {
	if reason := a.skill.denialReason(request.Command, request.Dir); reason != "" {
		return agent.Decision{Action: agent.Deny, Reason: reason, By: "rule", Rule: "allowed-tools"}, nil
	}
	if a.next == nil {
		return agent.Decision{Action: trajectories.Allow, By: "default"}, nil
	}
	return a.next.Decide(ctx, request)
}
