package policy

import (
	"fmt"
	"slices"
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy/shell"
)

// always are the rules that the user adds while commands run.
type always struct {
	mu    sync.Mutex
	rules []rule
}

func (a *always) list() []rule {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rules
}

// MaxCommand is the maximum length of a command of AllowCommand, in bytes: it is
// shown to the user before it is added.
const MaxCommand = 80

// AllowCommand adds a rule that allows commands which begin with the words of
// command (see Rule.Command). It applies after all other rules, and to the results of
// ForInstance too.
func (p *Policy) AllowCommand(command string) error {
	if len(command) > MaxCommand {
		return fmt.Errorf("allow command: it is longer than %d bytes", MaxCommand)
	}
	r, problems := compile(Rule{Command: command, Action: string(agent.Allow)}, "always: "+command, ByRule)
	if len(problems) > 0 {
		return fmt.Errorf("allow command: %w", problems[0])
	}
	if len(r.command) == 0 {
		return fmt.Errorf("allow command: it is empty")
	}
	p.always.mu.Lock()
	defer p.always.mu.Unlock()
	if !slices.ContainsFunc(p.always.rules, func(o rule) bool { return o.Command == command }) {
		p.always.rules = append(slices.Clip(p.always.rules), r)
	}
	return nil
}

// ProposeCommand returns the command for AllowCommand that allows a request and
// others like it, such as "go test" for "go test ./a". It returns "" if there is none:
// a rule decides about the request, or only its whole text says what it does.
func (p *Policy) ProposeCommand(request agent.ApprovalRequest) string {
	words, ok := shell.SimpleCommand(request.Command)
	if !ok {
		return ""
	}
	command, ok := shell.QuoteCommand(shell.CommandPrefix(words))
	if d, _ := p.Evaluate(request); !ok || d.By != ByDefault || d.Action == agent.Deny {
		return ""
	}
	probe := *p
	probe.always = &always{}
	if err := probe.AllowCommand(command); err != nil {
		return ""
	}
	if d, _ := probe.Evaluate(request); d.Action != agent.Allow || d.By != ByRule {
		return ""
	}
	return command
}
