package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// GlanceFormat names the layout of a Glance as JSON. Fields may be added to
// it; those that are there keep their names and meaning.
const GlanceFormat = "mini-report-1"

// Glance is a run at a glance: counts, sums and the instances to look at. It
// is what `mini report` prints, as text or as JSON.
type Glance struct {
	Format      string `json:"format"`
	Run         string `json:"run"` // the folder
	State       State  `json:"state"`
	MiniVersion string `json:"mini_version,omitempty"`
	Dataset     string `json:"dataset,omitempty"`
	Model       string `json:"model,omitempty"`
	Environment string `json:"environment,omitempty"`

	Instances   int     `json:"instances"`    // that were asked for
	WithResult  int     `json:"with_result"`  // submitted or limit
	NotFinished int     `json:"not_finished"` // have an attempt, and none that ended
	NotStarted  int     `json:"not_started"`
	Classes     []Class `json:"classes"`
	Patches     Patches `json:"patches"`
	Totals      Totals  `json:"totals"`

	Rows      []Row    `json:"-"` // all of them, for short runs
	Expensive []Row    `json:"most_expensive"`
	Slowest   []Row    `json:"slowest"`
	Failing   []Row    `json:"failing"`  // whose attempts ended without a result
	Underway  []Row    `json:"underway"` // whose attempt has not ended
	Unread    []string `json:"unread,omitempty"`
	// Verdicts are the evaluations of the run, the newest last.
	Verdicts []Score `json:"verdicts,omitempty"`
	// Samples is there where several results an instance were asked for. What
	// stands above is about the first of each.
	Samples *Samples `json:"samples,omitempty"`

	// NextIsSaid leaves out how to go on with the run, for who says it beside
	// the glance.
	NextIsSaid bool `json:"-"`
}

// State says whether a mini is at work in the folder.
type State string

// The states of a run.
const (
	Finished State = "finished" // the last session came to its end
	Working  State = "working"  // a mini works in the folder
	Stopped  State = "stopped"  // the last session was killed
)

// Class is the instances of one class of outcome.
type Class struct {
	Class    trajectories.Class `json:"class"`
	Count    int                `json:"count"`
	Patches  Patches            `json:"patches"`
	Statuses []Status           `json:"statuses"`
}

// Status is the instances with one exit status. Reasons group their errors.
type Status struct {
	Status  string   `json:"exit_status"`
	Count   int      `json:"count"`
	Reasons []Reason `json:"reasons,omitempty"`
}

// Patches counts what instances have a result with.
type Patches struct {
	With          int `json:"with_patch"`
	Empty         int `json:"empty"`
	Autosubmitted int `json:"autosubmitted"` // the working diff at a limit
}

// Totals are of all attempts, also those that do not count.
type Totals struct {
	Attempts int        `json:"attempts"`
	Cost     model.Cost `json:"cost"` // US dollars, as far as it is known
	// CostUnknown counts instances that called a model without anyone saying
	// what it cost. NoModel says that none was called: replies were scripted.
	CostUnknown int         `json:"cost_unknown_instances"`
	NoModel     bool        `json:"no_model"`
	Usage       model.Usage `json:"usage"`
	Steps       int         `json:"steps"`
	Median      int         `json:"median_steps"` // of an instance
	P90         int         `json:"p90_steps"`
	Max         int         `json:"max_steps"`
	Wall        float64     `json:"wall_seconds"` // that a mini worked in the folder
	Seconds     float64     `json:"sum_seconds"`  // of all attempts, one after the other
	// Phases are where the time went, as far as journals say.
	Phases []Phase `json:"phases,omitempty"`
}

// Row is one instance. AllSteps, cost and seconds are of all its attempts,
// everything else of the one that counts.
type Row struct {
	ID            string             `json:"instance_id"`
	Class         trajectories.Class `json:"class,omitempty"`
	Status        string             `json:"exit_status,omitempty"`
	Attempts      int                `json:"attempts"`
	Steps         int                `json:"steps"`
	AllSteps      int                `json:"steps_of_attempts"`
	Cost          model.Cost         `json:"-"`
	KnownCost     *model.Cost        `json:"cost"` // Cost; null where nobody knows any of it
	CostKnown     bool               `json:"cost_known"`
	Seconds       float64            `json:"seconds"`
	PatchBytes    int                `json:"patch_bytes"`
	Autosubmitted bool               `json:"autosubmitted,omitempty"`
	Error         string             `json:"error,omitempty"`
	Hint          string             `json:"hint,omitempty"`
}

