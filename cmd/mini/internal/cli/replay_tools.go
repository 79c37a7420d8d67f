package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/minibench/mini/agent/delegate"
	"github.com/minibench/mini/agent/memory"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/trajectories"
)

// replayTools are what the commands of a recording can ask for: what they asked
// for before, as it was answered then; what their children did in the sandbox is
// done again. Of what the configuration gives to commands only what happens in the
// sandbox itself is made, and nobody else is contacted.
// It is nil where the attempt had no tools.
func replayTools(ctx context.Context, g *replayGroup, r *recording, h trajectories.Header, ignore replay.Ignore) (_ *replay.Tools, closed func() error, err error) {
	had, allow := hadTools(h)
	if !had {
		return nil, func() error { return nil }, nil
	}
	inside := *g.cfg
	inside.Tools.Search, inside.Tools.Host, inside.Tools.MCP, inside.Tools.Allow, inside.Tools.Recall = nil, nil, nil, nil, false
	inside.Memory, inside.Agents = memory.Config{}, delegate.Config{}
	can, err := newAbilities(ctx, &inside)
	if err != nil {
		return nil, nil, err
	}
	box, err := can.toolbox(toolPlace{in: r.row})
	if err != nil {
		return nil, nil, errors.Join(err, can.Close())
	}
	t := &replay.Tools{}
	if box != nil {
		t.Local = slices.DeleteFunc(box.Abilities().Local, func(name string) bool { return len(allow) > 0 && !slices.Contains(allow, name) })
		if p, ok := box.(interface {
			Prepare(ctx context.Context, box env.Environment) error
		}); ok {
			t.Prepare = p.Prepare
		}
	}
	children := replay.Children{Journals: trajectories.ChildJournals(r.path), Command: g.agent.Command, Local: t.Local, Ignore: ignore}
	t.Again = children.Again
	return t, can.Close, nil
}

// hadTools says whether commands of an attempt could ask for something, and which
// tools were allowed, where that was said.
func hadTools(h trajectories.Header) (had bool, allow []string) {
	var c struct {
		Tools struct {
			Allow []string `json:"allow"`
		} `json:"tools"`
	}
	var sections map[string]json.RawMessage
	if json.Unmarshal(h.Config, &sections) != nil {
		return false, nil
	}
	for _, name := range []string{"tools", "skills", "memory", "agents"} {
		had = had || len(sections[name]) > 0
	}
	_ = json.Unmarshal(h.Config, &c) // what is of another form says nothing
	return had, c.Tools.Allow
}
