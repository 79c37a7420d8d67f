package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
)

// Defaults of Config.
const (
	DefaultTimeout   = time.Minute
	DefaultMaxOutput = 64 << 10
)

// Config is what a registry is made of.
type Config struct {
	Tools []Tool
	// Allow names those that may be called; empty means all.
	Allow []string
	// Timeout and MaxOutput hold for tools that do not say otherwise.
	Timeout   time.Duration
	MaxOutput int
	// Skills are what prompts tell of beside tools.
	Skills []agent.Ability
}

// Registry is an agent.Toolbox.
type Registry struct {
	config Config
	byName map[string]Tool
}

var _ agent.Toolbox = (*Registry)(nil)

// New makes a registry. Two tools of one name, a name that is none, and an
// allowed name that nobody has, are errors.
func New(c Config) (*Registry, error) {
	r := &Registry{config: c, byName: map[string]Tool{}}
	for _, t := range c.Tools {
		name := t.Spec().Name
		if r.byName[name] != nil {
			return nil, fmt.Errorf("two tools are called %.80q", name)
		}
		r.byName[name] = t
	}
	return r, nil
}

// Abilities implements agent.Toolbox.
func (r *Registry) Abilities() agent.Abilities {
	a := agent.Abilities{Skills: r.config.Skills}
	for _, t := range r.config.Tools {
		s := t.Spec()
		a.Tools = append(a.Tools, agent.Ability{Name: s.Name, Usage: s.Usage, About: s.About})
		if s.Local {
			a.Local = append(a.Local, s.Name)
		}
	}
	return a
}

// Prepare lets the tools that need it prepare a sandbox.
func (r *Registry) Prepare(ctx context.Context, box env.Environment) error {
	for _, t := range r.config.Tools {
		if p, ok := t.(Preparer); ok {
			if err := p.Prepare(ctx, box); err != nil {
				return fmt.Errorf("prepare %s: %w", t.Spec().Name, err)
			}
		}
	}
	return nil
}

// Answer implements agent.Toolbox.
func (r *Registry) Answer(ctx context.Context, a agent.Asked) agent.ToolAnswer {
	if len(a.Args) == 0 || r.byName[a.Args[0]] == nil {
		return answerOf(Result{}, Usagef("there is no such tool"))
	}
	res, err := r.byName[a.Args[0]].Call(ctx, Call{Args: a.Args[1:], Input: a.Input, Dir: a.Dir, Inside: a.Inside, Attempt: a.Attempt})
	return answerOf(res, err)
}

func answerOf(res Result, err error) agent.ToolAnswer {
	answer := agent.ToolAnswer{Details: res.Details}
	answer.Output, answer.ExitCode = []byte(res.Output), res.ExitCode
	if err == nil {
		return answer
	}
	answer.Errors, answer.ExitCode = []byte(err.Error()+"\n"), 1
	if _, ok := errors.AsType[*UsageError](err); ok {
		answer.ExitCode = 2
	}
	return answer
}
