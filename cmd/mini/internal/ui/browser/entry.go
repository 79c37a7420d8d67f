package browser

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/unit"
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

	patchBytes  int    // size of the submission
	isNumbered  bool   // the list shows the number of the attempt
	runName     string // Run, or the folder of the file, relative to the parent of all
	textMissing bool   // the trajectory does not contain the text of the filter
}

// isSame reports whether both entries are about the same trajectory.
func (e *Entry) isSame(other *Entry) bool {
	return e.Path == other.Path && e.Row == other.Row && e.Run == other.Run && e.ID == other.ID && e.Attempt == other.Attempt
}

// Name returns the instance id, with the number of the repetition if there are several.
func (e *Entry) Name() string {
	if e.Repetition > 0 {
		return e.ID + "#" + strconv.Itoa(e.Repetition)
	}
	return e.ID
}

// title returns the name, with the number of the attempt if isNumbered is set.
func (e *Entry) title(isNumbered bool) string {
	if isNumbered {
		return e.Name() + " attempt " + strconv.Itoa(e.Attempt)
	}
	return e.Name()
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
	t := a.Totals()
	e.State, e.Steps, e.Tokens = Stopped, t.Steps, t.Usage.Prompt+t.Usage.Completion
	e.Cost, e.Duration = t.Cost.IfKnown(t.Usage), max(0, t.End.Sub(t.Start))
	r := a.Result
	if r == nil {
		return
	}
	e.State, e.Class, e.Status, e.Cost, e.patchBytes = Ended, r.Class, r.ExitStatus, r.Cost, r.PatchBytes
	e.Duration = time.Duration(r.Seconds * float64(time.Second))
	if r.Verdict != nil {
		e.Verdict = *r.Verdict
	}
	for _, flag := range []struct {
		isSet bool
		name  string
	}{{r.Autosubmitted, "autosubmitted"}, {r.Class.IsResult() && r.PatchBytes == 0, "empty_patch"}, {len(r.Warnings) > 0, "warned"}} {
		if flag.isSet {
			e.Flags = append(e.Flags, flag.name)
		}
	}
}

