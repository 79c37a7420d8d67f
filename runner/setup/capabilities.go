package setup

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/runner"
)

// Capabilities returns the capabilities that prompts describe to the model.
func (a *Tools) Capabilities() (agent.Capabilities, error) {
	box, err := a.Server(AttemptPaths{})
	if box == nil || err != nil {
		return agent.Capabilities{}, err
	}
	return box.Capabilities(), nil
}

// PlanCapabilities is Capabilities for a plan, which connects to nothing: it returns the names
// of MCP servers instead of their tools.
func PlanCapabilities(ctx context.Context, cfg *configs.Resolved) (can agent.Capabilities, servers []string, err error) {
	still := *cfg
	for _, server := range cfg.Tools.MCP {
		servers = append(servers, server.Name)
	}
	if still.Tools.MCP = nil; len(servers) > 0 {
		still.Tools.Allow = nil // may name tools of MCP servers
	}
	a, err := NewTools(ctx, &still)
	if err != nil {
		return can, servers, err
	}
	defer a.Close() //nolint:errcheck // there are no connections
	if can, err = a.Capabilities(); err == nil && len(cfg.Tools.Allow) > 0 {
		can.Tools = slices.DeleteFunc(can.Tools, func(t agent.Capability) bool { return !slices.Contains(cfg.Tools.Allow, t.Name) })
	}
	return can, servers, err
}

// WarnUnmentioned prints a warning if the user's prompts do not mention the capabilities: mini
// adds nothing to them.
func WarnUnmentioned(w io.Writer, a *agent.Agent, can agent.Capabilities) {
	untold := a.UnmentionedCapabilities(can)
	if len(untold) == 0 {
		return
	}
	what := strings.Join(untold, " and ")
	_, _ = fmt.Fprintf(w, "mini: warning: the prompts do not mention the available %s, so the model does not know of them; "+
		"docs/tools.md has the lines for agent.system_template (variables: .%s)\n", what, strings.Join(untold, ", ."))
}

// Manifest returns the capabilities for run.json, or nil if there are none.
func (a *Tools) Manifest() (*runner.Capabilities, error) {
	if a == nil {
		return nil, nil //nolint:nilnil // nothing is on
	}
	var m runner.Capabilities
	allow := a.cfg.Tools.Allow
	for _, one := range a.sources {
		list, err := one.tools(AttemptPaths{})
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			if name := t.Spec().Name; len(allow) == 0 || slices.Contains(allow, name) {
				m.Tools = append(m.Tools, runner.Tool{Name: name, Kind: one.kind})
			}
		}
		if one.manifest != nil {
			one.manifest(&m)
		}
	}
	if c := a.cfg.Agent.Compaction; c != "" && c != "off" {
		m.Compaction = c
	}
	if notes := a.cfg.Memory.Notes; notes != "" && notes != "off" {
		m.Notes = memory.NotesAttempt // batches support no other kind; see docs/memory.md
	}
	if c := a.cfg.Agents; c.Enabled {
		m.Subagents = &runner.SubagentLimits{Depth: c.Depth, Max: c.MaxChildren, StepLimit: c.StepLimit, CostLimit: c.CostLimit, Profiles: c.Profiles}
	}
	return &m, nil
}
