package cli

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/agent/policy/decider"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env/local"
)

// newPolicy makes the policy of a configuration for sandboxes of a class. It may
// say Ask, for a person to answer. nil stands for one that lets everything run
// and asks nobody.
func newPolicy(cfg *configs.Resolved, class string) (*policy.Policy, error) {
	asked, err := newDecider(cfg)
	if err != nil {
		return nil, err
	}
	o := policy.Options{Environment: class, Home: cfg.Environment.Env["HOME"], Decider: asked}
	if class == "local" {
		o.Resolve = policy.OnHost
	}
	if home, err := os.UserHomeDir(); err == nil && onHost(class) {
		o.Home = cmp.Or(o.Home, home)
	}
	p, err := policy.New(cfg.Policy, o)
	if err != nil {
		return nil, usagef("%w", err)
	}
	if p.Idle() {
		return nil, nil //nolint:nilnil // as the comment says
	}
	return p, nil
}

// newSupervisors makes what decides on the commands of a batch, where nobody is
// there to be asked; nil where all of them run.
func newSupervisors(cfg *configs.Resolved, class string) (func(datasets.Instance) agent.Supervisor, error) {
	p, err := newPolicy(cfg, class)
	if p == nil || err != nil {
		return nil, err
	}
	return func(in datasets.Instance) agent.Supervisor {
		return policy.Unattended(p.For(in.ID), agent.Verb(cfg.Policy.Unattended))
	}, nil
}

// supervised says that somebody decides on commands in sandboxes of a class.
func supervised(cfg *configs.Resolved, class string) bool {
	p, err := policy.New(cfg.Policy, policy.Options{Environment: class})
	return err != nil || !p.Idle() || cfg.Policy.Decider.Set()
}

// newDecider makes who is asked; nil where nobody is.
func newDecider(cfg *configs.Resolved) (policy.Asked, error) {
	d := cfg.Policy.Decider
	switch {
	case len(d.Command) > 0:
		if _, err := exec.LookPath(d.Command[0]); err != nil {
			return nil, cfg.Mistakes(configs.Wrong{Key: "policy.decider.command", Text: fmt.Sprintf("there is no program %.60q here that could be run", d.Command[0])})
		}
		return decider.Command{Args: d.Command, Env: withoutKeys(cfg), Timeout: duration(d.Timeout)}, nil
	case d.URL == "":
		return nil, nil //nolint:nilnil // as the comment says
	}
	s := decider.Server{URL: d.URL, Timeout: duration(d.Timeout)}
	if d.TokenEnv != "" {
		token := os.Getenv(d.TokenEnv)
		if token == "" || strings.ContainsAny(token, "\r\n") {
			return nil, cfg.Mistakes(configs.Wrong{Key: "policy.decider.token_env", Text: "the environment variable " + d.TokenEnv + " is not set, or is no token"})
		}
		s.Header, s.Value = cmp.Or(d.TokenHeader, "Authorization"), token
		if strings.EqualFold(s.Header, "Authorization") {
			s.Value = "Bearer " + token
		}
	}
	return s, nil
}

// withoutKeys is the environment of this process for programs that are told
// what a model wants: what commands on this machine may not see is left out.
func withoutKeys(cfg *configs.Resolved) []string {
	return local.WithoutSecrets(os.Environ(), keyVariables(cfg))
}
