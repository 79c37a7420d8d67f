package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/batch"
	"github.com/minibench/mini/runner/compare"
	"github.com/minibench/mini/runner/runs"
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
	NotFinished int            `json:"not_finished"` // with attempts, none of which has ended
	NotStarted  int            `json:"not_started"`
	Classes     []ClassSummary `json:"classes"`
	Patches     PatchCounts    `json:"patches"`
	Totals      Totals         `json:"totals"`
	// UnprovenNetworks counts the attempts in whose sandbox the test that there is no
	// network failed.
	UnprovenNetworks int `json:"unproven_networks,omitempty"`

	Rows       []Row    `json:"rows"` // all instances
	Expensive  []Row    `json:"most_expensive"`
	Slowest    []Row    `json:"slowest"`
	Failing    []Row    `json:"failing"`  // with ended attempts but no result
	Unfinished []Row    `json:"underway"` // the instances that NotFinished counts
	Unreadable []string `json:"unread,omitempty"`
	// Verdicts holds the evaluations of the run, newest last.
	Verdicts []Score `json:"verdicts,omitempty"`
	// Repetitions is set if the run has several repetitions of each instance. The
	// other fields describe the first repetition.
	Repetitions *RepetitionSummary `json:"samples,omitempty"`

	// Unresolved groups the attempts that are not resolved, of all repetitions; nil
	// if there is no verdict.
	Unresolved *Unresolved `json:"unresolved,omitempty"`

	// Statistics describes the run as a comparison of runs does: the rate with its
	// interval, pass@k, and cost. It is nil if the caller has not set it.
	Statistics *compare.Summary `json:"statistics,omitempty"`

	// HideNextStep omits the hint on how to continue the run. Callers set it if
	// they print their own hint.
	HideNextStep bool `json:"-"`
	// Resume says how to continue the run, for callers that know its command.
	Resume string `json:"-"`
	// ResumeArgs are the arguments that continue the run; empty if they are not recorded.
	ResumeArgs []string `json:"-"`
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

// StatusSummary summarizes the instances with one exit status. Reasons are their
// errors, grouped by batch.MessagePattern.
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
	// NoModel reports whether the replies were scripted.
	CostUnknown int         `json:"cost_unknown_instances"`
	NoModel     bool        `json:"no_model"`
	Usage       model.Usage `json:"usage"`
	Steps       int         `json:"steps"`
	Median      int         `json:"median_steps"` // of the attempts that count, of all repetitions
	P90         int         `json:"p90_steps"`
	Max         int         `json:"max_steps"`
	Wall        float64     `json:"wall_seconds"` // total duration of the sessions
	Seconds     float64     `json:"sum_seconds"`  // sum over all attempts
	// Phases is the time spent in each phase, without attempts whose journals
	// lack it.
	Phases []Phase `json:"phases,omitempty"`
}

// Row is one instance. AllSteps, Cost and Seconds are sums of all attempts,
// including those of all repetitions; the other fields describe the attempt that
// counts for the first repetition.
type Row struct {
	ID            string             `json:"instance_id"`
	Class         trajectories.Class `json:"class,omitempty"`
	Status        string             `json:"exit_status,omitempty"`
	Attempts      int                `json:"attempts"`
	Steps         int                `json:"steps"`
	AllSteps      int                `json:"steps_of_attempts"`
	Tokens        int64              `json:"tokens"` // prompt and completion tokens
	Cost          model.Cost         `json:"-"`
	KnownCost     *model.Cost        `json:"cost"` // Cost; null if no part of it is known
	CostKnown     bool               `json:"cost_known"`
	Seconds       float64            `json:"seconds"`
	PatchBytes    int                `json:"patch_bytes"`
	Autosubmitted bool               `json:"autosubmitted,omitempty"`
	Error         string             `json:"error,omitempty"`
	Hint          string             `json:"hint,omitempty"`
}

