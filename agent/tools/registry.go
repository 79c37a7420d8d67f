package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agnivade/levenshtein"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/lazyregexp"
)

// Defaults of Config.
const (
	DefaultTimeout   = time.Minute
	DefaultMaxOutput = 64 << 10
)

// Help is the name that no tool may have: by it the usage is asked for.
const Help = "help"

// Skill is the name of the tool by which texts of skills are asked for. Where it
// may not be called, prompts tell of no skills.
const Skill = "skill"

// Config is what a registry is made of.
type Config struct {
	Tools []Tool
	// Allow names those that may be called; empty means all. Those that may not be
	// are as if they were not there.
	Allow []string
	// Timeout and MaxOutput hold for tools that do not say otherwise. 0 stands for
	// DefaultTimeout and DefaultMaxOutput (bytes).
	Timeout   time.Duration
	MaxOutput int
	// Skills are what prompts tell of beside tools.
	Skills []agent.Ability
}

// Registry is an agent.Toolbox. It does not change; Restrict makes another one.
type Registry struct {
	config Config
	tools  []known // in the order of Config
}

// known is a tool, and what it said of itself when it was registered.
type known struct {
	Tool
	spec Spec
}

var _ agent.Toolbox = (*Registry)(nil)

// New makes a registry. Two tools of one name, a name that is none, and an
// allowed name that nobody has, are errors.
func New(c Config) (*Registry, error) {
	c.Timeout, c.MaxOutput = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.MaxOutput, DefaultMaxOutput)
	r := &Registry{config: c}
	for _, t := range c.Tools {
		s := t.Spec()
		if err := CheckName(s.Name); err != nil {
			return nil, err
		}
		if r.find(s.Name) != nil {
			return nil, fmt.Errorf("two tools are called %q: give one of them another name, or switch it off", s.Name)
		}
		r.tools = append(r.tools, known{t, s})
	}
	for _, name := range c.Allow {
		if r.find(name) == nil {
			return nil, fmt.Errorf("%.80q may be called, and is no tool here%s", name, r.hint(name))
		}
	}
	if len(c.Allow) > 0 {
		r.keep(c.Allow)
	}
	return r, nil
}

var goodName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// CheckName says what is wrong with a name for a tool.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("a tool has no name")
	case len(name) > MaxName:
		return fmt.Errorf("%.80q is too long for the name of a tool: it has %d bytes, and %d are allowed", name, len(name), MaxName)
	case name == Help:
		return fmt.Errorf("no tool may be called %q: that prints the usage of all", name)
	case !goodName.MatchString(name):
		return fmt.Errorf("%q is no name for a tool: letters, digits, - and _ are, beginning with a letter or a digit", name)
	}
	return nil
}

// Restrict is a registry with those of the tools that are named, and no others.
// A name that nobody has is passed over: whoever names it may know tools that are
// off here.
func (r *Registry) Restrict(names []string) *Registry {
	less := &Registry{config: r.config, tools: slices.Clone(r.tools)}
	less.keep(names)
	return less
}

func (r *Registry) keep(names []string) {
	r.tools = slices.DeleteFunc(r.tools, func(t known) bool { return !slices.Contains(names, t.spec.Name) })
	if r.find(Skill) == nil {
		r.config.Skills = nil
	}
}

// Names are those of the tools, in the order in which they were given.
func (r *Registry) Names() []string {
	names := make([]string, len(r.tools))
	for i, t := range r.tools {
		names[i] = t.spec.Name
	}
	return names
}

// Abilities implements agent.Toolbox.
func (r *Registry) Abilities() agent.Abilities {
	a := agent.Abilities{Skills: slices.Clone(r.config.Skills)}
	for _, t := range r.tools {
		a.Tools = append(a.Tools, agent.Ability{Name: t.spec.Name, Usage: t.spec.Usage, About: t.spec.About})
		if t.spec.Local {
			a.Local = append(a.Local, t.spec.Name)
		}
	}
	return a
}

// Prepare lets the tools that need it prepare a sandbox.
func (r *Registry) Prepare(ctx context.Context, box env.Environment) error {
	for _, t := range r.tools {
		if p, ok := t.Tool.(Preparer); ok {
			if err := p.Prepare(ctx, box); err != nil {
				return fmt.Errorf("prepare %s: %w", t.spec.Name, err)
			}
		}
	}
	return nil
}

func (r *Registry) find(name string) *known {
	i := slices.IndexFunc(r.tools, func(t known) bool { return t.spec.Name == name })
	if i < 0 {
		return nil
	}
	return &r.tools[i]
}

// hint names the tool that somebody may have meant; it may be empty.
func (r *Registry) hint(name string) string {
	if near := Nearest(name, r.Names()); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// Nearest is the word that was most likely meant; empty where none is near. Long
// words are not compared: they come from strangers.
func Nearest(word string, words []string) string {
	if len(word) > MaxName {
		return ""
	}
	best, distance := "", max(2, len(word)/3)+1
	for _, w := range words {
		if d := levenshtein.ComputeDistance(word, w); d < distance && d < len(word) {
			best, distance = w, d
		}
	}
	return best
}
