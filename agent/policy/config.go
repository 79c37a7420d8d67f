// Package policy decides about commands by rules: allow, ask or deny, with a
// reason that the model sees.
//
// A command is parsed as a shell would parse it (agent/policy/shell). Each of
// its parts is compared with the rules in order, and the first rule that
// matches decides about the part. The strictest decision of all parts decides
// about the command. If only running the command shows whether a rule that asks
// or denies matches, the policy asks.
//
// A policy prevents accidents. It is not a sandbox: an allowed program can do
// anything that its user can.
//
//	p, err := policy.New(cfg, policy.Options{Environment: "local", Home: home, Resolve: policy.ResolveSymlinks})
//	session.Approver = policy.Unattended(p.ForInstance("my-instance"), agent.Deny)
package policy

import (
	"fmt"

	"github.com/minibench/mini/agent"
)

// Config is the policy section of a configuration.
type Config struct {
	// Default is the action for a part that no rule matches: "allow", "ask" or
	// "deny".
	Default string `yaml:"default" json:"default"`
	// Unattended replaces "ask" when no user is asked: "deny" or "allow". Empty
	// means "deny" in batches and "allow" in yolo mode.
	Unattended string `yaml:"unattended" json:"unattended"`
	// AllowDestructive permits commands that destroy what cannot be restored;
	// see Options.RefuseDestructive.
	AllowDestructive bool `yaml:"allow_destructive" json:"allow_destructive,omitempty"`
	// Rules apply first, then Whitelist, then DefaultRules (mini's built-in
	// rules).
	Rules []Rule `yaml:"rules" json:"rules,omitempty"`
	// Whitelist are regular expressions, anchored at the start of the command.
	// A part that begins within the match is allowed.
	Whitelist    []string `yaml:"whitelist_actions" json:"whitelist_actions,omitempty"`
	DefaultRules []Rule   `yaml:"default_rules" json:"default_rules,omitempty"`
	// ExtraDirs are directories that count as part of the workspace.
	ExtraDirs []string      `yaml:"inside" json:"inside,omitempty"`
	Decider   DeciderConfig `yaml:"decider" json:"decider,omitzero"`
}

// DeciderConfig configures an external program or server that decides.
type DeciderConfig struct {
	// Command is the program to run for each question; URL is the server that
	// receives each question. Only one of them may be set.
	Command []string `yaml:"command" json:"command,omitempty"`
	URL     string   `yaml:"url" json:"url,omitempty"`
	// TokenEnv names an environment variable. Its value is sent with each
	// request to URL: as "Bearer VALUE" in the header Authorization, or
	// unchanged in the header TokenHeader.
	TokenEnv    string `yaml:"token_env" json:"token_env,omitempty"`
	TokenHeader string `yaml:"token_header" json:"token_header,omitempty"`
	// Timeout bounds the wait for an answer, in seconds; 0 means
	// decider.DefaultTimeout.
	Timeout float64 `yaml:"timeout" json:"timeout,omitempty"`
	// When are the actions that the decider may change: it is asked if the
	// rules decide on one of them. Empty means "ask".
	When StringList `yaml:"when" json:"when,omitempty"`
	// OnFailure is the action if the decider gives no valid answer: "deny" (the
	// default), or "ask" to ask a person.
	OnFailure string `yaml:"on_failure" json:"on_failure,omitempty"`
}

// IsSet reports whether a decider is configured.
func (d DeciderConfig) IsSet() bool { return len(d.Command) > 0 || d.URL != "" }

// Rule decides about the parts of a command that it matches. A rule matches if
// all of its conditions hold; several values of one key are alternatives, except
// those of Arguments.
type Rule struct {
	Name string `yaml:"name,omitempty" json:"name,omitempty"`
	// Command are the first words of the whole command, such as "go test". It is for
	// rules that allow, and matches only one program with its arguments and nothing
	// else (shell.SimpleCommand), which stays inside the workspace, does none of the
	// things that the properties below name, and is not undecided.
	Command string `yaml:"command,omitempty" json:"command,omitempty"`
	// Programs are names or patterns of path.Match, such as "pip*".
	Programs StringList `yaml:"programs,omitempty,flow" json:"programs,omitempty"`
	// Arguments are regular expressions. Each must match the arguments, joined
	// by single spaces.
	Arguments StringList `yaml:"arguments,omitempty,flow" json:"arguments,omitempty"`
	// Paths, Reads and Writes are "outside" (at least one path is outside the
	// workspace), "inside" (no path is outside), or path patterns.
	Paths  StringList `yaml:"paths,omitempty,flow" json:"paths,omitempty"`
	Reads  StringList `yaml:"reads,omitempty,flow" json:"reads,omitempty"`
	Writes StringList `yaml:"writes,omitempty,flow" json:"writes,omitempty"`
	// The properties of a part; see shell.Part.
	Network         *bool `yaml:"network,omitempty" json:"network,omitempty"`
	Sudo            *bool `yaml:"sudo,omitempty" json:"sudo,omitempty"`
	RecursiveDelete *bool `yaml:"recursive_delete,omitempty" json:"recursive_delete,omitempty"`
	System          *bool `yaml:"system,omitempty" json:"system,omitempty"`
	// Undecided matches parts for which it is unknown what they run (see
	// shell.Part.UndecidedReason).
	Undecided *bool `yaml:"undecided,omitempty" json:"undecided,omitempty"`
	// PipesInto are programs that read the part's output through a pipe.
	PipesInto StringList `yaml:"pipes_into,omitempty,flow" json:"pipes_into,omitempty"`
	// Pattern is a regular expression that matches anywhere in the command. In
	// a rule that allows, it covers the parts that begin within the match.
	Pattern string `yaml:"pattern,omitempty" json:"pattern,omitempty"`
	// Steps and Cost compare the number of model calls so far, and their cost
	// in US dollars, with a number: ">50", "<=2.5".
	Steps string `yaml:"steps,omitempty" json:"steps,omitempty"`
	Cost  string `yaml:"cost,omitempty" json:"cost,omitempty"`
	// Environments are the sandbox classes that the rule applies to; empty
	// means all.
	Environments StringList `yaml:"environments,omitempty,flow" json:"environments,omitempty"`
	// Action is "allow", "ask" or "deny". The model sees Reason.
	Action string `yaml:"do,omitempty" json:"do"`
	Reason string `yaml:"reason,omitempty" json:"reason,omitempty"`
}

// StringList is a list of strings. In YAML, a single string is a list of one.
type StringList []string

// UnmarshalYAML accepts a list of strings or one string.
func (l *StringList) UnmarshalYAML(unmarshal func(any) error) error {
	var one string
	if err := unmarshal(&one); err == nil {
		*l = StringList{one}
		return nil
	}
	return unmarshal((*[]string)(l))
}

// ConfigError is a mistake in a Config.
type ConfigError struct {
	Key  string // relative to the section, such as "rules[2].pattern"
	Text string
	// Value and Allowed are set if the mistake is that Value is not one of
	// Allowed.
	Value   string
	Allowed []string
}

func (e ConfigError) Error() string { return fmt.Sprintf("policy.%s: %s", e.Key, e.Text) }

// actions are the values of Rule.Action, least strict first.
var actions = []string{string(agent.Allow), string(agent.Ask), string(agent.Deny)}

// Bounds of a configuration; maxPattern is in bytes.
const (
	maxRules   = 1000
	maxPattern = 10_000
)
