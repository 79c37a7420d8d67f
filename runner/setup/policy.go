package setup

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
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/usage"
)

// NewPolicy returns the policy of a configuration for sandboxes of a class. A nil policy allows
// everything. If the policy decides Ask, the caller asks the user.
func NewPolicy(cfg *configs.Resolved, class string) (*policy.Policy, error) {
	d, err := newDecider(cfg)
	if err != nil {
		return nil, err
	}
	o := policy.Options{Environment: class, Home: cfg.Environment.Env["HOME"], Decider: d}
	if class == "local" {
		o.Resolve = policy.ResolveSymlinks
	}
	o.RefuseDestructive = envopen.IsHostClass(class) && !cfg.Policy.AllowDestructive
	if home, err := os.UserHomeDir(); err == nil && envopen.IsHostClass(class) {
		o.Home = cmp.Or(o.Home, home)
	}
	p, err := policy.New(cfg.Policy, o)
	if err != nil {
		return nil, usage.Errorf("%w", err)
	}
	if p.AllowsEverything() {
		return nil, nil //nolint:nilnil // documented
	}
	return p, nil
}

// NewApprovers returns a function that makes the approver of an instance in a batch. No user
// answers there, so the approver replaces Ask by policy.unattended. A nil function allows
// everything.
func NewApprovers(cfg *configs.Resolved, class string) (func(datasets.Instance) agent.Approver, error) {
	p, err := NewPolicy(cfg, class)
	if p == nil || err != nil {
		return nil, err
	}
	return func(in datasets.Instance) agent.Approver {
		return policy.Unattended(p.ForInstance(in.ID), agent.DecisionAction(cfg.Policy.Unattended))
	}, nil
}

// hasApprover reports whether a policy or a decider checks the commands in sandboxes of a class.
func hasApprover(cfg *configs.Resolved, class string) bool {
	p, err := policy.New(cfg.Policy, policy.Options{Environment: class})
	return err != nil || !p.AllowsEverything() || cfg.Policy.Decider.IsSet()
}

// newDecider returns the external decider, or nil if none is configured.
func newDecider(cfg *configs.Resolved) (policy.Decider, error) {
	d := cfg.Policy.Decider
	switch {
	case len(d.Command) > 0:
		if _, err := exec.LookPath(d.Command[0]); err != nil {
			return nil, cfg.KeyErrors(configs.KeyError{Key: "policy.decider.command", Text: fmt.Sprintf("there is no program %.60q here that could be run", d.Command[0])})
		}
		return decider.Command{Args: d.Command, Env: EnvironWithoutKeys(cfg), Timeout: configs.Duration(d.Timeout)}, nil
	case d.URL == "":
		return nil, nil //nolint:nilnil // documented
	}
	s := decider.Server{URL: d.URL, Timeout: configs.Duration(d.Timeout)}
	if d.TokenEnv != "" {
		token := os.Getenv(d.TokenEnv)
		if token == "" || strings.ContainsAny(token, "\r\n") {
			return nil, cfg.KeyErrors(configs.KeyError{Key: "policy.decider.token_env", Text: "the environment variable " + d.TokenEnv + " is not set, or is no token"})
		}
		s.Header, s.Value = cmp.Or(d.TokenHeader, "Authorization"), token
		if strings.EqualFold(s.Header, "Authorization") {
			s.Value = "Bearer " + token
		}
	}
	return s, nil
}

// EnvironWithoutKeys returns the environment of this process without API keys and other
// secrets, for programs that process model output.
func EnvironWithoutKeys(cfg *configs.Resolved) []string {
	return local.WithoutSecrets(os.Environ(), envopen.SecretVariables(cfg))
}
