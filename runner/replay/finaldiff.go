package replay

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// DiffState is the result of comparing the final diff with the recorded one.
type DiffState string

// The states of a diff.
const (
	Reproduced  DiffState = "reproduced"   // equal bytes
	Differs     DiffState = "differs"      // a different diff
	NotRecorded DiffState = "not recorded" // the trajectory contains no diff
	NotTaken    DiffState = "not taken"    // the replay ended before the diff
)

// Diff is the result of comparing the final working tree with the recorded one.
type Diff struct {
	State DiffState `json:"state"`
	// Source is the kind of diff that was compared: "worktree" is the working diff
	// taken by mini, "submission" the agent's submission.
	Source        string `json:"source,omitempty"`
	RecordedBytes int    `json:"recorded_bytes,omitempty"`
	Bytes         int    `json:"bytes,omitempty"`
	// Difference describes the first different line, or the reason for a missing
	// diff.
	Difference string `json:"difference,omitempty"`
}

// Values of Diff.Source.
const (
	fromWorktree   = "worktree"
	fromSubmission = "submission"
)

// diffTimeout limits the time for taking the final diff.
const diffTimeout = 2 * time.Minute

// diff compares the final working diff if the trajectory contains one, otherwise the
// submission.
func (r *replayRun) diff(ctx context.Context, tree *worktree.Tree) (Diff, error) {
	recorded, base, source := recordedDiff(r.Attempt)
	d := Diff{State: NotRecorded, Source: source, RecordedBytes: len(recorded)}
	switch source {
	case "":
		return d, nil
	case fromSubmission:
		submission, _ := agent.ParseSubmission(r.last)
		return d.compare(recorded, submission), nil
	}
	ctx, cancel := context.WithTimeout(ctx, diffTimeout)
	defer cancel()
	got, err := tree.Diff(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return Diff{State: NotTaken}, context.Cause(ctx)
	case err != nil:
		d.State, d.Difference = Differs, "take diff: "+excerpt([]byte(err.Error()), 0)
		return d, nil
	case tree.Base == "":
		d.State, d.Difference = Differs, "no diff: "+tree.Missing
		return d, nil
	}
	d = d.compare(recorded, got.Patch)
	if d.State == Differs && base != "" && base != tree.Base {
		d.Difference = fmt.Sprintf("the repository is at %.12s, and was at %.12s; %s", tree.Base, printable(base), d.Difference)
	} else if recordedTree := r.Attempt.Diff; d.State == Differs && recordedTree != nil && recordedTree.Start != "" && recordedTree.Start != tree.Start().Tree {
		d.Difference = "the initial files differ; " + d.Difference
	}
	return d, nil
}

func (d Diff) compare(recorded, got []byte) Diff {
	d.State, d.Bytes = Reproduced, len(got)
	if !bytes.Equal(recorded, got) {
		d.State, d.Difference = Differs, firstDifference(recorded, got)
	}
	return d
}

// recordedDiff returns the final diff of a trajectory with its source and, if
// recorded, its base commit. source is "" if there is no diff.
func recordedDiff(t *trajectories.Attempt) (patch []byte, base, source string) {
	if t.Diff != nil && t.Diff.Error == "" && t.Diff.Base != "" {
		return t.Diff.Patch, t.Diff.Base, fromWorktree
	}
	switch out := t.Outcome; {
	case out == nil:
	case out.Autosubmitted || out.Source == trajectories.SourceWorktree:
		return out.Submission, "", fromWorktree
	case len(out.PartialPatch) > 0:
		return out.PartialPatch, "", fromWorktree
	case len(out.Submission) > 0 && printsSubmission(t):
		return out.Submission, "", fromSubmission
	}
	return nil, "", ""
}

// printsSubmission reports whether the last command printed the submission, so that
// a rerun prints it too.
func printsSubmission(t *trajectories.Attempt) bool {
	commands := commandsOf(t)
	if len(commands) == 0 {
		return false
	}
	if commands[len(commands)-1].unrecorded {
		return true
	}
	last := commands[len(commands)-1].execution
	_, ok := agent.ParseSubmission(env.Result{Output: last.Output, ExitCode: last.ExitCode, TimedOut: last.TimedOut, Truncated: last.Truncated})
	return ok
}

// firstDifference describes the first different line of two texts.
func firstDifference(want, got []byte) string {
	for n := 1; ; n++ {
		a, inWant := cutLine(&want)
		b, inGot := cutLine(&got)
		if !bytes.Equal(a, b) || inWant != inGot {
			return describeDifference(fmt.Sprintf("line %d", n), a, b, inWant, inGot)
		}
		if !inWant {
			return ""
		}
	}
}
