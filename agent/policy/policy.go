package policy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy/shell"
	"github.com/minibench/mini/internal/text"
)

// Values of agent.Decision.By.
const (
	ByRule       = "rule"
	ByWhitelist  = "whitelist"
	ByDefault    = "default"
	ByDecider    = "decider"
	ByUnattended = "unattended"
)

// Options describe where commands run and which decider is asked.
type Options struct {
	// Environment is the sandbox class, such as "docker" or "local".
	Environment string
	// Home is the home directory of the user that runs the commands; empty
	// means unknown.
	Home string
	// Resolve follows symbolic links, for commands that run on this machine;
	// see ResolveSymlinks. If nil, paths are compared as text.
	Resolve func(path string) (string, bool)
	// RefuseDestructive denies commands that destroy what cannot be restored, such
	// as rm -rf /, whatever the rules and the decider say.
	RefuseDestructive bool
	// Decider is consulted for the decisions listed in Config.Decider.When; nil
	// means that rules decide alone.
	Decider Decider
}

// Decider is an external program or server that decides about commands.
type Decider interface {
	// Ask returns an action and a reason, or an error if the decider gave no
	// valid answer.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Question is the JSON document that a decider receives.
type Question struct {
	// Version is 1. New keys may be added without a new version.
	Version  int     `json:"version"`
	Instance string  `json:"instance,omitempty"`
	Command  string  `json:"command"`
	Dir      string  `json:"dir"`
	Step     int     `json:"step"` // number of model calls so far
	Cost     float64 `json:"cost"` // of these calls, in US dollars
	// Decision is what the rules decided.
	Decision agent.Decision `json:"decision"`
	Programs []string       `json:"programs"`
	// Writes are the paths that Parts write. Outside are the paths of Parts
	// that are outside the workspace or whose location is unknown.
	Writes  []string `json:"writes"`
	Outside []string `json:"outside"`
	// Parts are the parsed command, at most maxQuestionParts parts.
	// PartsLeftOut is the number of further parts.
	Parts        []shell.Part `json:"parts"`
	PartsLeftOut int          `json:"parts_left_out,omitempty"`
}

// Answer is a decider's answer to a Question.
type Answer struct {
	Action agent.DecisionAction `json:"decision"`
	Reason string               `json:"reason"`
}

// Policy decides about commands. It is safe for concurrent use, and immutable but
// for AllowCommand.
type Policy struct {
	rules         []rule
	always        *always
	defaultAction agent.DecisionAction
	deciderWhen   []string             // actions that the decider is asked about
	onFailure     agent.DecisionAction // action if the decider gives no valid answer
	workspace     shell.Workspace
	refuses       bool // see Options.RefuseDestructive
	decider       Decider
	instance      string
}

var _ agent.Approver = (*Policy)(nil)

// New compiles a configuration that Check has accepted.
func New(c Config, o Options) (*Policy, error) {
	p := &Policy{
		defaultAction: agent.DecisionAction(c.Default), deciderWhen: c.Decider.When, onFailure: agent.DecisionAction(c.Decider.OnFailure),
		always: &always{}, decider: o.Decider, refuses: o.RefuseDestructive, workspace: shell.Workspace{Home: o.Home, ExtraDirs: c.ExtraDirs, Resolve: o.Resolve},
	}
	if p.defaultAction == "" {
		p.defaultAction = agent.Allow
	}
	if p.onFailure == "" {
		p.onFailure = agent.Deny
	}
	if len(p.deciderWhen) == 0 {
		p.deciderWhen = []string{string(agent.Ask)}
	}
	add := func(rules []Rule, key string) error {
		for i, r := range rules {
			label := r.Name
			if label == "" {
				label = fmt.Sprintf("%s[%d]", key, i)
			}
			compiled, problems := compile(r, label, ByRule)
			if len(problems) > 0 {
				problems[0].Key = fmt.Sprintf("%s[%d].%s", key, i, problems[0].Key)
				return problems[0]
			}
			if len(r.Environments) == 0 || slices.Contains(r.Environments, o.Environment) {
				p.rules = append(p.rules, compiled)
			}
		}
		return nil
	}
	if err := add(c.Rules, "rules"); err != nil {
		return nil, err
	}
	for i, text := range c.Whitelist {
		re, err := compilePrefix(text)
		if err != nil {
			return nil, ConfigError{Key: "whitelist_actions", Text: fmt.Sprintf("entry %d: %v", i, err)}
		}
		p.rules = append(p.rules, rule{
			action: agent.Allow, label: fmt.Sprintf("whitelist_actions[%d]", i), by: ByWhitelist, pattern: re, anchored: true,
		})
	}
	if err := add(c.DefaultRules, "default_rules"); err != nil {
		return nil, err
	}
	return p, nil
}

// AllowsEverything reports whether the policy allows every command without
// consulting a decider, so that no decisions need to be recorded.
func (p *Policy) AllowsEverything() bool {
	return !p.refuses && len(p.rules) == 0 && p.defaultAction == agent.Allow && (p.decider == nil || !slices.Contains(p.deciderWhen, string(agent.Allow)))
}

// ForInstance returns the policy for attempts at one instance.
func (p *Policy) ForInstance(instance string) *Policy {
	copied := *p
	copied.instance = instance
	return &copied
}

// Decide implements agent.Approver. If the action is agent.Ask, the caller must
// ask a person or apply Unattended.
func (p *Policy) Decide(ctx context.Context, request agent.ApprovalRequest) (agent.Decision, error) {
	byRules, parts := p.Evaluate(request)
	if p.decider == nil || byRules.Rule == ruleDestructive || !slices.Contains(p.deciderWhen, string(byRules.Action)) {
		return byRules, nil
	}
	answer, err := p.decider.Ask(ctx, p.question(request, byRules, parts))
	if ctx.Err() != nil {
		return agent.Decision{}, context.Cause(ctx)
	}
	d := agent.Decision{Action: answer.Action, Reason: answer.Reason, By: ByDecider, Previous: []agent.Decision{byRules}}
	if err != nil {
		// The error goes into the record only: the model must not learn the
		// decider's address.
		d.Action, d.Reason = p.onFailure, "the decider did not answer"
		d.Previous = append(d.Previous, agent.Decision{Action: p.onFailure, By: ByDecider, Reason: err.Error()})
	}
	return d, nil
}

// Evaluate returns the decision of the rules alone and the parsed command.
func (p *Policy) Evaluate(request agent.ApprovalRequest) (agent.Decision, []shell.Part) {
	e := &evaluation{ApprovalRequest: request, workspace: p.workspace}
	e.workspace.Dir = request.Dir
	e.parts = shell.Analyze(request.Command, e.workspace)
	e.simple = sync.OnceValue(func() []string { words, _ := shell.SimpleCommand(request.Command); return words })
	if p.refuses {
		if d, refused := refuse(e.parts, e.workspace); refused {
			return d, e.parts
		}
	}
	if len(e.parts) == 0 { // only comments and assignments: no program runs
		return p.decidePart(e, &shell.Part{Known: true}), nil
	}
	d := p.decidePart(e, &e.parts[0])
	for i := 1; i < len(e.parts) && d.Action != agent.Deny; i++ {
		if next := p.decidePart(e, &e.parts[i]); strictness(next.Action) > strictness(d.Action) {
			d = next
		}
	}
	if d.Action == agent.Ask {
		d.Reason = p.reasons(e, d)
	}
	return d, e.parts
}

// decidePart applies the first rule that matches part, or else the default. If a
// rule before it asks or denies and may match (shell.Maybe), the decision is at
// least agent.Ask. The rules of AllowCommand apply last: they allow what no other
// rule is about.
func (p *Policy) decidePart(e *evaluation, part *shell.Part) agent.Decision {
	var uncertain agent.Decision
	decided := agent.Decision{Action: p.defaultAction, By: ByDefault, Reason: explain(&rule{action: p.defaultAction}, part, false)}
	rules := p.rules
	if p.defaultAction != agent.Deny {
		rules = slices.Concat(rules, p.always.list())
	}
	for i := range rules {
		r := &rules[i]
		matches := r.matches(e, part)
		if matches == shell.Yes {
			decided = agent.Decision{Action: r.action, By: r.by, Rule: r.label, Reason: explain(r, part, false)}
			break
		}
		if matches == shell.Maybe && r.action != agent.Allow && uncertain.Action == "" {
			uncertain = agent.Decision{Action: agent.Ask, By: r.by, Rule: r.label, Reason: explain(r, part, true)}
		}
	}
	if strictness(uncertain.Action) > strictness(decided.Action) {
		return uncertain
	}
	return decided
}

// maxReasons bounds the reasons of a question.
const maxReasons = 5

// reasons returns the reasons of all rules that ask about a command, that of the decision d
// first, and one for each rule. After a rule that decides about a part, only rules that
// certainly match add a reason.
func (p *Policy) reasons(e *evaluation, d agent.Decision) string {
	reasons, seen := []string{d.Reason}, []string{d.Rule}
	for i := range e.parts {
		for j := range p.rules {
			r, part := &p.rules[j], &e.parts[i]
			matches := r.matches(e, part)
			if matches == shell.Yes && r.action != agent.Ask {
				break // the rules after it have no effect
			}
			if matches == shell.Yes && !slices.Contains(seen, r.label) && len(reasons) < maxReasons {
				reasons, seen = append(reasons, explain(r, part, false)), append(seen, r.label)
			}
		}
	}
	return strings.Join(reasons, "; ")
}

// strictness orders actions: allow, ask, deny.
func strictness(action agent.DecisionAction) int { return slices.Index(actions, string(action)) }

// explain returns the reason of a decision: the rule's reason or a general one,
// then the part's UndecidedReason or else its command. A rule about paths adds
// the first path that is not known to be inside the workspace. The reason is
// empty for agent.Allow. uncertain means that the rule may match (shell.Maybe).
func explain(r *rule, p *shell.Part, uncertain bool) string {
	if r.action == agent.Allow {
		return ""
	}
	text := r.Reason
	switch {
	case text == "" && r.action == agent.Deny:
		text = "it is denied here"
	case text == "":
		text = "it needs to be asked about"
	}
	if uncertain {
		text = "it cannot be told beforehand whether this holds: " + text
	}
	if p.UndecidedReason != "" {
		text += " (" + p.UndecidedReason + ")"
	} else if command := summarize(p); command != "" {
		text += " (" + command
		for _, path := range p.Paths {
			if path.Location != shell.Inside && len(r.paths)+len(r.reads)+len(r.writes) > 0 {
				text += "; " + string(path.Mode) + " " + path.Text
				break
			}
		}
		text += ")"
	}
	return text
}

// summarize returns the command of a part on one line, clipped, or "a
// redirection" for a redirection without a program.
func summarize(p *shell.Part) string {
	const maxRunes = 80
	command := p.Command()
	if command == "" && len(p.Paths) > 0 {
		command = "a redirection"
	}
	return text.ClipRunes(text.OneLine(command), maxRunes)
}

// maxQuestionParts bounds the parts in a Question.
const maxQuestionParts = 200

func (p *Policy) question(request agent.ApprovalRequest, byRules agent.Decision, parts []shell.Part) Question {
	q := Question{
		Version: 1, Instance: p.instance, Command: request.Command, Dir: request.Dir, Step: request.Step, Cost: float64(request.Cost),
		Decision: byRules, Programs: shell.Programs(parts), Writes: []string{}, Outside: []string{}, Parts: parts,
	}
	if len(parts) > maxQuestionParts {
		q.Parts, q.PartsLeftOut = parts[:maxQuestionParts], len(parts)-maxQuestionParts
	}
	if q.Programs == nil {
		q.Programs = []string{}
	}
	if q.Parts == nil {
		q.Parts = []shell.Part{}
	}
	for _, part := range q.Parts {
		for _, path := range part.Paths {
			if path.Mode == shell.Writes && !slices.Contains(q.Writes, path.Text) {
				q.Writes = append(q.Writes, path.Text)
			}
			if path.Location != shell.Inside && !slices.Contains(q.Outside, path.Text) {
				q.Outside = append(q.Outside, path.Text)
			}
		}
	}
	return q
}

// Unattended wraps an approver for runs without a person. It replaces the
// action agent.Ask by answer.
func Unattended(approver agent.Approver, answer agent.DecisionAction) agent.Approver {
	return unattended{approver, answer}
}

type unattended struct {
	agent.Approver
	answer agent.DecisionAction
}

// Decide implements agent.Approver.
func (u unattended) Decide(ctx context.Context, request agent.ApprovalRequest) (agent.Decision, error) {
	d, err := u.Approver.Decide(ctx, request)
	if err != nil || d.Action == agent.Allow || d.Action == agent.Deny {
		return d, err
	}
	decision := agent.Decision{Action: agent.Allow, By: ByUnattended}
	if u.answer != agent.Allow {
		decision.Action = agent.Deny
		decision.Reason = "it needs approval, and no user is present: " + d.Reason
	}
	decision.Previous = append(slices.Clone(d.Previous), d)
	decision.Previous[len(decision.Previous)-1].Previous = nil
	return decision, nil
}

// ResolveSymlinks follows the symbolic links of an absolute path on this
// machine. The last elements of the path need not exist. ok is false if too
// many of them are missing or dangling links, or a link cannot be read.
func ResolveSymlinks(path string) (resolved string, ok bool) {
	rest, links := "", 0
	for range maxPathElements {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), true
		}
		if info, failed := os.Lstat(path); failed == nil && info.Mode()&os.ModeSymlink != 0 {
			if links++; links > maxLinks {
				return "", false // a loop
			}
			target, failed := os.Readlink(path) // the target does not exist (yet)
			if failed != nil {
				return "", false
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			path = filepath.Clean(target)
			continue
		}
		if path == filepath.Dir(path) {
			return "", false
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
	return "", false
}

// maxPathElements bounds the missing elements and dangling links of a path
// together, maxLinks the dangling links alone.
const maxPathElements, maxLinks = 500, 10
