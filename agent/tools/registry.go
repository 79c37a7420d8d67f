package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// HelpName is the reserved tool name that prints the usage.
const HelpName = "help"

// SkillToolName is the name of the tool that prints skills. Prompts list skills
// only if commands may call it.
const SkillToolName = "skill"

// Config configures a Registry.
type Config struct {
	Tools []Tool
	// Allow names the tools that may be called; empty allows all. A call of
	// another tool fails like that of an unknown tool.
	Allow []string
	// Timeout and MaxOutput apply to tools that set none. 0 means
	// DefaultTimeout and DefaultMaxOutput (in bytes).
	Timeout   time.Duration
	MaxOutput int
	// Skills are listed in prompts in addition to the tools.
	Skills []agent.Capability
}

// Registry implements agent.ToolServer. It is immutable.
type Registry struct {
	config Config
	tools  []registeredTool // in the order of Config
}

// registeredTool is a tool with its Spec at the time of registration.
type registeredTool struct {
	Tool
	spec Spec
}

var _ agent.ToolServer = (*Registry)(nil)

// New returns a registry. It is an error if two tools have the same name, a
// name is invalid, or Config.Allow names an unknown tool.
func New(c Config) (*Registry, error) {
	c.Timeout, c.MaxOutput = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.MaxOutput, DefaultMaxOutput)
	r := &Registry{config: c}
	for _, t := range c.Tools {
		s := t.Spec()
		if err := CheckName(s.Name); err != nil {
			return nil, err
		}
		if r.find(s.Name) != nil {
			return nil, fmt.Errorf("two tools have the name %q: rename or disable one of them", s.Name)
		}
		r.tools = append(r.tools, registeredTool{t, s})
	}
	for _, name := range c.Allow {
		if r.find(name) == nil {
			return nil, fmt.Errorf("unknown tool %.80q in the list of allowed tools%s", name, r.suggestion(name))
		}
	}
	if len(c.Allow) > 0 {
		r.keepOnly(c.Allow)
	}
	return r, nil
}

var validName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// CheckName returns an error if a name is not a valid tool name.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("a tool's name is empty")
	case len(name) > MaxName:
		return fmt.Errorf("tool name %.80q is too long: %d bytes, at most %d are allowed", name, len(name), MaxName)
	case name == HelpName:
		return fmt.Errorf("tool name %q is reserved: it prints the usage", name)
	case !validName.MatchString(name):
		return fmt.Errorf("tool name %q is invalid: use letters, digits, - and _, beginning with a letter or a digit", name)
	}
	return nil
}

// Restrict returns a registry with only the named tools. It ignores unknown
// names, which may be those of disabled tools.
func (r *Registry) Restrict(names []string) *Registry {
	restricted := &Registry{config: r.config, tools: slices.Clone(r.tools)}
	restricted.keepOnly(names)
	return restricted
}

func (r *Registry) keepOnly(names []string) {
	r.tools = slices.DeleteFunc(r.tools, func(t registeredTool) bool { return !slices.Contains(names, t.spec.Name) })
	if r.find(SkillToolName) == nil {
		r.config.Skills = nil
	}
}

// Names returns the names of the tools in the order of Config.Tools.
func (r *Registry) Names() []string {
	names := make([]string, len(r.tools))
	for i, t := range r.tools {
		names[i] = t.spec.Name
	}
	return names
}

// Capabilities implements agent.ToolServer.
func (r *Registry) Capabilities() agent.Capabilities {
	c := agent.Capabilities{Skills: slices.Clone(r.config.Skills)}
	for _, t := range r.tools {
		c.Tools = append(c.Tools, agent.Capability{Name: t.spec.Name, Usage: t.spec.Usage, Description: t.spec.Description})
		if t.spec.InSandbox {
			c.InSandbox = append(c.InSandbox, t.spec.Name)
		}
	}
	return c
}

// Prepare calls the tools that implement Preparer for a new sandbox.
func (r *Registry) Prepare(ctx context.Context, sandbox env.Environment) error {
	for _, t := range r.tools {
		if p, ok := t.Tool.(Preparer); ok {
			if err := p.Prepare(ctx, sandbox); err != nil {
				return fmt.Errorf("prepare %s: %w", t.spec.Name, err)
			}
		}
	}
	return nil
}

func (r *Registry) find(name string) *registeredTool {
	i := slices.IndexFunc(r.tools, func(t registeredTool) bool { return t.spec.Name == name })
	if i < 0 {
		return nil
	}
	return &r.tools[i]
}

// suggestion returns "; did you mean ...?" for a similar name, or "".
func (r *Registry) suggestion(name string) string {
	if near := Nearest(name, r.Names()); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// Nearest returns the first element of words that contains word, if word has
// more than 2 bytes. Otherwise it returns the element with the smallest edit
// distance from word, or "" if no distance is small. If word is longer than
// MaxName, it returns "": word is untrusted, and comparing it would take long.
func Nearest(word string, words []string) string {
	if word = strings.ToLower(word); len(word) > MaxName {
		return ""
	}
	best, distance := "", max(2, len(word)/3)+1
	for _, w := range words {
		if len(word) > 2 && strings.Contains(w, word) {
			return w
		}
		if d := levenshtein.ComputeDistance(word, w); d < distance && d < len(word) {
			best, distance = w, d
		}
	}
	return best
}
