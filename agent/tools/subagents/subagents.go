// Package subagents lets a command give a part of its task to a subagent: an
// agent with its own conversation in the same sandbox. Records call it a child
// of the attempt.
//
// The tools delegate, chain and board of an attempt share a Pool, which limits
// the number of children and holds the board. A child's commands run within the
// command that created it. A child's model calls, except summaries, count as
// steps of the attempt, and the cost of all calls counts against the attempt's
// limits. A child submits a report, not a patch.
//
//	pool := subagents.New(subagents.Options{Config: cfg, Definition: definitions})
//	registry, err := tools.New(tools.Config{Tools: pool.Tools()})
package subagents

import (
	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/model"
)

// Config is the agents section of a configuration.
type Config struct {
	// Enabled enables the tools delegate, chain and board.
	Enabled bool `yaml:"enabled" json:"enabled,omitempty"`
	// Depth is the maximum depth of children; with 1, children have no
	// children. MaxChildren bounds the number of children of an attempt, of all
	// depths together. 0 means DefaultDepth or DefaultMaxChildren.
	Depth       int `yaml:"depth" json:"depth,omitempty" check:"range=1-8 zero" hint:"with 1, children have no children"`
	MaxChildren int `yaml:"max" json:"max,omitempty" check:"range=1-1000 zero"`
	// StepLimit and CostLimit (in US dollars) bound each child, in addition to
	// the parent's limits. 0 means that only the parent's limit applies.
	StepLimit int     `yaml:"step_limit" json:"step_limit,omitempty" check:"min=0" hint:"0 means that only the parent's limit applies"`
	CostLimit float64 `yaml:"cost_limit" json:"cost_limit,omitempty" check:"min=0" hint:"0 means that only the parent's limit applies"`
	// Profiles are the profiles that a child may use instead of the parent's
	// configuration; see mini --profile.
	Profiles []string `yaml:"profiles" json:"profiles,omitempty"`
}

// Defaults of Config.
const (
	DefaultDepth       = 1
	DefaultMaxChildren = 8
)

// Options configure a Pool.
type Options struct {
	Config Config
	// Definition returns the definition of a child, by the name of a profile,
	// or "" for the parent's own configuration.
	Definition func(profile string) (Definition, error)
	// Skill returns a skill by its name; nil if there are no skills.
	Skill func(name string) (Skill, error)
	// Journals is the directory for the journals of children.
	Journals JournalDir
}

// Definition describes a kind of child.
type Definition struct {
	// Agent is an agent made from ChildConfig or ProfileConfig. Its limits
	// apply in addition to the parent's.
	Agent *agent.Agent
	// Model is the child's model; nil means the parent's.
	Model model.Model
	// AllowsTool reports whether the child may call a tool of its parent; nil
	// allows all.
	AllowsTool func(tool string) bool
	// Approver is asked before the parent's approver. If it does not deny the
	// command, the parent's approver decides. Nil means that only the parent's
	// approver is asked.
	Approver agent.Approver
}

// Skill is a skill that a child works under.
type Skill struct {
	// Body is the skill's full text, which is part of the child's prompt.
	Body string
	// Restricted limits the child to the tools in AllowedTools. The child may
	// run shell commands only if Bash is set and, if Commands is not empty, only
	// commands that match one of the patterns in it, such as "git log:*".
	// mini-tool and commands that submit the report are always allowed.
	Restricted   bool
	AllowedTools []string
	Bash         bool
	Commands     []string
}

// Pool is the state that the children of one attempt share. It is safe for
// concurrent use.
type Pool struct {
	Options
	board    board
	counters counters
}

// New returns the pool of one attempt.
func New(o Options) *Pool {
	if o.Config.Depth == 0 {
		o.Config.Depth = DefaultDepth
	}
	if o.Config.MaxChildren == 0 {
		o.Config.MaxChildren = DefaultMaxChildren
	}
	return &Pool{Options: o}
}

// Tools returns the tools delegate, chain and board.
func (p *Pool) Tools() []tools.Tool {
	return []tools.Tool{delegateTool{p}, chainTool{p}, boardTool{p}}
}
