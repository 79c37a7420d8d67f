package browser

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
	"github.com/minibench/mini/trajectories/query"
	"github.com/minibench/mini/trajectories/timeline"
)

// State is the state of an attempt.
type State string

// The states of attempts.
const (
	Ended   State = "ended"
	Running State = "running"
	Stopped State = "stopped" // without an outcome and not running
	Broken  State = "broken"  // the file cannot be read
)

// Entry is a trajectory in the list. print --json encodes it, together with its duration in
// seconds.
type Entry struct {
	ID         string `json:"instance_id"`
	Attempt    int    `json:"attempt,omitempty"`
	Repetition int    `json:"sample,omitempty"` // number of the repetition (--attempts); 0 if there is only one
	Run        string `json:"run,omitempty"`    // folder of the run; empty outside of runs
	Model      string `json:"model,omitempty"`  // empty if unknown
	Path       string `json:"file,omitempty"`   // empty if only results.json is left
	Row        int    `json:"row,omitempty"`    // index within a file of several trajectories
	Format     string `json:"format,omitempty"` // empty for journals

	State    State              `json:"state"`
	Class    trajectories.Class `json:"class,omitempty"`
	Status   string             `json:"exit_status,omitempty"`
	Verdict  string             `json:"verdict,omitempty"`
	Cost     *model.Cost        `json:"cost"` // nil if unknown
	Steps    int                `json:"steps"`
	Tokens   int64              `json:"tokens"` // prompt and completion tokens
	Duration time.Duration      `json:"-"`
	Flags    []string           `json:"flags"`
	// Selected marks the attempt that counts for its instance.
	Selected bool   `json:"selected"`
	Problem  string `json:"problem,omitempty"` // the read error

	patchBytes  int
	textMissing bool // the filter's text was not found
}

// key identifies an entry.
func (it *Entry) key() string {
	if it.Path == "" {
		return it.Run + "\x00" + it.ID + "\x00" + strconv.Itoa(it.Attempt)
	}
	return it.Path + "\x00" + strconv.Itoa(it.Row)
}

// Name returns the instance id, with the number of the repetition if there are several.
func (it *Entry) Name() string {
	if it.Repetition > 0 {
		return it.ID + "#" + strconv.Itoa(it.Repetition)
	}
	return it.ID
}

// StatusText returns the status in one or two words.
func (it *Entry) StatusText() string {
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

// filterRow returns the values that filters match.
func (it *Entry) filterRow() query.Row {
	status := []string{it.StatusText(), string(it.State), string(it.Class)}
	return query.Row{ID: it.Name(), Status: status, Verdict: it.Verdict, Cost: it.Cost}
}

// setAttempt fills in the result of an attempt, or its progress.
func (it *Entry) setAttempt(a runner.Attempt) {
	r := a.Result
	if r == nil {
		it.State = Stopped
		it.Steps, it.Cost = a.Progress.Steps, a.Progress.Cost.IfKnown(a.Progress.Usage)
		it.Tokens = a.Progress.Usage.Prompt + a.Progress.Usage.Completion
		it.Duration = max(0, a.Progress.End.Sub(a.Progress.Start))
		return
	}
	it.State, it.Class, it.Status = Ended, r.Class, r.ExitStatus
	it.Cost, it.Steps = r.Cost, r.Steps
	it.Tokens = r.Usage.Prompt + r.Usage.Completion
	it.Duration = time.Duration(r.Seconds * float64(time.Second))
	it.setFlags(r.PatchBytes, r.Autosubmitted, len(r.Warnings) > 0)
	if r.Verdict != nil {
		it.Verdict = *r.Verdict
	}
}

// setTimeline fills in the totals of a whole trajectory.
func (it *Entry) setTimeline(t *timeline.Timeline) {
	it.State, it.Steps = Stopped, t.ReplyCount()
	it.Cost, it.Tokens = t.Cost.IfKnown(t.Usage), t.Usage.Prompt+t.Usage.Completion
	it.Duration = t.Last.Sub(t.Start)
	if o := t.Outcome; o != nil {
		it.State, it.Class, it.Status = Ended, o.Class, o.ExitStatus
		it.Cost, it.Tokens = o.Cost.IfKnown(o.Usage), o.Usage.Prompt+o.Usage.Completion
		it.Duration = o.ActiveDuration()
		it.setFlags(len(o.Submission), o.Autosubmitted, len(o.Warnings) > 0)
	}
}

func (it *Entry) setFlags(patchBytes int, autosubmitted, warned bool) {
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

// flagText returns the flags, or the read error without its path.
func (it *Entry) flagText() string {
	if it.State == Broken {
		return strings.TrimPrefix(it.Problem, it.Path+": ")
	}
	return strings.Join(it.Flags, " ")
}

// SortField is a column that the list can be sorted by.
type SortField string

// SortFields returns the fields in the order in which the s key cycles through them.
func SortFields() []SortField {
	return []SortField{"id", "status", "verdict", "cost", "steps", "tokens", "time", "flags", "run", "model"}
}

// numberValue returns the value of a numeric field; known is false if the entry has none.
func (f SortField) numberValue(it *Entry) (n float64, known, numeric bool) {
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
		return it.Duration.Seconds(), known, true
	}
	return 0, false, false
}

// textValue returns the value of a text field.
func (f SortField) textValue(it *Entry) string {
	switch f {
	case "status":
		return it.StatusText()
	case "verdict":
		return cmp.Or(it.Verdict, "none")
	case "flags":
		return it.flagText()
	case "run":
		return it.Run
	case "model":
		return it.Model
	}
	return ""
}

// SortOrder is the order of a list. The zero value sorts by id.
type SortOrder struct {
	By   SortField
	Desc bool
}

// ParseSortOrder parses a field name; a leading dash reverses the order.
func ParseSortOrder(s string) (SortOrder, error) {
	name, desc := strings.CutPrefix(s, "-")
	if by := SortField(strings.ToLower(name)); slices.Contains(SortFields(), by) {
		return SortOrder{by, desc}, nil
	}
	var names []string
	for _, f := range SortFields() {
		names = append(names, string(f))
	}
	return SortOrder{}, fmt.Errorf("invalid sort field %.40q: use %s, or -FIELD to reverse the order",
		s, strings.Join(names, ", "))
}

// sort sorts entries. Entries without a value come last in either order; equal entries are
// sorted by name.
func (s SortOrder) sort(items []*Entry) {
	slices.SortFunc(items, func(a, b *Entry) int {
		row := cmp.Compare(max(a.Row, -a.Row), max(b.Row, -b.Row))
		return cmp.Or(s.compare(a, b), byName(a, b), strings.Compare(a.Path, b.Path), row)
	})
}

func byName(a, b *Entry) int {
	return cmp.Or(datasets.CompareNatural(a.ID, b.ID), cmp.Compare(a.Repetition, b.Repetition), cmp.Compare(a.Attempt, b.Attempt))
}

func (s SortOrder) compare(a, b *Entry) int {
	x, knownX, numeric := s.By.numberValue(a)
	y, knownY, _ := s.By.numberValue(b)
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
		c = strings.Compare(s.By.textValue(a), s.By.textValue(b))
	}
	if s.Desc {
		return -c
	}
	return c
}
