package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

// errEnded ends a session that was interrupted, once that was said.
var errEnded = fmt.Errorf("the session has ended: %w", agent.ErrInterrupted)

// conclude says how it ended, unless the front has, and where the files are.
func (t *task) conclude(out trajectories.Outcome, failed error) error {
	s := t.Streams
	if out.Class == "" {
		return nil
	}
	var text []string
	if !t.front.Ended() {
		text = append(text, ended(out), strings.TrimPrefix(out.Error, out.ExitStatus+": "))
	}
	text = slices.DeleteFunc(append(text, out.Hint), func(line string) bool { return line == "" })
	said := "trajectory: " + t.files.traj
	if len(text) > 0 {
		said = "mini: " + lines(strings.Join(text, "\n")) + "\n" + said
	}
	_, err := fmt.Fprintln(s.Err, said)
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
		return errEnded
	case !out.Class.Counts():
		return errIncomplete
	}
	return nil
}

// ended is how an attempt ended, after how much.
func ended(out trajectories.Outcome) string {
	text := fmt.Sprintf("%s after %s", out.ExitStatus, report.Count(out.Steps, "step"))
	switch known := out.Usage.Unpriced == 0; {
	case !known:
		text += ", cost " + report.Spent(out.Cost, known)
	case out.Cost > 0:
		text += ", " + report.Spent(out.Cost, known)
	}
	return text
}
