package inspect

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/convert"
)

// Trajectory is one attempt in memory, as it is read.
type Trajectory struct {
	Item  *Item
	Pages []*Page
	// Steps are the replies of the model; Pages have the prompts before them, and
	// the end after them, where there is one.
	Steps int
	Patch string
	// PatchFrom says what the patch is; without one, why there is none.
	PatchFrom string
	// Problem says why it ends before its end.
	Problem string
	ended   bool
	size    int64
	mod     time.Time
	// of the file it was made from
	model  string
	sha256 string // of what was submitted
	sample int
}

// Open reads a trajectory. Of a damaged one the beginning is there, with a
// Problem.
func Open(it *Item) (*Trajectory, error) {
	switch {
	case it.Path == "":
		return nil, fmt.Errorf("%s: results.json is all that is left; its journal is not there", it.ID)
	case it.Row < 0:
		return nil, errors.New(it.Problem)
	}
	info, err := os.Stat(it.Path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a plain file", it.Path)
	}
	t := &Trajectory{Item: it, size: info.Size(), mod: info.ModTime()}
	if it.Format == "" || it.Format == trajectories.Format {
		ts, err := trajectories.Gather(trajectories.Read(it.Path))
		return t.from(ts, err)
	}
	for f, err := range convert.All(it.Path) {
		switch {
		case err != nil && it.Row == 0:
			return nil, err
		case err != nil || f.Row != it.Row:
			continue
		}
		ts, err := trajectories.Gather(f.Records)
		return t.from(ts, err)
	}
	return nil, fmt.Errorf("%s has changed: its row %d is not there any more", it.Path, it.Row)
}

func (t *Trajectory) from(ts *trajectories.Transcript, err error) (*Trajectory, error) {
	if err != nil {
		if len(ts.Entries) == 0 {
			return nil, err
		}
		t.Problem = err.Error()
	}
	t.model, t.sample = ts.Header.ModelName, max(1, ts.Header.Sample)
	t.ended = ts.Outcome != nil
	t.patch(ts)
	t.pages(ts)
	return t, nil
}

// patch picks what the attempt ended with.
func (t *Trajectory) patch(ts *trajectories.Transcript) {
	o := ts.Outcome
	switch {
	case o != nil && len(o.Submission) > 0:
		t.Patch, t.PatchFrom = string(o.Submission), "the submission"
		if o.Autosubmitted {
			t.PatchFrom = "the submission: the working diff, which mini took at the end"
		} else if o.Source == trajectories.SourceWorktree {
			t.PatchFrom = "the submission: the working diff, since the agent handed in nothing that applies"
		}
	case o != nil && len(o.PartialPatch) > 0:
		t.Patch, t.PatchFrom = string(o.PartialPatch), "the working diff of an attempt that does not count"
	case ts.Diff != nil && len(ts.Diff.Patch) > 0:
		t.Patch, t.PatchFrom = string(ts.Diff.Patch), "the working diff; nothing was submitted"
	case o == nil:
		t.PatchFrom = "no patch yet: the attempt has not ended"
	default:
		t.PatchFrom = "no patch: the attempt ended without one"
	}
	if o != nil && o.Class.Counts() {
		t.sha256 = sumOf(o.Submission)
	}
}

// changed says whether the file is another one than was read.
func (t *Trajectory) changed() bool {
	info, err := os.Stat(t.Item.Path)
	return err == nil && (info.Size() != t.size || !info.ModTime().Equal(t.mod))
}