// NewSummary summarizes a run. If ids is not nil, the summary covers only these
// instances and counts those without an attempt as not started.
func NewSummary(run *runs.Run, ids []string, now time.Time) Summary {
	m := run.Manifest
	summary := Summary{
		Format: SummaryFormat, Run: run.Dir, State: stateOf(run),
		MiniVersion: m.MiniVersion, Dataset: m.Dataset.Name, Model: cmp.Or(m.Model.Name, m.Model.Class),
		Environment: m.Environment.Class,
		Unreadable:  run.ReadErrors, ResumeArgs: m.Command,
	}
	summary.Totals.NoModel = m.Model.Class == "scripted"
	instances := run.Instances
	if ids != nil {
		wanted := make(map[string]bool, len(ids))
		for _, id := range ids {
			wanted[id] = true
		}
		instances = slices.DeleteFunc(slices.Clone(instances), func(in runs.Instance) bool { return !wanted[in.ID] })
		summary.NotStarted = len(wanted) - len(instances)
	} else {
		summary.NotStarted = notStarted(run)
	}
	summary.Instances = len(instances) + summary.NotStarted
	classes := classGroups{}
	var times []phaseTime
	var steps []int // of the attempts that count
	for _, in := range instances {
		for _, r := range in.Repetitions {
			steps = append(steps, r.Steps)
		}
		row := summary.add(run, in, now, &times)
		summary.Rows = append(summary.Rows, row)
		switch {
		case in.Result == nil:
			summary.Unfinished = append(summary.Unfinished, row)
			continue
		case !row.Class.IsResult():
			summary.Failing = append(summary.Failing, row)
		default:
			summary.WithResult++
		}
		classes.add(row)
	}
	slices.SortStableFunc(summary.Failing, func(a, b Row) int {
		return cmp.Or(cmp.Compare(rankOf(a.Class), rankOf(b.Class)), cmp.Compare(a.Status, b.Status))
	})
	summary.NotFinished = len(summary.Unfinished)
	summary.Classes = classes.sorted()
	for _, c := range summary.Classes {
		summary.Patches.With += c.Patches.With
		summary.Patches.Empty += c.Patches.Empty
		summary.Patches.Autosubmitted += c.Patches.Autosubmitted
	}
	summary.Totals.Wall = run.WallTime(now).Seconds()
	summary.Totals.Phases = sumPhases(times)
	summary.Repetitions = newRepetitionSummary(run, instances, summary.Instances)
	summary.rank(steps)
	return summary
}

// add adds an instance to the totals and the phase times of its attempts to times.
// It returns the row of the instance.
func (s *Summary) add(run *runs.Run, in runs.Instance, now time.Time, times *[]phaseTime) Row {
	row := Row{ID: in.ID, Attempts: len(in.Attempts)}
	attempts := in.Attempts
	if r := in.Result; r != nil {
		row.Class, row.Status, row.Steps = r.Class, r.ExitStatus, r.Steps
		row.PatchBytes, row.Autosubmitted, row.Error, row.Hint = r.PatchBytes, r.Autosubmitted, r.Error, r.Hint
		if len(in.Attempts) == 0 { // only results.json is available
			row.Attempts, attempts = max(1, r.Attempts), in.AllAttempts()
		}
	}
	unpriced := int64(0)
	for _, a := range attempts {
		t := a.Totals()
		if r := a.Result; r != nil {
			*times = append(*times, phaseTimesOf(r.Times)...)
			if strings.HasPrefix(r.NetworkProof, env.NetworkUnproven) {
				s.UnprovenNetworks++
			}
		}
		row.AllSteps += t.Steps
		row.Cost += t.Cost
		row.Seconds += max(0, secondsOf(run, a, now))
		s.Totals.Usage = s.Totals.Usage.Add(t.Usage)
		unpriced += t.Usage.Unpriced
		row.Tokens += t.Usage.Prompt + t.Usage.Completion
		if in.Result == nil {
			row.Steps = t.Steps
		}
	}
	row.CostKnown = unpriced == 0 || s.Totals.NoModel
	if !row.CostKnown {
		s.Totals.CostUnknown++
	}
	if row.CostKnown || row.Cost != 0 {
		row.KnownCost = &row.Cost
	}
	s.Totals.Attempts += row.Attempts
	s.Totals.Steps += row.AllSteps
	s.Totals.Cost += row.Cost
	s.Totals.Seconds += row.Seconds
	return row
}

