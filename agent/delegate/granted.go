package delegate

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

// handing are the programs by which a report is handed in. They may run where they
// write no files.
var handing = []string{"echo", "printf", "cat", "true", ":"}

// refuses says why a command may not run under the skill; "" where it may. It
// reads the text of the command, as rules of a policy do: it keeps a model to what
// it was given, and is no boundary for programs.
func (s Skill) refuses(command, dir string) string {
	if !s.Restricts || s.Bash && len(s.Commands) == 0 {
		return ""
	}
	for _, p := range shell.Read(command, shell.Place{Dir: dir}) {
		named := p.Known && !p.ByPath() // by a path it may be any program that lies there
		switch {
		case p.Undecided != "":
			return "the skill allows certain commands only, and this one cannot be told: " + p.Undecided
		case named && p.Program == env.ToolProgram && len(p.Via) == 0:
		case named && slices.Contains(handing, p.Program) && !writes(p):
		case named && s.Bash && slices.ContainsFunc(s.Commands, func(pattern string) bool { return fits(p.Command(), pattern) }):
		default:
			return fmt.Sprintf("the skill does not allow %s", tools.Clip(p.Command(), 200))
		}
	}
	return ""
}

func writes(p shell.Part) bool {
	return slices.ContainsFunc(p.Paths, func(path shell.Path) bool { return path.Mode != shell.Reads && path.Text != "/dev/null" })
}

// fits says that a command begins with what a pattern says: "git add:*" or
// "git add *"; without a star it is all of it.
func fits(command, pattern string) bool {
	begin, open := strings.CutSuffix(pattern, "*")
	if !open {
		return command == pattern
	}
	begin = strings.TrimRight(strings.TrimSuffix(begin, ":"), " ")
	return command == begin || strings.HasPrefix(command, begin+" ")
}

// under holds a child to its skill, before anybody else is asked.
type under struct {
	skill Skill
	next  agent.Supervisor // may be nil
}

// Decide implements agent.Supervisor.
func (u under) Decide(ctx context.Context, p agent.Proposal) (agent.Decision, error) {
	if why := u.skill.refuses(p.Command, p.Dir); why != "" {
		return agent.Decision{Action: agent.Deny, Reason: why, By: "rule", Rule: "allowed-tools"}, nil
	}
	if u.next == nil {
		return agent.Decision{Action: trajectories.Allow, By: "default"}, nil
	}
	return u.next.Decide(ctx, p)
}