// attemptOf returns the outcome and the totals of a trajectory outside of runs.
func attemptOf(t *timeline.Timeline) runs.Attempt {
	a := runs.Attempt{Progress: runs.Totals{
		Steps: t.ReplyCount(), Usage: t.Usage, Cost: t.Cost, Start: t.Totals.Start, End: t.Totals.End,
	}}
	if o := t.Outcome; o != nil {
		a.Result = &runs.Result{
			Class: o.Class, ExitStatus: o.ExitStatus, Steps: t.ReplyCount(), Usage: o.Usage, Cost: o.Cost.IfKnown(o.Usage),
			Seconds: o.ActiveDuration().Seconds(), PatchBytes: len(o.Submission), Autosubmitted: o.Autosubmitted, Warnings: o.Warnings,
		}
	}
	return a
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

// column is a column of the list.
type column struct {
	field  SortField
	header string
	width  int
	text   func(*Entry) string
	number func(*Entry) float64 // nil in a column of text; NaN if unknown
}

// allColumns are the columns in the order in which messages name them.
var allColumns = []column{
	{"id", "INSTANCE", 24, func(e *Entry) string { return e.title(e.isNumbered) }, nil},
	{"status", "STATUS", 15, (*Entry).StatusText, nil},
	{"verdict", "VERDICT", 11, func(e *Entry) string { return strings.ReplaceAll(e.Verdict, "_", " ") }, nil},
	{"cost", "COST", 7, (*Entry).costText, func(e *Entry) float64 {
		if e.Cost == nil {
			return math.NaN()
		}
		return float64(*e.Cost)
	}},
	{"steps", "STEPS", 6, func(e *Entry) string { return strconv.Itoa(e.Steps) }, func(e *Entry) float64 { return float64(e.Steps) }},
	{"tokens", "TOKENS", 7, func(e *Entry) string { return unit.Count(e.Tokens) }, func(e *Entry) float64 { return float64(e.Tokens) }},
	{"time", "TIME", 7, func(e *Entry) string { return unit.Duration(e.Duration) }, func(e *Entry) float64 { return e.Duration.Seconds() }},
	{"flags", "FLAGS", 40, (*Entry).flagText, nil},
	{"run", "RUN", 20, func(e *Entry) string { return e.runName }, nil},
	{"model", "MODEL", 20, func(e *Entry) string { return e.Model }, nil},
}

// byImportance are the columns from left to right. Those that do not fit are left out.
var byImportance = []SortField{"id", "run", "status", "verdict", "steps", "cost", "model", "time", "tokens", "flags"}

// SortFields returns the fields that the list can be sorted by.
func SortFields() (fields []SortField) {
	for _, c := range allColumns {
		fields = append(fields, c.field)
	}
	return fields
}

// column returns the column with the field; that of the id for the zero value.
func (f SortField) column() column {
	return allColumns[max(0, slices.IndexFunc(allColumns, func(c column) bool { return c.field == f }))]
}

// columnsFor returns the columns that fit into a width, with their final widths. It leaves out RUN
// and MODEL if all entries have the same.
func columnsFor(entries []*Entry, width int) (columns []column) {
	const gap = 2
	id := SortField("id").column()
	remaining := width - id.width - gap
	for _, field := range byImportance[1:] {
		c := field.column()
		if field == "run" || field == "model" {
			names := map[string]bool{}
			widest := len(c.header) + 1
			for _, e := range entries {
				name := steps.OneLine(c.text(e))
				names[name], widest = true, max(widest, terminal.Width(name))
			}
			if c.width = min(c.width, widest); len(names) < 2 {
				continue
			}
		}
		if field == "flags" {
			c.width = min(c.width, max(6, remaining-gap))
		}
		if remaining >= c.width+gap {
			columns, remaining = append(columns, c), remaining-c.width-gap
		}
	}
	id.width += max(0, remaining)
	return append([]column{id}, columns...)
}

// cell returns the text of an entry in the column; empty if a number is unknown or 0.
func (c column) cell(e *Entry) string {
	n := c.value(e)
	if c.number != nil && (e.State == Broken || n == 0 && c.field != "steps" && c.field != "cost") {
		return ""
	}
	return steps.OneLine(c.text(e))
}

// align pads a text at the right or, in a column of numbers, at the left.
func (c column) align(text string) string {
	if c.number != nil {
		return terminal.PadLeft(text, c.width)
	}
	return terminal.PadRight(text, c.width)
}

// value returns the number of an entry; NaN if it is unknown, and in a column of text.
func (c column) value(e *Entry) float64 {
	if c.number == nil || e.State == Broken {
		return math.NaN()
	}
	return c.number(e)
}

func (e *Entry) costText() string {
	switch {
	case e.Cost == nil:
		return "?"
	case *e.Cost == 0:
		return "-"
	}
	return unit.Money(float64(*e.Cost))
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
	names := strings.Trim(strings.ReplaceAll(fmt.Sprint(SortFields()), " ", ", "), "[]")
	return SortOrder{}, fmt.Errorf("invalid sort field %.40q: use %s, or -FIELD to reverse the order", text, names)
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

func (o SortOrder) compare(a, b *Entry) (order int) {
	c := o.By.column()
	x, y := c.value(a), c.value(b)
	switch {
	case math.IsNaN(x) != math.IsNaN(y):
		return map[bool]int{true: 1, false: -1}[math.IsNaN(x)]
	case c.number != nil:
		order = cmp.Compare(x, y)
	case c.field == "id":
		order = compareNames(a, b)
	default:
		order = strings.Compare(c.text(a), c.text(b))
	}
	if o.Desc {
		return -order
	}
	return order
}