func stateOf(run *runs.Run) RunState {
	sessions := run.Manifest.Sessions
	switch {
	case run.WorkerPID > 0:
		return Working
	case len(sessions) > 0 && sessions[len(sessions)-1].Ended == nil:
		return Stopped
	}
	return Finished
}

// notStarted returns the number of selected instances without an attempt. It is a
// lower bound, because the run records how many instances each session selected but
// not their ids. The session with the most instances counts.
func notStarted(run *runs.Run) int {
	left := max(0, run.Manifest.Selected()-len(run.Instances))
	if n := len(run.Manifest.Sessions); n > 0 {
		if s := run.Manifest.Sessions[n-1].Summary; s != nil && s.Repetitions <= 1 { // otherwise Unstarted counts repetitions
			left = max(left, s.Unstarted)
		}
	}
	return left
}

// maxRanked is the length of a ranking.
const maxRanked = 10

// secondsOf returns the duration of an attempt, in seconds. In an active run, an
// attempt of the current session without an outcome lasts until now, even if its
// journal has no recent records.
func secondsOf(run *runs.Run, a runs.Attempt, now time.Time) float64 {
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

// rank computes the rankings, and the statistics of the steps of attempts.
func (s *Summary) rank(steps []int) {
	s.Expensive = ranked(s.Rows, func(r Row) float64 { return float64(r.Cost) })
	s.Slowest = ranked(s.Rows, func(r Row) float64 { return r.Seconds })
	slices.Sort(steps)
	s.Totals.Median, s.Totals.P90, s.Totals.Max = quantile(steps, 50), quantile(steps, 90), quantile(steps, 100)
}

// ranked returns the rows with the largest positive values, largest first, at
// most maxRanked.
func ranked(rows []Row, value func(Row) float64) []Row {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return value(r) <= 0 })
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(value(b), value(a)) })
	return slices.Clip(rows[:min(maxRanked, len(rows))])
}

// quantile returns the nearest-rank percentile of sorted values.
func quantile(sorted []int, percent int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// Reason groups errors that differ only in names, numbers and paths.
type Reason struct {
	Count int `json:"count"`
	// Pattern is the error with placeholders (see batch.MessagePattern). Example is the
	// id of one of the instances; Error and Hint are those of that instance.
	Pattern string `json:"pattern"`
	Error   string `json:"error"`
	Example string `json:"example"`
	Hint    string `json:"hint,omitempty"`
}

// maxError is the maximum length of an error text, in bytes without the
// ellipsis.
const maxError = 2000

// classOrder is the display order of classes.
var classOrder = []trajectories.Class{
	trajectories.Submitted, trajectories.Limit, trajectories.Provider,
	trajectories.Environment, trajectories.Interrupted, trajectories.Internal,
}

// classGroups groups rows by class.
type classGroups map[trajectories.Class]*ClassSummary

func (g classGroups) add(r Row) {
	c := g[r.Class]
	if c == nil {
		c = &ClassSummary{Class: r.Class}
		g[r.Class] = c
	}
	c.Count++
	if r.Class.IsResult() {
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
	text := truncate(r.Error, maxError)
	pattern := batch.MessagePattern(text, r.ID)
	i := slices.IndexFunc(s.Reasons, func(o Reason) bool { return o.Pattern == pattern })
	if i < 0 {
		i = len(s.Reasons)
		s.Reasons = append(s.Reasons, Reason{
			Pattern: pattern, Error: text, Example: r.ID, Hint: r.Hint,
		})
	}
	s.Reasons[i].Count++
}

// sorted returns the classes in display order. It sorts their statuses and reasons
// by descending count.
func (g classGroups) sorted() []ClassSummary {
	list := []ClassSummary{}
	for _, c := range g {
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

// truncate returns s if it has at most limit bytes, otherwise at most its first
// limit bytes and an ellipsis. It cuts between characters.
func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
