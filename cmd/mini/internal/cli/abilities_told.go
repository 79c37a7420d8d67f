package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/memory"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/runner"
)

// told is what a model is told of abilities; nothing where there are none.
func (a *abilities) told() (agent.Abilities, error) {
	box, err := a.toolbox(toolPlace{})
	if box == nil || err != nil {
		return agent.Abilities{}, err
	}
	return box.Abilities(), nil
}

// plannedAbilities is told for a plan, which starts nothing: servers whose tools
// are not known before they run are named in its place.
func plannedAbilities(ctx context.Context, cfg *configs.Resolved) (can agent.Abilities, servers []string, err error) {
	still := *cfg
	for _, server := range cfg.Tools.MCP {
		servers = append(servers, server.Name)
	}
	if still.Tools.MCP = nil; len(servers) > 0 {
		still.Tools.Allow = nil // may name tools of theirs
	}
	a, err := newAbilities(ctx, &still)
	if err != nil {
		return can, servers, err
	}
	defer a.Close() //nolint:errcheck // it has connected to nothing
	if can, err = a.told(); err == nil && len(cfg.Tools.Allow) > 0 {
		can.Tools = slices.DeleteFunc(can.Tools, func(t agent.Ability) bool { return !slices.Contains(cfg.Tools.Allow, t.Name) })
	}
	return can, servers, err
}

// sayUntold warns of prompts that say nothing of what there is: they are the
// user's, and mini adds nothing to them.
func sayUntold(w io.Writer, a *agent.Agent, can agent.Abilities) error {
	untold := a.Untold(can)
	if len(untold) == 0 {
		return nil
	}
	what := strings.Join(untold, " and ")
	_, err := fmt.Fprintf(w, "mini: warning: the prompts say nothing of the %s that there are, so the model will not know of them; "+
		"docs/tools.md has the lines for agent.system_template (variables: .%s)\n", what, strings.Join(untold, ", ."))
	return err
}

// manifester is an ability that has more to say in run.json than the names of its
// tools.
type manifester interface {
	manifest(m *runner.Abilities)
}

// manifest is what run.json says; nil where everything is off.
func (a *abilities) manifest() (*runner.Abilities, error) {
	if a == nil {
		return nil, nil //nolint:nilnil // nothing is on
	}
	var m runner.Abilities
	allow := a.cfg.Tools.Allow
	for i, one := range a.all {
		list, err := one.tools(toolPlace{})
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			if name := t.Spec().Name; len(allow) == 0 || slices.Contains(allow, name) {
				m.Tools = append(m.Tools, runner.Tool{Name: name, Kind: a.kinds[i]})
			}
		}
		if more, ok := one.(manifester); ok {
			more.manifest(&m)
		}
	}
	if c := a.cfg.Agent.Compaction; c != "" && c != "off" {
		m.Compaction = c
	}
	if notes := a.cfg.Memory.Notes; notes != "" && notes != "off" {
		m.Notes = memory.Attempt // see docs/memory.md: a batch has no other
	}
	if c := a.cfg.Agents; c.Enabled {
		m.Agents = &runner.Children{Depth: c.Depth, Max: c.Max, StepLimit: c.StepLimit, CostLimit: c.CostLimit, Profiles: c.Profiles}
	}
	return &m, nil
}

// abilityPlan is what a plan says of abilities.
type abilityPlan struct {
	Profile string   `json:"profile,omitempty"`
	Tools   []string `json:"tools,omitempty"`
	MCP     []string `json:"mcp_servers,omitempty"` // whose tools are known when they are connected to
	Skills  []string `json:"skills,omitempty"`
	Notes   string   `json:"notes,omitempty"`
}

// planAbilities is nil where everything is off.
func planAbilities(cfg *configs.Resolved, profile string, can agent.Abilities, servers []string) *abilityPlan {
	p := abilityPlan{Profile: profile, MCP: servers}
	for _, t := range can.Tools {
		p.Tools = append(p.Tools, t.Name)
	}
	for _, s := range can.Skills {
		p.Skills = append(p.Skills, s.Name)
	}
	if cfg.Memory.Notes != "off" {
		p.Notes = memory.Attempt // a plan is one of a batch
	}
	if profile == "" && len(p.Tools)+len(p.MCP)+len(p.Skills) == 0 && p.Notes == "" {
		return nil
	}
	return &p
}

// text says it for people.
func (p abilityPlan) text() string {
	var parts []string
	for _, group := range []struct {
		name  string
		names []string
	}{{"tools", p.Tools}, {"those of MCP servers", p.MCP}, {"skills", p.Skills}} {
		if len(group.names) > 0 {
			parts = append(parts, group.name+" "+strings.Join(group.names, ", "))
		}
	}
	if p.Notes != "" {
		parts = append(parts, "notes by "+p.Notes)
	}
	if len(parts) == 0 {
		return "bash alone"
	}
	return strings.Join(parts, "; ")
}
