package replay

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/agent/tools/subagents"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/runner/setup"
	"github.com/minibench/mini/trajectories"
)

// newTools returns the tools for the commands of a recording. They return the
// recorded answers, and run the commands of subagents again. Of the configured
// tools it provides only those that work within the sandbox; none contacts
// other hosts. It returns nil if the attempt had no tools.
func newTools(ctx context.Context, g *group, r *recording, h trajectories.Header, ignore replay.IgnoreRules) (_ *replay.Tools, closed func() error, err error) {
	had, allow := recordedTools(h)
	if !had {
		return nil, func() error { return nil }, nil
	}
	inside := *g.cfg
	inside.Tools.Search, inside.Tools.Host, inside.Tools.MCP, inside.Tools.Allow, inside.Tools.Recall = nil, nil, nil, nil, false
	inside.Memory, inside.Agents = memory.Config{}, subagents.Config{}
	tools, err := setup.NewTools(ctx, &inside)
	if err != nil {
		return nil, nil, err
	}
	toolbox, err := tools.Server(setup.AttemptPaths{Instance: r.row})
	if err != nil {
		return nil, nil, errors.Join(err, tools.Close())
	}
	t := &replay.Tools{}
	if toolbox != nil {
		t.Local = slices.DeleteFunc(toolbox.Capabilities().Local, func(name string) bool { return len(allow) > 0 && !slices.Contains(allow, name) })
		if p, ok := toolbox.(interface {
			Prepare(ctx context.Context, sandbox env.Environment) error
		}); ok {
			t.Prepare = p.Prepare
		}
	}
	children := replay.SubagentReplayer{Journals: trajectories.ChildJournals(r.path), Command: g.agent.Command, Local: t.Local, Ignore: ignore}
	t.Rerun = children.Rerun
	return t, tools.Close, nil
}

// recordedTools reports whether the attempt had tools, and which of them were
// allowed; nil allows all.
func recordedTools(h trajectories.Header) (had bool, allow []string) {
	var c struct {
		Tools *struct {
			Allow []string `json:"allow"`
		} `json:"tools"`
		Skills, Memory, Agents json.RawMessage
	}
	_ = json.Unmarshal(h.Config, &c) // other agents' configurations have no tools
	if c.Tools != nil {
		allow = c.Tools.Allow
	}
	return c.Tools != nil || len(c.Skills)+len(c.Memory)+len(c.Agents) > 0, allow
}
