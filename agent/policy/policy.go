package policy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy/shell"
)

// Who decided, as records name them.
const (
	ByRule       = "rule"
	ByWhitelist  = "whitelist"
	ByDefault    = "default"
	ByDecider    = "decider"
	ByUnattended = "unattended"
)

// Options are what a policy needs to know of where commands run.
type Options struct {
	// Environment is the class of the sandboxes.
	Environment string
	// Home is that of the user who runs commands, where it is known.
	Home string
	// Resolve follows symbolic links, where commands run on this machine; see
	// OnHost. nil goes by the text.
	Resolve func(path string) (string, bool)
	// Decider is asked about what Config.Decider.When says; nil asks nobody.
	Decider Asked
}

// Asked is a program or a server that decides.
type Asked interface {
	// Ask returns a verb and a reason. An error is no answer.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Question is what a decider is told, as JSON.
type Question struct {
	// Version is 1; keys may be added without another one.
	Version  int     `json:"version"`
	Instance string  `json:"instance,omitempty"`
	Command  string  `json:"command"`
	Dir      string  `json:"dir"`
	Step     int     `json:"step"`
	Cost     float64 `json:"cost"`
	// Decision is what the rules say.
	Decision agent.Decision `json:"decision"`
	Programs []string       `json:"programs"`
	// Writes and Outside are the paths that are written to, and those outside of
	// the workspace or not known to be inside.
	Writes  []string `json:"writes"`
	Outside []string `json:"outside"`
	// Parts are the simple commands, at most maxTold of them.
	Parts        []shell.Part `json:"parts"`
	PartsLeftOut int          `json:"parts_left_out,omitempty"`
}

// Answer is what a decider says.
type Answer struct {
	Action agent.Verb `json:"decision"`
	Reason string     `json:"reason"`
}

// Policy decides on commands. It has no state and may be asked at any time.
type Policy struct {
	rules    []rule
	last     agent.Verb
	when     []string
	failed   agent.Verb
	place    shell.Place
	decider  Asked
	instance string
}

var _ agent.Supervisor = (*Policy)(nil)

// New makes a policy of a configuration that Check finds nothing wrong with.
func New(c Config, o Options) (*Policy, error) {
	p := &Policy{
		last: agent.Verb(c.Default), when: c.Decider.When, failed: agent.Verb(c.Decider.OnFailure), decider: o.Decider,
		place: shell.Place{Home: o.Home, Inside: c.Inside, Resolve: o.Resolve},
	}
	if p.last == "" {
		p.last = agent.Allow
	}
	if p.failed == "" {
		p.failed = agent.Deny
	}
	if len(p.when) == 0 {
		p.when = []string{string(agent.Ask)}
	}
	var all []Rule
	add := func(rules []Rule, key string) error {
		for i, r := range rules {
			label := r.Name
			if label == "" {
				label = fmt.Sprintf("%s[%d]", key, i)
			}
			one, wrong := compile(r, label, ByRule)
			if len(wrong) > 0 {
				wrong[0].Key = fmt.Sprintf("%s[%d].%s", key, i, wrong[0].Key)
				return wrong[0]
			}
			if len(r.Environments) == 0 || slices.Contains(r.Environments, o.Environment) {
				p.rules = append(p.rules, one)
			}
		}
		all = append(all, rules...)
		return nil
	}
	if err := add(c.Rules, "rules"); err != nil {
		return nil, err
	}
	for i, text := range c.Whitelist {
		re, err := prefix(text)
		if err != nil {
			return nil, Wrong{Key: "whitelist_actions", Text: fmt.Sprintf("number %d: %v", i, err)}
		}
		p.rules = append(p.rules, rule{
			do: agent.Allow, label: fmt.Sprintf("whitelist_actions[%d]", i), by: ByWhitelist, pattern: re, anchored: true,
		})
	}
	if err := add(c.DefaultRules, "default_rules"); err != nil {
		return nil, err
	}
	return p, nil
}

// Idle says that the policy allows everything and asks nobody, so that nothing
// need be recorded of it.
func (p *Policy) Idle() bool {
	return len(p.rules) == 0 && p.last == agent.Allow && (p.decider == nil || !slices.Contains(p.when, string(agent.Allow)))
}

// For is the policy for the attempts at one instance.
func (p *Policy) For(instance string) *Policy {
	one := *p
	one.instance = instance
	return &one
}

// Decide implements agent.Supervisor. What it returns may be an Ask, which is for
// a person to answer, or for Unattended.
func (p *Policy) Decide(ctx context.Context, proposal agent.Proposal) (agent.Decision, error) {
	d, parts := p.Judge(proposal)
	if p.decider == nil || !slices.Contains(p.when, string(d.Action)) {
		return d, nil
	}
	answer, err := p.decider.Ask(ctx, p.question(proposal, d, parts))
	if ctx.Err() != nil {
		return agent.Decision{}, context.Cause(ctx)
	}
	asked := agent.Decision{Action: answer.Action, Reason: answer.Reason, By: ByDecider, Before: []agent.Decision{d}}
	if err != nil {
		// The record says what went wrong. The model is not told where to find
		// who decides on it.
		asked.Action, asked.Reason = p.failed, "whoever decides on it gave no answer"
		asked.Before = append(asked.Before, agent.Decision{Action: p.failed, By: ByDecider, Reason: err.Error()})
	}
	return asked, nil
}

// Judge is what the rules alone say, and what the command was read as.
func (p *Policy) Judge(proposal agent.Proposal) (agent.Decision, []shell.Part) {
	s := &subject{Proposal: proposal, place: p.place}
	s.place.Dir = proposal.Dir
	s.parts = shell.Read(proposal.Command, s.place)
	if len(s.parts) == 0 { // comments, assignments: nothing is run
		return p.part(s, &shell.Part{Known: true}), nil
	}
	d := p.part(s, &s.parts[0])
	for i := 1; i < len(s.parts) && d.Action != agent.Deny; i++ {
		if next := p.part(s, &s.parts[i]); strict(next.Action) > strict(d.Action) {
			d = next
		}
	}
	return d, s.parts
}

// part finds the first rule that fits. One that asks or denies, and may fit or
// not, asks at least; what comes after it may be stricter.
func (p *Policy) part(s *subject, part *shell.Part) agent.Decision {
	var doubt agent.Decision
	decided := agent.Decision{Action: p.last, By: ByDefault, Reason: explain(&rule{do: p.last}, part, false)}
	for i := range p.rules {
		r := &p.rules[i]
		answer := r.fits(s, part)
		if answer == shell.Yes {
			decided = agent.Decision{Action: r.do, By: r.by, Rule: r.label, Reason: explain(r, part, false)}
			break
		}
		if answer == shell.Maybe && r.do != agent.Allow && doubt.Action == "" {
			doubt = agent.Decision{Action: agent.Ask, By: r.by, Rule: r.label, Reason: explain(r, part, true)}
		}
	}
	if strict(doubt.Action) > strict(decided.Action) {
		return doubt
	}
	return decided
}

func strict(v agent.Verb) int { return slices.Index(verbs, string(v)) }

// explain puts a reason in words: that of the rule, and the part it is about.
func explain(r *rule, p *shell.Part, doubt bool) string {
	if r.do == agent.Allow {
		return ""
	}
	text := r.Reason
	switch {
	case text == "" && r.do == agent.Deny:
		text = "it is denied here"
	case text == "":
		text = "it needs to be asked about"
	}
	if doubt {
		text = "it cannot be told beforehand whether this holds: " + text
	}
	if p.Undecided != "" {
		text += " (" + p.Undecided + ")"
	} else if command := oneLine(p); command != "" {
		text += " (" + command
		for _, path := range p.Paths {
			if path.Where != shell.Inside && len(r.paths)+len(r.reads)+len(r.writes) > 0 {
				text += "; " + string(path.Mode) + " " + path.Text
				break
			}
		}
		text += ")"
	}
	return text
}

// oneLine is a part as reasons name it: short, and on one line. A redirection
// alone is named by its files.
func oneLine(p *shell.Part) string {
	const most = 80
	text := p.Command()
	if text == "" && len(p.Paths) > 0 {
		text = "a redirection"
	}
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return text
}

// maxTold bounds the parts that a decider is told of.
const maxTold = 200

func (p *Policy) question(proposal agent.Proposal, d agent.Decision, parts []shell.Part) Question {
	q := Question{
		Version: 1, Instance: p.instance, Command: proposal.Command, Dir: proposal.Dir, Step: proposal.Step, Cost: float64(proposal.Cost),
		Decision: d, Programs: shell.Programs(parts), Writes: []string{}, Outside: []string{}, Parts: parts,
	}
	if len(parts) > maxTold {
		q.Parts, q.PartsLeftOut = parts[:maxTold], len(parts)-maxTold
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
			if path.Where != shell.Inside && !slices.Contains(q.Outside, path.Text) {
				q.Outside = append(q.Outside, path.Text)
			}
		}
	}
	return q
}

