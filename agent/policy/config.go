// Package policy decides on commands by rules: allow, ask or deny, with a reason
// that the model is told.
//
// A command is read as a shell would (agent/policy/shell), and each of its parts
// is held against the rules in their order: the first that fits decides on the
// part, and the strictest decision over all parts on the command. What nobody
// can tell before the command runs is asked about, wherever a rule that asks or
// denies might fit.
//
// A policy is for accidents. It is no sandbox: a program that is allowed may do
// anything that its user may.
//
//	p, err := policy.New(cfg, policy.Options{Environment: "local", Home: home, Resolve: policy.OnHost})
//	session.Supervisor = policy.Unattended(p.For("my-instance"), agent.Deny)
package policy

import (
	"fmt"

	"github.com/minibench/mini/agent"
)

// Config is the section policy.
type Config struct {
	// Default is what becomes of a part that no rule fits: "allow", "ask" or
	// "deny".
	Default string `yaml:"default" json:"default"`
	// Unattended is what becomes of a question where there is nobody to be asked:
	// "deny" or "allow".
	Unattended string `yaml:"unattended" json:"unattended"`
	// Rules are looked at first, then Whitelist, then DefaultRules, which are
	// those that mini comes with.
	Rules []Rule `yaml:"rules" json:"rules,omitempty"`
	// Whitelist are regular expressions, matched from the beginning of a command.
	// What begins within the matched text is allowed.
	Whitelist    []string `yaml:"whitelist_actions" json:"whitelist_actions,omitempty"`
	DefaultRules []Rule   `yaml:"default_rules" json:"default_rules,omitempty"`
	// Inside are folders that count as the workspace, too.
	Inside  []string `yaml:"inside" json:"inside,omitempty"`
	Decider Decider  `yaml:"decider" json:"decider,omitzero"`
}

// Decider is a program, or a server, that is asked.
type Decider struct {
	// Command is run for each question, and URL is sent it; one of them.
	Command []string `yaml:"command" json:"command,omitempty"`
	URL     string   `yaml:"url" json:"url,omitempty"`
	// TokenEnv names a variable whose value goes with each request, as "Bearer
	// VALUE" in Authorization, or as it is in the header TokenHeader.
	TokenEnv    string `yaml:"token_env" json:"token_env,omitempty"`
	TokenHeader string `yaml:"token_header" json:"token_header,omitempty"`
	// Timeout bounds an answer, in seconds.
	Timeout float64 `yaml:"timeout" json:"timeout,omitempty"`
	// When are the decisions of rules that it is asked about, and may change.
	// Empty is "ask" alone.
	When Words `yaml:"when" json:"when,omitempty"`
	// OnFailure is what becomes of a command when there is no answer: "deny", or
	// "ask" a person.
	OnFailure string `yaml:"on_failure" json:"on_failure,omitempty"`
}

// Set says that there is a decider.
func (d Decider) Set() bool { return len(d.Command) > 0 || d.URL != "" }

// Rule says what becomes of the parts of a command that it fits. It fits where
// all that it says holds; several values of one key are alternatives.
type Rule struct {
	Name string `yaml:"name,omitempty" json:"name,omitempty"`
	// Programs are names, or patterns of them, as "pip*".
	Programs Words `yaml:"programs,omitempty,flow" json:"programs,omitempty"`
	// Arguments are regular expressions, all of which are found in the arguments,
	// joined by single spaces.
	Arguments Words `yaml:"arguments,omitempty,flow" json:"arguments,omitempty"`
	// Paths, Reads and Writes are "outside", "inside" (all are), or patterns of
	// paths.
	Paths  Words `yaml:"paths,omitempty,flow" json:"paths,omitempty"`
	Reads  Words `yaml:"reads,omitempty,flow" json:"reads,omitempty"`
	Writes Words `yaml:"writes,omitempty,flow" json:"writes,omitempty"`
	// What a part does, or does not: see shell.Part.
	Network         *bool `yaml:"network,omitempty" json:"network,omitempty"`
	Sudo            *bool `yaml:"sudo,omitempty" json:"sudo,omitempty"`
	RecursiveDelete *bool `yaml:"recursive_delete,omitempty" json:"recursive_delete,omitempty"`
	System          *bool `yaml:"system,omitempty" json:"system,omitempty"`
	// Undecided says that nobody can tell what the part runs.
	Undecided *bool `yaml:"undecided,omitempty" json:"undecided,omitempty"`
	// PipesInto are programs that what it prints is given to.
	PipesInto Words `yaml:"pipes_into,omitempty,flow" json:"pipes_into,omitempty"`
	// Pattern is a regular expression, found anywhere in the text of the command.
	// One that allows covers what begins within the text it matched.
	Pattern string `yaml:"pattern,omitempty" json:"pattern,omitempty"`
	// Steps and Cost compare the calls of the model so far, and their price in
	// US dollars, with a number: ">50", "<=2.5".
	Steps string `yaml:"steps,omitempty" json:"steps,omitempty"`
	Cost  string `yaml:"cost,omitempty" json:"cost,omitempty"`
	// Environments are the classes of sandboxes that the rule is for; empty is
	// all.
	Environments Words `yaml:"environments,omitempty,flow" json:"environments,omitempty"`
	// Do is "allow", "ask" or "deny", and Reason is what the model is told.
	Do     string `yaml:"do,omitempty" json:"do"`
	Reason string `yaml:"reason,omitempty" json:"reason,omitempty"`
}

// Words are texts; one alone needs no list around it.
type Words []string

// UnmarshalYAML takes a text for a list of one.
func (w *Words) UnmarshalYAML(unmarshal func(any) error) error {
	var one string
	if err := unmarshal(&one); err == nil {
		*w = Words{one}
		return nil
	}
	return unmarshal((*[]string)(w))
}

// Wrong is a mistake in a Config.
type Wrong struct {
	Key  string // within the section, as "rules[2].pattern"
	Text string
	// Given and Known are the word that is none of the known ones, where that is
	// the mistake.
	Given string
	Known []string
}

func (w Wrong) Error() string { return fmt.Sprintf("policy.%s: %s", w.Key, w.Text) }

// verbs are the values of Rule.Do.
var verbs = []string{string(agent.Allow), string(agent.Ask), string(agent.Deny)}

// Bounds of a configuration.
const (
	maxRules   = 1000
	maxPattern = 10_000
)
