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

// State says what became of the diff at the end.
type State string

// The states of a diff.
const (
	Reproduced  State = "reproduced"   // byte for byte
	Differs     State = "differs"      // another diff came out
	NotRecorded State = "not recorded" // the trajectory has none to compare with
	NotTaken    State = "not taken"    // the replay did not come to its end
)

// Diff is how the working tree at the end compares with the recorded one.
type Diff struct {
	State State `json:"state"`
	// Source says what was compared: "worktree", the working diff as mini took it,
	// or "submission", what the agent handed in.
	Source        string `json:"source,omitempty"`
	RecordedBytes int    `json:"recorded_bytes,omitempty"`
	Bytes         int    `json:"bytes,omitempty"`
	// Difference is the first line that is another, or why no diff could be taken.
	Difference string `json:"difference,omitempty"`
}

// What was compared.
const (
	fromWorktree   = "worktree"
	fromSubmission = "submission"
)

// diffTimeout bounds taking the diff at the end.
const diffTimeout = 2 * time.Minute

// diff compares the state of the files at the end, where a trajectory has it on
// record; else what was handed in.
func (p *pass) diff(ctx context.Context, tree *worktree.Tree) (Diff, error) {
	recorded, base, source := recordedDiff(p.Transcript)
	d := Diff{State: NotRecorded, Source: source, RecordedBytes: len(recorded)}
	switch source {
	case "":
		return d, nil
	case fromSubmission:
		handedIn, _ := agent.Submission(p.last)
		return d.against(recorded, handedIn), nil
	}
	ctx, cancel := context.WithTimeout(ctx, diffTimeout)
	defer cancel()
	now, err := tree.Diff(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return Diff{State: NotTaken}, context.Cause(ctx)
	case err != nil:
		d.State, d.Difference = Differs, "no diff could be taken: "+excerpt([]byte(err.Error()), 0)
		return d, nil
	case tree.Base == "":
		d.State, d.Difference = Differs, "there is "+tree.Missing+" here"
		return d, nil
	}
	d = d.against(recorded, now.Patch)
	if d.State == Differs && base != "" && base != tree.Base {
		d.Difference = fmt.Sprintf("the repository is at %.12s, and was at %.12s; %s", tree.Base, shown(base), d.Difference)
	} else if was := p.Transcript.Diff; d.State == Differs && was != nil && was.Start != "" && was.Start != tree.Start().Tree {
		d.Difference = "the files at the start are others; " + d.Difference
	}
	return d, nil
}

func (d Diff) against(recorded, now []byte) Diff {
	d.State, d.Bytes = Reproduced, len(now)
	if !bytes.Equal(recorded, now) {
		d.State, d.Difference = Differs, firstDifference(recorded, now)
	}
	return d
}

// recordedDiff is what a trajectory says of the files at its end, and the commit
// that it is against, where it says so.
func recordedDiff(t *trajectories.Transcript) (patch []byte, base, source string) {
	if t.Diff != nil && t.Diff.Error == "" && t.Diff.Base != "" {
		return t.Diff.Patch, t.Diff.Base, fromWorktree
	}
	switch out := t.Outcome; {
	case out == nil:
	case out.Autosubmitted || out.Source == trajectories.SourceWorktree:
		return out.Submission, "", fromWorktree
	case len(out.PartialPatch) > 0:
		return out.PartialPatch, "", fromWorktree
	case len(out.Submission) > 0 && handsIn(t):
		return out.Submission, "", fromSubmission
	}
	return nil, "", ""
}

// handsIn says that the last command of an attempt printed what became its
// submission, as a command that is run again will.
func handsIn(t *trajectories.Transcript) bool {
	all := commandsOf(t)
	if len(all) == 0 {
		return false
	}
	if all[len(all)-1].unrecorded {
		return true
	}
	x := all[len(all)-1].ran.Execution
	_, ok := agent.Submission(env.Result{Output: x.Output, ExitCode: x.ExitCode, TimedOut: x.TimedOut, Truncated: x.Truncated})
	return ok
}

// firstDifference says where two texts part.
func firstDifference(then, now []byte) string {
	for n := 1; ; n++ {
		a, inThen := cutLine(&then)
		b, inNow := cutLine(&now)
		if !bytes.Equal(a, b) || inThen != inNow {
			return differ(fmt.Sprintf("line %d", n), a, b, inThen, inNow)
		}
		if !inThen {
			return ""
		}
	}
}