// Unattended answers what would be asked, where there is nobody to be asked.
func Unattended(s agent.Supervisor, answer agent.Verb) agent.Supervisor {
	return unattended{s, answer}
}

type unattended struct {
	agent.Supervisor
	answer agent.Verb
}

// Decide implements agent.Supervisor.
func (u unattended) Decide(ctx context.Context, p agent.Proposal) (agent.Decision, error) {
	d, err := u.Supervisor.Decide(ctx, p)
	if err != nil || d.Action == agent.Allow || d.Action == agent.Deny {
		return d, err
	}
	out := agent.Decision{Action: agent.Allow, By: ByUnattended}
	if u.answer != agent.Allow {
		out.Action = agent.Deny
		out.Reason = "it needs the word of a person, and nobody is here to be asked: " + d.Reason
	}
	out.Before = append(slices.Clone(d.Before), d)
	out.Before[len(out.Before)-1].Before = nil
	return out, nil
}

// OnHost follows the symbolic links of a path of this machine, as far as it
// exists.
func OnHost(path string) (string, bool) {
	rest, links := "", 0
	for range maxNames {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), true
		}
		if info, failed := os.Lstat(path); failed == nil && info.Mode()&os.ModeSymlink != 0 {
			if links++; links > maxLinks {
				return "", false // it leads round in a circle
			}
			target, failed := os.Readlink(path) // it leads to what is not there, yet
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

// maxNames bounds the names in a path, maxLinks the links to nowhere that are
// followed.
const maxNames, maxLinks = 500, 10
