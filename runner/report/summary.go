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

// SummaryFormat identifies the JSON form of a Summary. Fields may be added;
// existing fields keep their names and meaning.
const SummaryFormat = "mini-report-1"

// Summary summarizes a run: counts, totals and the instances that need
// attention. It is the output of `mini report`, as text or JSON.
type Summary struct {
	Format      string   `json:"format"`
	Run         string   `json:"run"` // the run folder
	State       RunState `json:"state"`
	MiniVersion string   `json:"mini_version,omitempty"`
	Dataset     string   `json:"dataset,omitempty"`
	Model       string   `json:"model,omitempty"`
	Environment string   `json:"environment,omitempty"`

	Instances   int            `json:"instances"`    // selected for the run
	WithResult  int            `json:"with_result"`  // with the class submitted or limit
	NotFinished int            `json:"not_finished"` // with an attempt, but none that ended
	NotStarted  int            `json:"not_started"`
	Classes     []ClassSummary `json:"classes"`
	Patches     PatchCounts    `json:"patches"`
	Totals      Totals         `json:"totals"`

	Rows       []Row    `json:"-"` // all instances
	Expensive  []Row    `json:"most_expensive"`
	Slowest    []Row    `json:"slowest"`
	Failing    []Row    `json:"failing"`  // attempts ended without a result
	Unfinished []Row    `json:"underway"` // latest attempt has not ended
	Unreadable []string `json:"unread,omitempty"`
	// Verdicts holds the evaluations of the run, newest last.
	Verdicts []Score `json:"verdicts,omitempty"`
	// Repetitions is set if several results for each instance were requested.
	// The other fields describe the first repetition.
	Repetitions *RepetitionSummary `json:"samples,omitempty"`

	// HideNextStep omits the hint on how to continue the run, for callers that
	// print their own.
	HideNextStep bool `json:"-"`
}

// RunState is the state of a run.
type RunState string

// The states of a run.
const (
	Finished RunState = "finished" // the last session has ended
	Working  RunState = "working"  // a mini process is running
	Stopped  RunState = "stopped"  // the last session was killed
)

// ClassSummary summarizes the instances with one outcome class.
type ClassSummary struct {
	Class    trajectories.Class `json:"class"`
	Count    int                `json:"count"`
	Patches  PatchCounts        `json:"patches"`
	Statuses []StatusSummary    `json:"statuses"`
}

// StatusSummary summarizes the instances with one exit status. Reasons groups
// their errors.
type StatusSummary struct {
	Status  string   `json:"exit_status"`
	Count   int      `json:"count"`
	Reasons []Reason `json:"reasons,omitempty"`
}

// PatchCounts counts the patches of instances with a result.
type PatchCounts struct {
	With          int `json:"with_patch"`
	Empty         int `json:"empty"`
	Autosubmitted int `json:"autosubmitted"` // the working diff, submitted at a limit
}

// Totals sums up all attempts, including those that do not count.
type Totals struct {
	Attempts int        `json:"attempts"`
	Cost     model.Cost `json:"cost"` // US dollars; without unknown costs
	// CostUnknown counts the instances with model calls of unknown cost.
	// NoModel reports that the replies were scripted.
	CostUnknown int         `json:"cost_unknown_instances"`
	NoModel     bool        `json:"no_model"`
	Usage       model.Usage `json:"usage"`
	Steps       int         `json:"steps"`
	Median      int         `json:"median_steps"` // for each instance
	P90         int         `json:"p90_steps"`
	Max         int         `json:"max_steps"`
	Wall        float64     `json:"wall_seconds"` // total duration of the sessions
	Seconds     float64     `json:"sum_seconds"`  // sum over all attempts
	// Phases is the time spent in each phase, as far as journals have it.
	Phases []Phase `json:"phases,omitempty"`
}

// Row is one instance. AllSteps, Cost and Seconds include all attempts; the
// other fields describe the attempt that counts.
type Row struct {
	ID            string             `json:"instance_id"`
	Class         trajectories.Class `json:"class,omitempty"`
	Status        string             `json:"exit_status,omitempty"`
	Attempts      int                `json:"attempts"`
	Steps         int                `json:"steps"`
	AllSteps      int                `json:"steps_of_attempts"`
	Cost          model.Cost         `json:"-"`
	KnownCost     *model.Cost        `json:"cost"` // Cost; null if it is entirely unknown
	CostKnown     bool               `json:"cost_known"`
	Seconds       float64            `json:"seconds"`
	PatchBytes    int                `json:"patch_bytes"`
	Autosubmitted bool               `json:"autosubmitted,omitempty"`
	Error         string             `json:"error,omitempty"`
	Hint          string             `json:"hint,omitempty"`
}

