package policy_test

import (
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/trajectories"
)

// The profile reviewer denies commands that write on this machine, except below
// /tmp. In a container it allows everything.
func TestReviewerChangesNothing(t *testing.T) {
	base, err := configs.ReadBuiltin("mini")
	if err != nil {
		t.Fatal(err)
	}
	reviewer, err := configs.ReadProfile("reviewer")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Merge(base, reviewer)
	if err != nil {
		t.Fatal(err)
	}
	for class, commands := range map[string]map[string]trajectories.DecisionAction{
		"local": {
			"sed -n 1,9p a.py | head": agent.Allow, "git log -3 && git diff HEAD~1": agent.Allow, "mini-tool read a.py": agent.Allow,
			"python -m pytest": agent.Allow, "cp a.py /tmp/b.py": agent.Allow, "cat <<'X'\nCOMPLETE_TASK\nX": agent.Allow,
			"sed -i s/a/b/ a.py": agent.Deny, "echo x > a.py": agent.Deny, "rm -rf build": agent.Deny,
			"mini-tool edit a.py x y": agent.Deny, "mini-tool read a.py > b": agent.Deny, "cp /tmp/b.py a.py": agent.Deny,
			"make install": agent.Ask, "cat ../secret": agent.Ask,
		},
		"docker": {"sed -i s/a/b/ a.py": agent.Allow, "make install": agent.Allow},
	} {
		p, err := policy.New(cfg.Policy, policy.Options{Environment: class, Home: "/home/user"})
		if err != nil {
			t.Fatal(err)
		}
		for command, want := range commands {
			if d, _ := p.Evaluate(agent.ApprovalRequest{Command: command, Dir: "/work/repo"}); d.Action != want {
				t.Errorf("%s: %q is %s (%s), want %s", class, command, d.Action, d.Reason, want)
			}
		}
	}
}
