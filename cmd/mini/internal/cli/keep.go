package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// keeps says whose sandboxes stay: run.keep as a rule for outcomes. What was
// interrupted is run again, and is no failure.
func keeps(which string) func(trajectories.Outcome) bool {
	switch which {
	case "all":
		return func(trajectories.Outcome) bool { return true }
	case "failed":
		return func(out trajectories.Outcome) bool {
			return out.Class != trajectories.Submitted && out.Class != trajectories.Interrupted
		}
	}
	return nil
}

// container is a sandbox that knows how its user gets back to it.
type container struct {
	*docker.Container
	run, instance string // as the user calls them; the run is empty for a task
}

// Keep implements runner.Keeper.
func (c *container) Keep(ctx context.Context, attempt int) (string, error) {
	image, err := c.Container.Keep(ctx, strconv.Itoa(attempt))
	if err != nil {
		return "", err
	}
	enter := "mini shell -c environment.image=" + image
	if c.run != "" {
		enter = fmt.Sprintf("mini shell --run %s --attempt %d %s", report.ShellWord(c.run), attempt, report.ShellWord(c.instance))
	}
	return fmt.Sprintf("kept as the image %s; enter it with: %s", image, enter), nil
}

// folder is a sandbox in a temporary folder of this machine.
type folder struct {
	env.Environment
	dir string
}

// Unwrap says what it is around, see env.FilesOf.
func (f *folder) Unwrap() env.Environment { return f.Environment }

// Keep implements runner.Keeper: the folder stays, under another name.
func (f *folder) Keep(context.Context, int) (string, error) {
	dir, err := scratch.Keep(f.dir)
	if err != nil {
		return "", err
	}
	return "kept in " + dir + "; remove it when it has been looked at", nil
}

// Keep implements runner.Keeper for those sandboxes that do.
func (t *tracked) Keep(ctx context.Context, attempt int) (string, error) {
	k, ok := t.Environment.(runner.Keeper)
	if !ok {
		return "", errNotKept
	}
	return k.Keep(ctx, attempt)
}

// sayKept keeps the sandbox of a task, and says where.
func sayKept(ctx context.Context, w io.Writer, box env.Environment) error {
	k, ok := box.(runner.Keeper)
	if !ok {
		return errNotKept
	}
	how, err := k.Keep(ctx, 1)
	if err != nil {
		return fmt.Errorf("keep sandbox: %w", err)
	}
	_, _ = fmt.Fprintln(w, "mini: the sandbox is", lines(how)) // only for people
	return nil
}

// sayHowMany ends a batch that has kept sandboxes.
func sayHowMany(w io.Writer, kept int, class, dir string) error {
	if kept == 0 {
		return nil
	}
	how := "their folders are named above, and in events.jsonl"
	if class == "docker" {
		how = fmt.Sprintf("mini shell --run %[1]s INSTANCE opens one, mini clean --kept --run %[1]s removes them", report.ShellWord(dir))
	}
	_, err := fmt.Fprintf(w, "\nkept   %s; %s\n", report.Count(kept, "attempt"), how)
	return err
}

var errNotKept = errors.New("this kind of sandbox leaves nothing behind")
