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

// newTools returns the tools for the commands of a recording, or nil if the attempt had
// none. They return the recorded answers, and run the commands of subagents again. Of
// the configured tools, only those that work within the sandbox and that the recording
// allowed are available; none contacts other hosts. Without an error, the caller must
// call closeTools.
func newTools(ctx context.Context, g *group, r *recording, h trajectories.Header, ignore replay.IgnoreRules) (_ *replay.Tools, closeTools func() error, err error) {
	hadTools, allowed := recordedTools(h)
	if !hadTools {
		return nil, func() error { return nil }, nil
	}
	cfg := *g.cfg
	cfg.Tools.Search, cfg.Tools.Host, cfg.Tools.MCP, cfg.Tools.Allow, cfg.Tools.Recall = nil, nil, nil, nil, false
	cfg.Memory, cfg.Agents = memory.Config{}, subagents.Config{}
	tools, err := setup.NewTools(ctx, &cfg)
	if err != nil {
		return nil, nil, err
	}
	toolbox, err := tools.Server(setup.AttemptPaths{Instance: r.row})
	if err != nil {
		return nil, nil, errors.Join(err, tools.Close())
	}
	replayTools := &replay.Tools{}
	if toolbox != nil {
		replayTools.Local = slices.DeleteFunc(toolbox.Capabilities().InSandbox, func(name string) bool { return len(allowed) > 0 && !slices.Contains(allowed, name) })
		if p, ok := toolbox.(interface {
			Prepare(ctx context.Context, sandbox env.Environment) error
		}); ok {
			replayTools.Prepare = p.Prepare
		}
	}
	children := replay.SubagentReplayer{Journals: trajectories.ChildJournals(r.path), Command: g.agent.Command, Local: replayTools.Local, Ignore: ignore}
	replayTools.Rerun = children.Rerun
	return replayTools, tools.Close, nil
}

// recordedTools reports whether the attempt had tools, and returns the names of those
// that were allowed; nil allows all.
func recordedTools(h trajectories.Header) (hadTools bool, allowed []string) {
	var config struct {
		Tools *struct {
			Allow []string `json:"allow"`
		} `json:"tools"`
		Skills, Memory, Agents json.RawMessage
	}
	_ = json.Unmarshal(h.Config, &config) // other agents' configurations have no tools
	if config.Tools != nil {
		allowed = config.Tools.Allow
	}
	return config.Tools != nil || len(config.Skills)+len(config.Memory)+len(config.Agents) > 0, allowed
}
