// Package delegate lets a command hand a part of its task to a child: an agent
// with a conversation of its own, in the same sandbox.
//
// The tools delegate, chain and board of an attempt are made together, as a
// Family, since they share what children may take and what they tell each other.
// A child's commands run inside the one that asked for it; its calls of the model
// count as steps of the attempt, and against its limits. Children take no diff
// and hand in no patch: what they end with is a report.
//
//	f := delegate.New(delegate.Options{Config: cfg, Kind: kinds})
//	box, err := tools.New(tools.Config{Tools: f.Tools()})
package delegate

import (
	"fmt"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/model"
)

// Config is the section agents of a configuration.
type Config struct {
	// Enabled gives commands delegate, chain and board.
	Enabled bool `yaml:"enabled" json:"enabled,omitempty"`
	// Depth is how far children may have children: 1 is not at all. Max is how many
	// an attempt may have, all together. 0 stands for DefaultDepth and DefaultMax.
	Depth int `yaml:"depth" json:"depth,omitempty"`
	Max   int `yaml:"max" json:"max,omitempty"`
	// StepLimit and CostLimit bound each child; what it takes is also the parent's.
	// 0 is no limit but the parent's.
	StepLimit int     `yaml:"step_limit" json:"step_limit,omitempty"`
	CostLimit float64 `yaml:"cost_limit" json:"cost_limit,omitempty"`
	// Profiles are those that a child may be given beside the parent's own
	// configuration; see mini --profile.
	Profiles []string `yaml:"profiles" json:"profiles,omitempty"`
}

// Defaults and bounds of Config.
const (
	DefaultDepth = 1
	DefaultMax   = 8
	MaxDepth     = 8
	MaxMax       = 1000
)

// FieldError is a mistake in one field of the configuration.
type FieldError struct {
	Field string // the yaml name, within "agents"
	Err   error
}

func (e *FieldError) Error() string { return fmt.Sprintf("agents.%s: %v", e.Field, e.Err) }
func (e *FieldError) Unwrap() error { return e.Err }

// Validate finds numbers that bound nothing. The error is a *FieldError.
func (c Config) Validate() error {
	switch {
	case c.Depth < 0 || c.Depth > MaxDepth:
		return &FieldError{"depth", fmt.Errorf("%d is not a number from 1 to %d; 1 gives children none of their own", c.Depth, MaxDepth)}
	case c.Max < 0 || c.Max > MaxMax:
		return &FieldError{"max", fmt.Errorf("%d is not a number from 1 to %d", c.Max, MaxMax)}
	case c.StepLimit < 0:
		return &FieldError{"step_limit", fmt.Errorf("%d is negative; 0 means no limit but the parent's", c.StepLimit)}
	case c.CostLimit < 0:
		return &FieldError{"cost_limit", fmt.Errorf("%v is negative; 0 means no limit but the parent's", c.CostLimit)}
	}
	return nil
}

// Options is what a Family is made of.
type Options struct {
	Config Config
	// Kind says what a child is: by the name of a profile, or "" for the parent's own
	// configuration.
	Kind func(profile string) (Kind, error)
	// Skill finds a skill by its name; nil has none.
	Skill func(name string) (Skill, error)
	// Journals makes the journals of children; nil keeps them in memory only.
	Journals Journals
}

// Kind is what a child can be.
type Kind struct {
	// Agent has the limits of its own configuration; see Child and OfProfile.
	Agent *agent.Agent
	// Model is nil where it is the parent's.
	Model model.Model
	// Offers says which of the parent's tools the child may call; nil: all.
	Offers func(tool string) bool
	// Supervisor decides before the parent's does, and what it denies is denied. What
	// it asks about is for the parent's. nil stands for the parent's alone.
	Supervisor agent.Supervisor
}

// Skill is what a child works under.
type Skill struct {
	// Body is told to the child in full.
	Body string
	// Restricts says that the child may call no tools but those in AllowedTools, and
	// run commands only where Bash says so: of those, where Commands is not empty,
	// the ones it names by what they begin with, as "git log:*". Commands that hand
	// in a report, and mini-tool, always run.
	Restricts    bool
	AllowedTools []string
	Bash         bool
	Commands     []string
}

// Family is what the children of one attempt share. It is safe for concurrent
// use.
type Family struct {
	Options
	board board
	state state
}

// New makes the family of one attempt.
func New(o Options) *Family {
	if o.Config.Depth == 0 {
		o.Config.Depth = DefaultDepth
	}
	if o.Config.Max == 0 {
		o.Config.Max = DefaultMax
	}
	if o.Journals == nil {
		o.Journals = &Kept{}
	}
	return &Family{Options: o}
}

// Tools are delegate, chain and board.
func (f *Family) Tools() []tools.Tool {
	return []tools.Tool{delegateTool{f}, chainTool{f}, boardTool{f}}
}