// NewSummary summarizes a run. With ids it covers these instances only, and
// counts unknown ones as not started.
func NewSummary(run *runner.Run, ids []string, now time.Time) Summary {
	m := run.Manifest
	g := Summary{
		Format: SummaryFormat, Run: run.Dir, State: stateOf(run),
		MiniVersion: m.MiniVersion, Dataset: m.Dataset.Name, Model: cmp.Or(m.Model.Name, m.Model.Class),
		Environment: m.Environment.Class,
		Unreadable:  run.ReadErrors,
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
	classes := classGroups{}
	var spent []phaseTime
	for _, in := range instances {
		row := g.add(run, in, now, &spent)
		g.Rows = append(g.Rows, row)
		switch {
		case in.Result == nil:
			g.Unfinished = append(g.Unfinished, row)
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
	g.NotFinished = len(g.Unfinished)
	g.Classes = classes.sorted()
	for _, c := range g.Classes {
		g.Patches.With += c.Patches.With
		g.Patches.Empty += c.Patches.Empty
		g.Patches.Autosubmitted += c.Patches.Autosubmitted
	}
	g.Totals.Wall = run.WallTime(now).Seconds()
	g.Totals.Phases = sumPhases(spent)
	g.Repetitions = newRepetitionSummary(run, instances, g.Instances)
	g.rank()
	return g
}

// add adds an instance to the totals, and the phase times of its attempts to
// spent.
func (g *Summary) add(run *runner.Run, in runner.Instance, now time.Time, spent *[]phaseTime) Row {
	row := Row{ID: in.ID, Attempts: len(in.Attempts)}
	attempts := in.Attempts
	if r := in.Result; r != nil {
		row.Class, row.Status, row.Steps = r.Class, r.ExitStatus, r.Steps
		row.PatchBytes, row.Autosubmitted, row.Error, row.Hint = r.PatchBytes, r.Autosubmitted, r.Error, r.Hint
		if len(attempts) == 0 { // only results.json is available
			row.Attempts = max(1, r.Attempts)
			attempts = []runner.Attempt{{Result: r}}
		}
	}
	unpriced := int64(0)
	for _, a := range attempts {
		t := a.Totals()
		if r := a.Result; r != nil {
			*spent = append(*spent, phaseTimesOf(r.Times)...)
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

func stateOf(run *runner.Run) RunState {
	sessions := run.Manifest.Sessions
	switch {
	case run.WorkerPID > 0:
		return Working
	case len(sessions) > 0 && sessions[len(sessions)-1].Ended == nil:
		return Stopped
	}
	return Finished
}

// notStarted returns the minimum number of selected instances without an
// attempt. The run does not record the ids that each session selected. A
// session with fewer instances does not make the run smaller.
func notStarted(run *runner.Run) int {
	left := max(0, run.Manifest.Selected()-len(run.Instances))
	if n := len(run.Manifest.Sessions); n > 0 {
		if s := run.Manifest.Sessions[n-1].Summary; s != nil && s.Repetitions <= 1 { // otherwise it counts repetitions
			left = max(left, s.Unstarted)
		}
	}
	return left
}

// maxRanked is the length of a ranking.
const maxRanked = 10

// secondsOf returns the duration of an attempt. If the run is active, the
// newest attempt has not ended, even if its journal has no recent records.
func secondsOf(run *runner.Run, a runner.Attempt, now time.Time) float64 {
	if a.Result != nil {
		return a.Result.Seconds
	}
	start, end := a.Progress.Start, a.Progress.End
	sessions := run.Manifest.Sessions
	if n := len(sessions); run.WorkerPID > 0 && n > 0 && start.After(sessions[n-1].Started) {
		end = now
	}
	return max(0, end.Sub(start)).Seconds()
}

// rank computes the rankings and the step statistics.
func (g *Summary) rank() {
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

// ranked returns the rows with the largest positive values.
func ranked(rows []Row, of func(Row) float64) []Row {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return of(r) <= 0 })
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(of(b), of(a)) })
	return slices.Clip(rows[:min(maxRanked, len(rows))])
}

// quantile returns the nearest-rank percentile of sorted values.
func quantile(sorted []int, percent int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// Reason groups errors that differ in names, numbers and paths only.
type Reason struct {
	Count int `json:"count"`
	// Pattern is the error with placeholders. Error is the error of the
	// instance Example, and Hint its hint.
	Pattern string `json:"pattern"`
	Error   string `json:"error"`
	Example string `json:"example"`
	Hint    string `json:"hint,omitempty"`
}

// maxError is the maximum length of an error text, in bytes.
const maxError = 2000

// classOrder is the display order of classes.
var classOrder = []trajectories.Class{
	trajectories.Submitted, trajectories.Limit, trajectories.Provider,
	trajectories.Environment, trajectories.Interrupted, trajectories.Internal,
}

// classGroups groups rows by class.
type classGroups map[trajectories.Class]*ClassSummary

func (t classGroups) add(r Row) {
	c := t[r.Class]
	if c == nil {
		c = &ClassSummary{Class: r.Class}
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
	i := slices.IndexFunc(c.Statuses, func(s StatusSummary) bool { return s.Status == r.Status })
	if i < 0 {
		i = len(c.Statuses)
		c.Statuses = append(c.Statuses, StatusSummary{Status: r.Status})
	}
	c.Statuses[i].add(r)
}

func (s *StatusSummary) add(r Row) {
	s.Count++
	if r.Error == "" {
		return
	}
	pattern := MessagePattern(r.Error, r.ID)
	i := slices.IndexFunc(s.Reasons, func(o Reason) bool { return o.Pattern == pattern })
	if i < 0 {
		i = len(s.Reasons)
		s.Reasons = append(s.Reasons, Reason{
			Pattern: pattern, Error: truncate(r.Error, maxError), Example: r.ID, Hint: r.Hint,
		})
	}
	s.Reasons[i].Count++
}

// sorted returns the classes in display order, with their statuses and reasons
// by descending count.
func (t classGroups) sorted() []ClassSummary {
	list := []ClassSummary{}
	for _, c := range t {
		slices.SortStableFunc(c.Statuses, func(a, b StatusSummary) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Status, b.Status))
		})
		for _, s := range c.Statuses {
			slices.SortStableFunc(s.Reasons, func(a, b Reason) int { return cmp.Compare(b.Count, a.Count) })
		}
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b ClassSummary) int {
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

// variableParts lists patterns for the variable parts of errors, most specific
// first.
var variableParts = [...]struct {
	what *lazyregexp.Regexp
	sign string
}{
	{lazyregexp.New(`\bsha256:[0-9a-fA-F]+|\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`), "<id>"},
	{lazyregexp.New(`(^|[\s"'=(:])(~|\.{1,2})?(/[\w.@+~-]+){2,}/?`), "${1}<path>"},
	{lazyregexp.New(`\b[0-9a-fA-F]{8,}\b`), "<id>"},
	{lazyregexp.New(`\b([0-9]+(\.[0-9]+)?(h|ms|µs|us|ns|m|s))+\b`), "<time>"},
	{lazyregexp.New(`[0-9]+([.,][0-9]+)*`), "<n>"},
}

// minIDLength is the minimum length of an instance id that is replaced in its
// error. A shorter id may be an ordinary word.
const minIDLength = 4

// MessagePattern returns the start of a text with placeholders for the instance
// id, numbers, paths and container ids, so that similar messages are equal.
func MessagePattern(text, instance string) string {
	text = strings.Join(strings.Fields(truncate(text, maxError)), " ")
	if len(instance) >= minIDLength {
		// Image names contain the id in lower case and with "__" replaced.
		lower := strings.ToLower(instance)
		for _, name := range []string{
			instance, lower, strings.ReplaceAll(lower, "__", "_1776_"), strings.ReplaceAll(lower, "__", "_s_"),
		} {
			text = strings.ReplaceAll(text, name, "<instance>")
		}
	}
	for _, d := range variableParts {
		text = d.what.ReplaceAllString(text, d.sign)
	}
	return text
}

// truncate returns at most limit bytes of s, in whole characters.
func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
