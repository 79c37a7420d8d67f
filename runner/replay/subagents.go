package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// SubagentReplayer reruns the commands of an attempt's subagents.
type SubagentReplayer struct {
	// Journals are the subagents' journals by number; see trajectories.ChildJournals.
	Journals map[int]string
	// Command returns the command for an action's script; Local is as in Tools.
	Command func(script string) env.Command
	Local   []string
	// Ignore matches output that may differ. Force continues after a command that
	// diverged.
	Ignore IgnoreRules
	Force  bool
}

// Rerun is for Tools.Rerun. It runs the commands of the subagents started by a call,
// in order, inside the sandbox of the caller. Nested subagents follow from their
// calls.
func (c SubagentReplayer) Rerun(ctx context.Context, call trajectories.RecordedToolCall, r env.ToolRequest) error {
	for _, child := range call.Children() {
		path, ok := c.Journals[child.Child]
		if !ok {
			return fmt.Errorf("no journal of subagent %d", child.Child)
		}
		t, err := trajectories.BuildTranscript(trajectories.Read(path))
		if err != nil {
			return fmt.Errorf("read subagent %d: %w", child.Child, err)
		}
		if err := c.rerunAll(ctx, commandsOf(t), r.Nested); err != nil {
			return fmt.Errorf("subagent %d: %w", child.Child, err)
		}
	}
	return nil
}

// errNowhere is the error of a request without a sandbox to run commands in.
var errNowhere = errors.New("the sandbox does not support nested commands")

func (c SubagentReplayer) rerunAll(ctx context.Context, todo []recordedCommand, inside env.Environment) error {
	if inside == nil {
		return errNowhere
	}
	tools := &Tools{Local: c.Local, Rerun: c.Rerun}
	for _, r := range todo {
		if r.interrupted {
			continue // it is unknown how far it got
		}
		command := c.Command(r.ran.Command)
		if !r.ran.TimedOut {
			command.Timeout *= TimeoutFactor
		}
		command.Tools = tools.For(&r.ran)
		got, err := inside.Execute(ctx, command)
		if err != nil {
			return orCause(ctx, err)
		}
		if found := Compare(r.ran.Execution, got, c.Ignore); found.Match == Diverged && !c.Force {
			return fmt.Errorf("step %d diverged: %s", r.step, found.Difference)
		}
	}
	return nil
}
