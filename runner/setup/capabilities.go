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
	"github.com/minibench/mini/runner/runs"
)

// Capabilities returns the capabilities that prompts describe to the model.
func (t *Tools) Capabilities() (agent.Capabilities, error) {
	server, err := t.Server(AttemptPaths{})
	if server == nil || err != nil {
		return agent.Capabilities{}, err
	}
	return server.Capabilities(), nil
}

// PlanCapabilities returns the capabilities of a configuration without connecting to MCP
// servers, for a plan of the run. It returns the names of the servers instead of their tools.
func PlanCapabilities(ctx context.Context, cfg *configs.Resolved) (caps agent.Capabilities, servers []string, err error) {
	planned := *cfg
	for _, server := range cfg.Tools.MCP {
		servers = append(servers, server.Name)
	}
	if planned.Tools.MCP = nil; len(servers) > 0 {
		planned.Tools.Allow = nil // could name tools of MCP servers, which NewTools would reject
	}
	a, err := NewTools(ctx, &planned)
	if err != nil {
		return caps, servers, err
	}
	defer a.Close() //nolint:errcheck // there are no connections
	if caps, err = a.Capabilities(); err == nil && len(cfg.Tools.Allow) > 0 {
		caps.Tools = slices.DeleteFunc(caps.Tools, func(t agent.Capability) bool { return !slices.Contains(cfg.Tools.Allow, t.Name) })
	}
	return caps, servers, err
}

// WarnUnmentioned prints a warning if the user's prompts do not mention some capabilities. mini
// does not add descriptions to these prompts.
func WarnUnmentioned(w io.Writer, a *agent.Agent, caps agent.Capabilities) {
	unmentioned := a.UnmentionedCapabilities(caps)
	if len(unmentioned) == 0 {
		return
	}
	names := strings.Join(unmentioned, " and ")
	_, _ = fmt.Fprintf(w, "mini: warning: the prompts do not mention the available %s, so the model does not know of them; "+
		"docs/tools.md has the lines for agent.system_template (variables: .%s)\n", names, strings.Join(unmentioned, ", ."))
}

// Manifest returns the capabilities for run.json, or nil if there are none.
func (t *Tools) Manifest() (*runs.Capabilities, error) {
	if t == nil {
		return nil, nil //nolint:nilnil // nothing is on
	}
	var manifest runs.Capabilities
	allow := t.cfg.Tools.Allow
	for _, src := range t.sources {
		list, err := src.tools(AttemptPaths{})
		if err != nil {
			return nil, err
		}
		for _, tool := range list {
			if name := tool.Spec().Name; len(allow) == 0 || slices.Contains(allow, name) {
				manifest.Tools = append(manifest.Tools, runs.Tool{Name: name, Kind: src.kind})
			}
		}
		if src.manifest != nil {
			src.manifest(&manifest)
		}
	}
	if c := t.cfg.Agent.Compaction; c != "" && c != "off" {
		manifest.Compaction = c
	}
	if notes := t.cfg.Memory.Notes; notes != "" && notes != "off" {
		manifest.NotesScope = memory.NotesAttempt // batches support no other kind; see docs/memory.md
	}
	if c := t.cfg.Agents; c.Enabled {
		manifest.Subagents = &runs.SubagentLimits{Depth: c.Depth, MaxChildren: c.MaxChildren, StepLimit: c.StepLimit, CostLimit: c.CostLimit, Profiles: c.Profiles}
	}
	return &manifest, nil
}
