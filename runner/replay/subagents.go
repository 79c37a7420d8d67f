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
	// Journals are the paths of the subagents' journals by number; see
	// trajectories.ChildJournals.
	Journals map[int]string
	// Command returns the command for an action's script. Local is Tools.Local.
	Command func(script string) env.Command
	Local   []string
	// Ignore matches parts of outputs that may differ. Force continues after a
	// command that diverged.
	Ignore IgnoreRules
	Force  bool
}

// Rerun implements Tools.Rerun. It reruns the commands of the subagents that a call
// started, in order, in the sandbox of the caller. The calls in these commands rerun
// nested subagents.
func (s SubagentReplayer) Rerun(ctx context.Context, call trajectories.ToolCall, req env.ToolRequest) error {
	for _, child := range call.Children() {
		path, ok := s.Journals[child.Child]
		if !ok {
			return fmt.Errorf("no journal of subagent %d", child.Child)
		}
		attempt, err := trajectories.Fold(trajectories.Read(path))
		if err != nil {
			return fmt.Errorf("read subagent %d: %w", child.Child, err)
		}
		if err := s.rerunAll(ctx, commandsOf(attempt), req.Nested); err != nil {
			return fmt.Errorf("subagent %d: %w", child.Child, err)
		}
	}
	return nil
}

// errNoNestedCommands reports a request without a sandbox in which commands can run.
var errNoNestedCommands = errors.New("the sandbox does not support nested commands")

func (s SubagentReplayer) rerunAll(ctx context.Context, commands []recordedCommand, sandbox env.Environment) error {
	if sandbox == nil {
		return errNoNestedCommands
	}
	tools := &Tools{Local: s.Local, Rerun: s.Rerun}
	for _, r := range commands {
		if r.interrupted {
			continue // its effects before the interruption are unknown
		}
		command := s.Command(r.execution.Command)
		if !r.execution.TimedOut {
			command.Timeout *= TimeoutFactor
		}
		command.Tools = tools.For(&r.execution)
		got, err := sandbox.Execute(ctx, command)
		if err != nil {
			return orCause(ctx, err)
		}
		if finding := Compare(r.execution, got, s.Ignore); finding.Match == Diverged && !s.Force {
			return fmt.Errorf("step %d diverged: %s", r.step, finding.Difference)
		}
	}
	return nil
}
