package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// Children does again in a sandbox what the children of an attempt did there.
type Children struct {
	// Journals are theirs, by their number; see trajectories.ChildJournals.
	Journals map[int]string
	// Command is how the attempt had the text of an action run; Local as in Tools.
	Command func(script string) env.Command
	Local   []string
	// Ignore is noise of the user's own; Force goes on after a command that
	// diverged.
	Ignore Ignore
	Force  bool
}

// Again is a Tools.Again: the commands of the children that a call made are run
// inside of the one that asked, in their order. Children of children follow from
// the calls of those.
func (c Children) Again(ctx context.Context, call trajectories.Called, r env.ToolRequest) error {
	for _, child := range call.Children() {
		path, ok := c.Journals[child.Child]
		if !ok {
			return fmt.Errorf("the journal of child %d is not there", child.Child)
		}
		t, err := trajectories.Gather(trajectories.Read(path))
		if err != nil {
			return fmt.Errorf("read child %d: %w", child.Child, err)
		}
		if err := c.all(ctx, commandsOf(t), r.Inside); err != nil {
			return fmt.Errorf("child %d: %w", child.Child, err)
		}
	}
	return nil
}

// errNowhere says that nothing can be run within a request.
var errNowhere = errors.New("the sandbox runs no commands inside of others")

func (c Children) all(ctx context.Context, todo []recordedCommand, inside env.Environment) error {
	if inside == nil {
		return errNowhere
	}
	tools := &Tools{Local: c.Local, Again: c.Again}
	for _, r := range todo {
		if r.cutShort {
			continue // how far it had come is not known
		}
		command := c.Command(r.ran.Command)
		if !r.ran.TimedOut {
			command.Timeout *= Patience
		}
		command.Tools = tools.For(&r.ran)
		now, err := inside.Execute(ctx, command)
		if err != nil {
			return orCause(ctx, err)
		}
		if found := Examine(r.ran.Execution, now, c.Ignore); found.Match == Diverged && !c.Force {
			return fmt.Errorf("its step %d does something else: %s", r.step, found.Difference)
		}
	}
	return nil
}
