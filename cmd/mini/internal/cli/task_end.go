package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// conclude says how it ended and where the files are.
func conclude(s Streams, out trajectories.Outcome, files taskFiles, failed error) error {
	if out.Class == "" {
		return nil
	}
	text := fmt.Sprintf("%s after %s", out.ExitStatus, report.Count(out.Steps, "step"))
	switch known := out.Usage.Unpriced == 0; {
	case !known:
		text += ", cost " + report.Spent(out.Cost, known)
	case out.Cost > 0:
		text += ", " + report.Spent(out.Cost, known)
	}
	for _, more := range []string{out.Error, out.Hint} {
		if more != "" {
			text += "\n" + more
		}
	}
	_, err := fmt.Fprintf(s.Err, "mini: %s\ntrajectory: %s\n", lines(text), files.traj)
	if len(out.Submission) > 0 && !out.Autosubmitted {
		text := string(out.Submission)
		if s.OutTerminal {
			text = lines(text)
		}
		_, werr := io.WriteString(s.Out, text)
		err = errors.Join(err, werr)
	}
	switch {
	case err != nil || failed != nil:
		return err
	case out.Class == trajectories.Interrupted:
		return agent.ErrInterrupted
	case !out.Class.Counts():
		return errIncomplete
	}
	return nil
}
