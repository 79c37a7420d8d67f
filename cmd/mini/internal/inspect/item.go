package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/filter"
	"github.com/minibench/mini/trajectories/timeline"
)

// State says how far an attempt is.
type State string

// The states of attempts.
const (
	Ended   State = "ended"
	Running State = "running"
	Stopped State = "stopped" // it has no outcome, and no process works on it
	Broken  State = "broken"  // its file cannot be read
)

// Item is a trajectory as the list has it, and, with the seconds that it took, as
// --json prints it.
type Item struct {
	ID      string `json:"instance_id"`
	Attempt int    `json:"attempt,omitempty"`
	Sample  int    `json:"sample,omitempty"` // which of those that were asked for, where there are several; else 0
	Run     string `json:"run,omitempty"`    // the folder of its run, if it is in one of mini's
	Model   string `json:"model,omitempty"`  // empty where its run or file does not say
	Path    string `json:"file,omitempty"`   // empty where only results.json is left
	Row     int    `json:"row,omitempty"`    // within a file of several
	Format  string `json:"format,omitempty"` // empty for journals

	State   State              `json:"state"`
	Class   trajectories.Class `json:"class,omitempty"`
	Status  string             `json:"exit_status,omitempty"`
	Verdict string             `json:"verdict,omitempty"`
	Cost    *model.Cost        `json:"cost"` // nil where it is not known
	Steps   int                `json:"steps"`
	Tokens  int64              `json:"tokens"` // of prompts and replies together
	Took    time.Duration      `json:"-"`
	Flags   []string           `json:"flags"`
	// Selected says that it counts; others of its instance are listed when asked for.
	Selected bool   `json:"selected"`
	Problem  string `json:"problem,omitempty"` // why it cannot be read

	patchBytes int
	lacks      bool // the text that is filtered by
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
	case Running:
		return string(it.State)
	case Stopped:
		return "not ended"
	case Broken:
		return "unreadable"
	}
	return cmp.Or(it.Status, string(it.Class))
}

// row is what a filter needs.
func (it *Item) row() filter.Row {
	status := []string{it.Ending(), string(it.State), string(it.Class)}
	return filter.Row{ID: it.Name(), Status: status, Verdict: it.Verdict, Cost: it.Cost}
}

// take fills in how an attempt ended, or what it has come to.
func (it *Item) take(a runner.Attempt) {
	r := a.Result
	if r == nil {
		it.State = Stopped
		it.Steps, it.Cost = a.SoFar.Steps, a.SoFar.Cost.Known(a.SoFar.Usage)
		it.Tokens = a.SoFar.Usage.Prompt + a.SoFar.Usage.Completion
		it.Took = max(0, a.SoFar.End.Sub(a.SoFar.Start))
		return
	}
	it.State, it.Class, it.Status = Ended, r.Class, r.ExitStatus
	it.Cost, it.Steps = r.Cost, r.Steps
	it.Tokens = r.Usage.Prompt + r.Usage.Completion
	it.Took = time.Duration(r.Seconds * float64(time.Second))
	it.flag(r.PatchBytes, r.Autosubmitted, len(r.Warnings) > 0)
	if r.Verdict != nil {
		it.Verdict = *r.Verdict
	}
}

// sum fills in what a whole trajectory says.
func (it *Item) sum(t *timeline.Timeline) {
	it.State, it.Steps = Stopped, t.Replies()
	it.Cost, it.Tokens = t.Cost.Known(t.Usage), t.Usage.Prompt+t.Usage.Completion
	it.Took = t.Last.Sub(t.Start)
	if o := t.Outcome; o != nil {
		it.State, it.Class, it.Status = Ended, o.Class, o.ExitStatus
		it.Cost, it.Tokens = o.Cost.Known(o.Usage), o.Usage.Prompt+o.Usage.Completion
		it.Took = o.Took()
		it.flag(len(o.Submission), o.Autosubmitted, len(o.Warnings) > 0)
	}
}

func (it *Item) flag(patchBytes int, autosubmitted, warned bool) {
	it.patchBytes, it.Flags = patchBytes, nil
	for _, f := range []struct {
		is   bool
		name string
	}{{autosubmitted, "autosubmitted"}, {it.Class.Counts() && patchBytes == 0, "empty_patch"}, {warned, "warned"}} {
		if f.is {
			it.Flags = append(it.Flags, f.name)
		}
	}
}

// flags are its flags, or what is wrong with it, without the path that errors begin
// with.
func (it *Item) flags() string {
	if it.State == Broken {
		return strings.TrimPrefix(it.Problem, it.Path+": ")
	}
	return strings.Join(it.Flags, " ")
}

// Field is a column that a list can be sorted by.
type Field string

// SortFields are the fields, in the order in which a key goes through them.
func SortFields() []Field {
	return []Field{"id", "status", "verdict", "cost", "steps", "tokens", "time", "flags", "run", "model"}
}

// number is what stands in a column of numbers; known is false where it has none.
func (f Field) number(it *Item) (n float64, known, numeric bool) {
	known = it.State != Broken
	switch f {
	case "cost":
		if it.Cost != nil {
			n = float64(*it.Cost)
		}
		return n, known && it.Cost != nil, true
	case "steps":
		return float64(it.Steps), known, true
	case "tokens":
		return float64(it.Tokens), known, true
	case "time":
		return it.Took.Seconds(), known, true
	}
	return 0, false, false
}

// word is what stands in a column of words.
func (f Field) word(it *Item) string {
	switch f {
	case "status":
		return it.Ending()
	case "verdict":
		return cmp.Or(it.Verdict, "none")
	case "flags":
		return it.flags()
	case "run":
		return it.Run
	case "model":
		return it.Model
	}
	return ""
}

// Sorting is the order of a list. The zero value is by id.
type Sorting struct {
	By   Field
	Desc bool
}

// ParseSorting reads a field's name; a dash before it reverses the order.
func ParseSorting(s string) (Sorting, error) {
	name, desc := strings.CutPrefix(s, "-")
	if by := Field(strings.ToLower(name)); slices.Contains(SortFields(), by) {
		return Sorting{by, desc}, nil
	}
	var names []string
	for _, f := range SortFields() {
		names = append(names, string(f))
	}
	return Sorting{}, fmt.Errorf("%.40q is nothing to sort by: there is %s, and -FIELD for the other way round",
		s, strings.Join(names, ", "))
}

// sort puts items in order. What has no number comes last, whichever way; those
// that are equal stay in the order of their names.
func (s Sorting) sort(items []*Item) {
	slices.SortFunc(items, func(a, b *Item) int {
		row := cmp.Compare(max(a.Row, -a.Row), max(b.Row, -b.Row))
		return cmp.Or(s.compare(a, b), byName(a, b), strings.Compare(a.Path, b.Path), row)
	})
}

func byName(a, b *Item) int {
	return cmp.Or(datasets.Natural(a.ID, b.ID), cmp.Compare(a.Sample, b.Sample), cmp.Compare(a.Attempt, b.Attempt))
}

func (s Sorting) compare(a, b *Item) int {
	x, knownX, numeric := s.By.number(a)
	y, knownY, _ := s.By.number(b)
	var c int
	switch {
	case knownX != knownY && knownX:
		return -1
	case knownX != knownY:
		return 1
	case numeric:
		c = cmp.Compare(x, y)
	case s.By == "" || s.By == "id":
		c = byName(a, b)
	default:
		c = strings.Compare(s.By.word(a), s.By.word(b))
	}
	if s.Desc {
		return -c
	}
	return c
}
