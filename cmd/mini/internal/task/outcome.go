package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/text"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// conclude prints the outcome, unless the frontend has, and the path of the trajectory.
func (t *session) conclude(out trajectories.Outcome, failed error) error {
	s := t.Streams
	if out.Class == "" {
		return nil
	}
	var text []string
	if !t.frontend.HasShownOutcome() {
		text = append(text, outcomeText(out), strings.TrimPrefix(out.Error, out.ExitStatus+": "))
	}
	text = slices.DeleteFunc(append(text, out.Hint), func(line string) bool { return line == "" })
	said := "trajectory: " + t.files.traj
	if len(text) > 0 {
		said = "mini: " + cmdutil.Sanitize(strings.Join(text, "\n")) + "\n" + said
	}
	_, err := fmt.Fprintln(s.Err, said)
	if len(out.Submission) > 0 && !out.Autosubmitted {
		text := string(out.Submission)
		if s.OutTerminal {
			text = cmdutil.Sanitize(text)
		}
		_, werr := io.WriteString(s.Out, text)
		err = errors.Join(err, werr)
	}
	switch {
	case err != nil || failed != nil:
		return err
	case out.Class == trajectories.Interrupted:
		return cmdutil.ErrSessionEnded
	case !out.Class.Counts():
		return cmdutil.ErrIncomplete
	}
	return nil
}

// outcomeText describes the outcome, the number of steps and the cost.
func outcomeText(out trajectories.Outcome) string {
	text := fmt.Sprintf("%s after %s", out.ExitStatus, text.Count(out.Steps, "step"))
	switch known := out.Usage.Unpriced == 0; {
	case !known:
		text += ", cost " + report.CostText(out.Cost, known)
	case out.Cost > 0:
		text += ", " + report.CostText(out.Cost, known)
	}
	return text
}

// keepSandbox keeps the sandbox of a task and prints how to open it.
func keepSandbox(ctx context.Context, w io.Writer, box runner.Keeper) error {
	how, err := box.Keep(ctx, 1)
	if err != nil {
		return fmt.Errorf("keep sandbox: %w", err)
	}
	_, _ = fmt.Fprintln(w, "mini: the sandbox is", cmdutil.Sanitize(how))
	return nil
}