// NewGlance sums up a run. With ids it looks at those instances only, and
// counts the ones the run knows nothing of as not started.
func NewGlance(run *runner.Run, ids []string, now time.Time) Glance {
	m := run.Manifest
	g := Glance{
		Format: GlanceFormat, Run: run.Dir, State: stateOf(run),
		MiniVersion: m.MiniVersion, Dataset: m.Dataset.Name, Model: cmp.Or(m.Model.Name, m.Model.Class), Environment: m.Environment.Class,
		Unread: run.Unread,
	}
	g.Totals.NoModel = m.Model.Class == "scripted"
	instances := run.Instances
	if ids != nil {
		wanted := make(map[string]bool, len(ids))
		for _, id := range ids {
			wanted[id] = true
		}
		instances = slices.DeleteFunc(slices.Clone(instances), func(in runner.Instance) bool { return !wanted[in.ID] })
		g.NotStarted = len(wanted) - len(instances)
	} else {
		g.NotStarted = notStarted(run)
	}
	g.Instances = len(instances) + g.NotStarted
	classes := tallyClasses{}
	var spent []took
	for _, in := range instances {
		row := g.add(run, in, now, &spent)
		g.Rows = append(g.Rows, row)
		switch {
		case in.Result == nil:
			g.Underway = append(g.Underway, row)
			continue
		case !row.Class.Counts():
			g.Failing = append(g.Failing, row)
		default:
			g.WithResult++
		}
		classes.add(row)
	}
	slices.SortStableFunc(g.Failing, func(a, b Row) int {
		return cmp.Or(cmp.Compare(rankOf(a.Class), rankOf(b.Class)), cmp.Compare(a.Status, b.Status))
	})
	g.NotFinished = len(g.Underway)
	g.Classes = classes.sorted()
	for _, c := range g.Classes {
		g.Patches.With += c.Patches.With
		g.Patches.Empty += c.Patches.Empty
		g.Patches.Autosubmitted += c.Patches.Autosubmitted
	}
	g.Totals.Wall = run.Wall(now).Seconds()
	g.Totals.Phases = phasesOf(spent)
	g.Samples = newSamples(run, instances, g.Instances)
	g.rank()
	return g
}

// add counts an instance in the totals; where the time of its attempts went is
// added to spent.
func (g *Glance) add(run *runner.Run, in runner.Instance, now time.Time, spent *[]took) Row {
	row := Row{ID: in.ID, Attempts: len(in.Attempts)}
	attempts := in.Attempts
	if r := in.Result; r != nil {
		row.Class, row.Status, row.Steps = r.Class, r.ExitStatus, r.Steps
		row.PatchBytes, row.Autosubmitted, row.Error, row.Hint = r.PatchBytes, r.Autosubmitted, r.Error, r.Hint
		if len(attempts) == 0 { // all that results.json says
			row.Attempts = max(1, r.Attempts)
			attempts = []runner.Attempt{{Result: r}}
		}
	}
	unpriced := int64(0)
	for _, a := range attempts {
		t := a.Tally()
		if r := a.Result; r != nil {
			*spent = append(*spent, spentIn(r.Times)...)
		}
		row.AllSteps += t.Steps
		row.Cost += t.Cost
		row.Seconds += max(0, secondsOf(run, a, now))
		g.Totals.Usage = g.Totals.Usage.Add(t.Usage)
		unpriced += t.Usage.Unpriced
		if in.Result == nil {
			row.Steps = t.Steps
		}
	}
	row.CostKnown = unpriced == 0 || g.Totals.NoModel
	if !row.CostKnown {
		g.Totals.CostUnknown++
	}
	if row.CostKnown || row.Cost != 0 {
		row.KnownCost = &row.Cost
	}
	g.Totals.Attempts += row.Attempts
	g.Totals.Steps += row.AllSteps
	g.Totals.Cost += row.Cost
	g.Totals.Seconds += row.Seconds
	return row
}

func stateOf(run *runner.Run) State {
	sessions := run.Manifest.Sessions
	switch {
	case run.Worker > 0:
		return Working
	case len(sessions) > 0 && sessions[len(sessions)-1].Ended == nil:
		return Stopped
	}
	return Finished
}

// notStarted is how many instances that were asked for have no attempt, at
// least: which ones each session was asked for only the dataset knows. A
// session that was asked for few does not make the run smaller.
func notStarted(run *runner.Run) int {
	left := max(0, run.Manifest.Selected()-len(run.Instances))
	if n := len(run.Manifest.Sessions); n > 0 {
		if s := run.Manifest.Sessions[n-1].Summary; s != nil && s.Samples <= 1 { // else it counts samples
			left = max(left, s.Unstarted)
		}
	}
	return left
}

// top is how many instances a ranking has.
const top = 10

// secondsOf is how long an attempt took. Where a mini is at work the newest one
// goes on, though its journal may be silent for minutes.
func secondsOf(run *runner.Run, a runner.Attempt, now time.Time) float64 {
	if a.Result != nil {
		return a.Result.Seconds
	}
	start, end := a.SoFar.Start, a.SoFar.End
	sessions := run.Manifest.Sessions
	if n := len(sessions); run.Worker > 0 && n > 0 && start.After(sessions[n-1].Started) {
		end = now
	}
	return max(0, end.Sub(start)).Seconds()
}

// rank finds the extremes.
func (g *Glance) rank() {
	g.Expensive = ranked(g.Rows, func(r Row) float64 { return float64(r.Cost) })
	g.Slowest = ranked(g.Rows, func(r Row) float64 { return r.Seconds })
	var steps []int
	for _, r := range g.Rows {
		if r.Class != "" {
			steps = append(steps, r.Steps)
		}
	}
	slices.Sort(steps)
	g.Totals.Median, g.Totals.P90, g.Totals.Max = quantile(steps, 50), quantile(steps, 90), quantile(steps, 100)
}

