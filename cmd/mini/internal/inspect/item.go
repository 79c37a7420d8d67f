package inspect

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// State says how far an attempt is.
type State string

// The states of attempts.
const (
	Ended   State = "ended"
	Running State = "running"
	Stopped State = "stopped" // it has no outcome, and nobody works on it
	Broken  State = "broken"  // its file cannot be read
	Unread  State = "unread"  // nobody has looked yet
)

// Item is a trajectory as the list has it.
type Item struct {
	ID      string
	Attempt int
	Sample  int    // which of those that were asked for, where there are several; else 0
	Run     string // the folder of its run, if it is in one of mini's
	Model   string // empty where its run or file does not say
	Path    string // of its file; empty where only results.json is left
	Row     int    // within a file of several
	Format  string // empty for journals
	// Selected says that it counts; others of its instance are listed when asked for.
	Selected bool

	State   State
	Class   trajectories.Class
	Status  string // the exit status
	Verdict string
	Cost    *model.Cost // nil where nobody knows it
	Steps   int
	Tokens  int64 // of prompts and replies together
	Took    time.Duration
	Flags   []string
	Problem string // why it cannot be read

	patchBytes int
	start      time.Time // of what has not ended
}

// key tells items apart.
func (it *Item) key() string {
	if it.Path == "" {
		return it.Run + "\x00" + it.ID + "\x00" + strconv.Itoa(it.Attempt)
	}
	return it.Path + "\x00" + strconv.Itoa(it.Row)
}

// Name is the instance, with the sample where there are several.
func (it *Item) Name() string {
	if it.Sample > 0 {
		return it.ID + "#" + strconv.Itoa(it.Sample)
	}
	return it.ID
}

// Ending is the status in one word or two.
func (it *Item) Ending() string {
	switch it.State {
	case Running, Unread:
		return string(it.State)
	case Stopped:
		return "not ended"
	case Broken:
		return "unreadable"
	}
	return cmp.Or(it.Status, string(it.Class))
}

// spent is the cost as far as it is known.
func (it *Item) spent() float64 {
	if it.Cost == nil {
		return 0
	}
	return float64(*it.Cost)
}

// take fills in how an attempt ended, or what it has come to.
func (it *Item) take(a runner.Attempt) {
	r := a.Result
	if r == nil {
		it.State = Stopped
		it.Steps, it.Cost = a.SoFar.Steps, a.SoFar.Cost.Known(a.SoFar.Usage)
		it.Tokens = a.SoFar.Usage.Prompt + a.SoFar.Usage.Completion
		if it.start = a.SoFar.Start; !it.start.IsZero() {
			it.Took = max(0, a.SoFar.End.Sub(a.SoFar.Start))
		}
		return
	}
	it.State, it.Class, it.Status = Ended, r.Class, r.ExitStatus
	it.Cost, it.Steps = r.Cost, r.Steps
	it.Tokens = r.Usage.Prompt + r.Usage.Completion
	it.Took = time.Duration(r.Seconds * float64(time.Second))
	it.patchBytes = r.PatchBytes
	it.Problem = ""
	if r.Verdict != nil {
		it.Verdict = *r.Verdict
	}
	it.Flags = nil
	it.flag(r.Autosubmitted, "autosubmitted")
	it.flag(r.Class.Counts() && r.PatchBytes == 0, "empty_patch")
	it.flag(len(r.Warnings) > 0, "warned")
}

func (it *Item) flag(is bool, name string) {
	if is {
		it.Flags = append(it.Flags, name)
	}
}

// why is what is wrong with it, without the path that errors begin with.
func (it *Item) why() string { return strings.TrimPrefix(it.Problem, it.Path+": ") }

func (it *Item) flags() string { return strings.Join(it.Flags, " ") }
