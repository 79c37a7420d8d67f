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
	"github.com/minibench/mini/runner/runs"
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
	Stopped State = "stopped" // neither running nor ended with an outcome
	Broken  State = "broken"  // the file cannot be read, or only in part
)

// Entry is a trajectory in the list. mini inspect --json prints it, together with its duration
// in seconds.
type Entry struct {
	ID         string `json:"instance_id"`
	Attempt    int    `json:"attempt,omitempty"`
	Repetition int    `json:"sample,omitempty"` // number of the repetition (--attempts); 0 if there is only one
	Run        string `json:"run,omitempty"`    // folder of the run; empty outside of runs
	Model      string `json:"model,omitempty"`  // empty if unknown
	Path       string `json:"file,omitempty"`   // empty if only results.json is left
	Row        int    `json:"row,omitempty"`    // index in its file; negative if unreadable
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
	Labels   []string           `json:"labels,omitempty"` // of the instance; see package labels
	// Selected marks the attempt that counts for its instance and repetition.
	Selected bool   `json:"selected"`
	Problem  string `json:"problem,omitempty"` // the read error

	patchBytes  int  // size of the submission
	textMissing bool // the trajectory does not contain the text of the filter
}

// key identifies an entry.
func (e *Entry) key() string {
	if e.Path == "" {
		return e.Run + "\x00" + e.ID + "\x00" + strconv.Itoa(e.Attempt)
	}
	return e.Path + "\x00" + strconv.Itoa(e.Row)
}

// Name returns the instance id, with the number of the repetition if there are several.
func (e *Entry) Name() string {
	if e.Repetition > 0 {
		return e.ID + "#" + strconv.Itoa(e.Repetition)
	}
	return e.ID
}

// StatusText returns the status in one or two words.
func (e *Entry) StatusText() string {
	switch e.State {
	case Running:
		return string(e.State)
	case Stopped:
		return "not ended"
	case Broken:
		return "unreadable"
	}
	return cmp.Or(e.Status, string(e.Class))
}

// filterRow returns the values that filters match.
func (e *Entry) filterRow() query.Row {
	status := []string{e.StatusText(), string(e.State), string(e.Class)}
	return query.Row{ID: e.Name(), Status: status, Verdict: e.Verdict, Labels: e.Labels, Cost: e.Cost}
}

// setAttempt sets the fields to the result of an attempt or, if there is none, to its progress.
func (e *Entry) setAttempt(a runs.Attempt) {
	r := a.Result
	if r == nil {
		e.State = Stopped
		e.Steps, e.Cost = a.Progress.Steps, a.Progress.Cost.IfKnown(a.Progress.Usage)
		e.Tokens = a.Progress.Usage.Prompt + a.Progress.Usage.Completion
		e.Duration = max(0, a.Progress.End.Sub(a.Progress.Start))
		return
	}
	e.State, e.Class, e.Status = Ended, r.Class, r.ExitStatus
	e.Cost, e.Steps = r.Cost, r.Steps
	e.Tokens = r.Usage.Prompt + r.Usage.Completion
	e.Duration = time.Duration(r.Seconds * float64(time.Second))
	e.setFlags(r.PatchBytes, r.Autosubmitted, len(r.Warnings) > 0)
	if r.Verdict != nil {
		e.Verdict = *r.Verdict
	}
}

// setTimeline sets the fields to the outcome and the totals of a trajectory.
func (e *Entry) setTimeline(t *timeline.Timeline) {
	e.State, e.Steps = Stopped, t.ReplyCount()
	e.Cost, e.Tokens = t.Cost.IfKnown(t.Usage), t.Usage.Prompt+t.Usage.Completion
	e.Duration = t.Totals.End.Sub(t.Totals.Start)
	if o := t.Outcome; o != nil {
		e.State, e.Class, e.Status = Ended, o.Class, o.ExitStatus
		e.Cost, e.Tokens = o.Cost.IfKnown(o.Usage), o.Usage.Prompt+o.Usage.Completion
		e.Duration = o.ActiveDuration()
		e.setFlags(len(o.Submission), o.Autosubmitted, len(o.Warnings) > 0)
	}
}

