package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// conclude prints the path of the trajectory, the outcome unless the frontend has shown it, and the
// submission unless it was submitted automatically. In print mode it prints the result, and the rest only
// if the model has not ended the task. Without an outcome, it does nothing. It returns
// the error that the command ends with, without runErr, which the caller adds.
func (t *session) conclude(out trajectories.Outcome, runErr error) error {
	if out.Class == "" {
		return nil
	}
	hasResult := t.headless != nil && out.Class == trajectories.Submitted
	var text []string
	if !t.frontend.HasShownOutcome() {
		text = append(text, outcomeText(out), strings.TrimPrefix(out.Error, out.ExitStatus+": "))
	}
	hint := out.Hint
	if hint == "" && out.ExitStatus == string(model.ContextWindowExceeded) && t.stored != nil {
		hint = "/compact makes room in the resumed session; agent.compaction: summarize does so by itself"
	}
	text = slices.DeleteFunc(append(text, hint), func(line string) bool { return line == "" })
	message := "trajectory: " + t.files.traj
	if len(text) > 0 {
		message = "mini: " + cmdutil.Sanitize(strings.Join(text, "\n")) + "\n" + message
	}
	var err error
	if !hasResult {
		_, err = fmt.Fprintln(t.Err, message)
	}
	switch {
	case t.headless != nil:
		err = errors.Join(err, t.headless.Finish(out, t.spentBefore(), t.files.traj))
	case len(out.Submission) > 0 && !out.Autosubmitted:
		err = errors.Join(err, t.PrintText(string(out.Submission)))
	}
	switch {
	case err != nil || runErr != nil:
		return err
	case out.Class == trajectories.Interrupted:
		return cmdutil.ErrSessionEnded
	case !out.Class.IsResult():
		return cmdutil.ErrIncomplete
	case t.headless != nil && !hasResult: // a limit was reached, and a script must not go on without a result
		return cmdutil.WithCode(cmdutil.ErrReported, 1)
	}
	return nil
}

// spentBefore returns what the sessions before a resumed one have spent.
func (t *session) spentBefore() trajectories.Spending {
	if t.resume == nil {
		return trajectories.Spending{}
	}
	return t.resume.Total()
}

// outcomeText describes the outcome, the number of steps and the cost.
func outcomeText(out trajectories.Outcome) string {
	text := fmt.Sprintf("%s after %s", out.ExitStatus, text.Count(out.Steps, "step"))
	if out.Cost > 0 {
		text += ", " + unit.Cost(float64(out.Cost), out.Usage.Unpriced == 0)
	}
	return text
}

// keepSandbox keeps the sandbox of a task and prints where it is.
func keepSandbox(ctx context.Context, w io.Writer, sandbox runner.Keeper) error {
	location, err := sandbox.Keep(ctx, 1)
	if err != nil {
		return fmt.Errorf("keep sandbox: %w", err)
	}
	_, _ = fmt.Fprintln(w, "mini: the sandbox is", cmdutil.Sanitize(location))
	return nil
}
