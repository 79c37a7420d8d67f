package envopen

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/scratch"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories"
)

// KeepRule returns, for a value of run.keep, a function that reports whether the sandbox
// of an attempt with the given outcome is kept; nil if no sandbox is kept. Interrupted
// attempts are not failures, because they run again.
func KeepRule(setting string) func(trajectories.Outcome) bool {
	switch setting {
	case "all":
		return func(trajectories.Outcome) bool { return true }
	case "failed":
		return func(out trajectories.Outcome) bool {
			return out.Class != trajectories.Submitted && out.Class != trajectories.Interrupted
		}
	}
	return nil
}

// keepContainer returns a keepFunc that keeps c as an image. run is the run folder as
// the user wrote it; "" for a task.
func keepContainer(c *docker.Container, run, instance string) keepFunc {
	return func(ctx context.Context, attempt int) (string, error) {
		image, err := c.Keep(ctx, strconv.Itoa(attempt))
		if err != nil {
			return "", err
		}
		cmd := "mini shell -c environment.image=" + image
		if run != "" {
			cmd = fmt.Sprintf("mini shell --run %s --attempt %d %s", text.ShellQuote(run), attempt, text.ShellQuote(instance))
		}
		return fmt.Sprintf("kept as the image %s; enter it with: %s", image, cmd), nil
	}
}

// keepFolder returns a keepFunc that renames the temporary folder of a sandbox.
func keepFolder(dir string) keepFunc {
	return func(context.Context, int) (string, error) {
		dir, err := scratch.Keep(dir)
		if err != nil {
			return "", err
		}
		return "kept in " + dir + "; remove it when you no longer need it", nil
	}
}

// Keep implements runner.Keeper.
func (t *Tracked) Keep(ctx context.Context, attempt int) (string, error) {
	if t.keep == nil {
		return "", errors.New("this environment cannot keep sandboxes")
	}
	return t.keep(ctx, attempt)
}