func (e *Entry) setFlags(patchBytes int, autosubmitted, warned bool) {
	e.patchBytes, e.Flags = patchBytes, nil
	for _, flag := range []struct {
		isSet bool
		name  string
	}{{autosubmitted, "autosubmitted"}, {e.Class.IsResult() && patchBytes == 0, "empty_patch"}, {warned, "warned"}} {
		if flag.isSet {
			e.Flags = append(e.Flags, flag.name)
		}
	}
}

// flagText returns the flags, or the read error without its path.
func (e *Entry) flagText() string {
	if e.State == Broken {
		return strings.TrimPrefix(e.Problem, e.Path+": ")
	}
	return strings.Join(e.Flags, " ")
}

// SortField is a column that the list can be sorted by.
type SortField string

// SortFields returns the fields in the order in which the s key cycles through them.
func SortFields() []SortField {
	return []SortField{"id", "status", "verdict", "cost", "steps", "tokens", "time", "flags", "run", "model"}
}

// numberValue returns the value of a numeric field. known is false if the entry has no value.
// For a text field, known and numeric are false.
func (f SortField) numberValue(entry *Entry) (n float64, known, numeric bool) {
	known = entry.State != Broken
	switch f {
	case "cost":
		if entry.Cost != nil {
			n = float64(*entry.Cost)
		}
		return n, known && entry.Cost != nil, true
	case "steps":
		return float64(entry.Steps), known, true
	case "tokens":
		return float64(entry.Tokens), known, true
	case "time":
		return entry.Duration.Seconds(), known, true
	}
	return 0, false, false
}

// textValue returns the value of a text field other than id.
func (f SortField) textValue(entry *Entry) string {
	switch f {
	case "status":
		return entry.StatusText()
	case "verdict":
		return cmp.Or(entry.Verdict, "none")
	case "flags":
		return entry.flagText()
	case "run":
		return entry.Run
	case "model":
		return entry.Model
	}
	return ""
}

// SortOrder is the order of a list. The zero value sorts by id.
type SortOrder struct {
	By   SortField
	Desc bool
}

// ParseSortOrder parses a field name; a leading dash reverses the order.
func ParseSortOrder(text string) (SortOrder, error) {
	name, descending := strings.CutPrefix(text, "-")
	if field := SortField(strings.ToLower(name)); slices.Contains(SortFields(), field) {
		return SortOrder{field, descending}, nil
	}
	var names []string
	for _, f := range SortFields() {
		names = append(names, string(f))
	}
	return SortOrder{}, fmt.Errorf("invalid sort field %.40q: use %s, or -FIELD to reverse the order",
		text, strings.Join(names, ", "))
}

// sort sorts entries. Entries without a number come last in the order of a numeric field, also if
// it is descending. Entries with equal values are in ascending order of their names.
func (o SortOrder) sort(entries []*Entry) {
	slices.SortFunc(entries, func(a, b *Entry) int {
		rowOrder := cmp.Compare(max(a.Row, -a.Row), max(b.Row, -b.Row))
		return cmp.Or(o.compare(a, b), compareNames(a, b), strings.Compare(a.Path, b.Path), rowOrder)
	})
}

func compareNames(a, b *Entry) int {
	return cmp.Or(datasets.CompareNatural(a.ID, b.ID), cmp.Compare(a.Repetition, b.Repetition),
		cmp.Compare(a.Attempt, b.Attempt))
}

func (o SortOrder) compare(a, b *Entry) int {
	x, knownX, numeric := o.By.numberValue(a)
	y, knownY, _ := o.By.numberValue(b)
	var c int
	switch {
	case knownX != knownY && knownX:
		return -1
	case knownX != knownY:
		return 1
	case numeric:
		c = cmp.Compare(x, y)
	case o.By == "" || o.By == "id":
		c = compareNames(a, b)
	default:
		c = strings.Compare(o.By.textValue(a), o.By.textValue(b))
	}
	if o.Desc {
		return -c
	}
	return c
}