// ranked are the rows with the most of something, and none with nothing.
func ranked(rows []Row, of func(Row) float64) []Row {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return of(r) <= 0 })
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(of(b), of(a)) })
	return slices.Clip(rows[:min(top, len(rows))])
}

// quantile is the nearest rank: the smallest number that so many percent of
// the sorted ones do not exceed.
func quantile(sorted []int, percent int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// Reason is what several instances failed with: errors that are alike but for
// names, numbers and paths.
type Reason struct {
	Count int `json:"count"`
	// Pattern is the error with what differs left out; Error is that of one
	// instance, Example, and Hint what mini said to do about it.
	Pattern string `json:"pattern"`
	Error   string `json:"error"`
	Example string `json:"example"`
	Hint    string `json:"hint,omitempty"`
}

// maxError bounds the error texts that are looked at, in bytes.
const maxError = 2000

// classOrder is that of the table: what counts, then what does not.
var classOrder = []trajectories.Class{
	trajectories.Submitted, trajectories.Limit, trajectories.Provider,
	trajectories.Environment, trajectories.Interrupted, trajectories.Internal,
}

// tallyClasses groups rows by class.
type tallyClasses map[trajectories.Class]*Class

func (t tallyClasses) add(r Row) {
	c := t[r.Class]
	if c == nil {
		c = &Class{Class: r.Class}
		t[r.Class] = c
	}
	c.Count++
	if r.Class.Counts() {
		if r.PatchBytes > 0 {
			c.Patches.With++
		} else {
			c.Patches.Empty++
		}
		if r.Autosubmitted {
			c.Patches.Autosubmitted++
		}
	}
	i := slices.IndexFunc(c.Statuses, func(s Status) bool { return s.Status == r.Status })
	if i < 0 {
		i = len(c.Statuses)
		c.Statuses = append(c.Statuses, Status{Status: r.Status})
	}
	c.Statuses[i].add(r)
}

func (s *Status) add(r Row) {
	s.Count++
	if r.Error == "" {
		return
	}
	pattern := Shape(r.Error, r.ID)
	i := slices.IndexFunc(s.Reasons, func(o Reason) bool { return o.Pattern == pattern })
	if i < 0 {
		i = len(s.Reasons)
		s.Reasons = append(s.Reasons, Reason{Pattern: pattern, Error: bounded(r.Error, maxError), Example: r.ID, Hint: r.Hint})
	}
	s.Reasons[i].Count++
}

// sorted puts classes in the order of classOrder, and the rest most first.
func (t tallyClasses) sorted() []Class {
	list := []Class{}
	for _, c := range t {
		slices.SortStableFunc(c.Statuses, func(a, b Status) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Status, b.Status))
		})
		for _, s := range c.Statuses {
			slices.SortStableFunc(s.Reasons, func(a, b Reason) int { return cmp.Compare(b.Count, a.Count) })
		}
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Class) int {
		return cmp.Or(cmp.Compare(rankOf(a.Class), rankOf(b.Class)), cmp.Compare(a.Class, b.Class))
	})
	return list
}

func rankOf(c trajectories.Class) int {
	if i := slices.Index(classOrder, c); i >= 0 {
		return i
	}
	return len(classOrder)
}

// differing is what differs between errors that are alike, the most particular
// first.
var differing = [...]struct {
	what *lazyregexp.Regexp
	sign string
}{
	{lazyregexp.New(`\bsha256:[0-9a-fA-F]+|\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`), "<id>"},
	{lazyregexp.New(`(^|[\s"'=(:])(~|\.{1,2})?(/[\w.@+~-]+){2,}/?`), "${1}<path>"},
	{lazyregexp.New(`\b[0-9a-fA-F]{8,}\b`), "<id>"},
	{lazyregexp.New(`\b([0-9]+(\.[0-9]+)?(h|ms|µs|us|ns|m|s))+\b`), "<time>"},
	{lazyregexp.New(`[0-9]+([.,][0-9]+)*`), "<n>"},
}

// minName is the length from which on an id is looked for in its error: a
// shorter one may be a word of the sentence.
const minName = 4

// Shape is the beginning of a text without the instance it is about, without
// numbers, and without the names of folders and containers: what texts of the
// same kind have in common.
func Shape(text, instance string) string {
	text = strings.Join(strings.Fields(bounded(text, maxError)), " ")
	if len(instance) >= minName {
		// As such, and within the names of images, which cannot have "__" or capitals.
		lower := strings.ToLower(instance)
		for _, name := range []string{
			instance, lower, strings.ReplaceAll(lower, "__", "_1776_"), strings.ReplaceAll(lower, "__", "_s_"),
		} {
			text = strings.ReplaceAll(text, name, "<instance>")
		}
	}
	for _, d := range differing {
		text = d.what.ReplaceAllString(text, d.sign)
	}
	return text
}

// bounded is the beginning of s, in whole characters.
func bounded(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
