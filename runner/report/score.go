package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/stats"
	"github.com/minibench/mini/runner/verdicts"
)

// ScoreFormat identifies the JSON form of a Score. Fields may be added;
// existing fields keep their names and meaning.
const ScoreFormat = "mini-score-1"

// Evaluation is the input of NewScore.
type Evaluation struct {
	RunID   string
	Records []verdicts.Record // one for each instance
	// Unfinished lists submitted instances without a record, for example
	// because the evaluation was stopped.
	Unfinished []string
	// Run is the run that made the patches. Its costs, steps and times are added
	// to the score. Run is nil if the patches were made elsewhere.
	Run *runs.Run
	// IDs lists the selected instances; nil means all instances of Run and
	// Records.
	IDs      []string
	Official string // path of the official summary; "" if there is none
	Now      time.Time
}

// Score is the result of an evaluation. It is the output of `mini eval`, `mini
// bench --eval` and `mini report`, as text or JSON.
type Score struct {
	Format   string   `json:"format"`
	RunID    string   `json:"run_id"`
	Models   []string `json:"models"` // model names of the predictions
	Run      string   `json:"run,omitempty"`
	Official string   `json:"official_summary,omitempty"`
	// Baseline is the model name "gold" or "noop" if the evaluation is a baseline
	// of the machine, otherwise "". Rate then does not describe an agent: all gold
	// patches should resolve their instances, and no noop task should.
	Baseline string `json:"baseline,omitempty"`

	// Instances is the number of selected instances and the denominator of Rate.
	// As in the official harness, an instance without a verdict counts as not
	// resolved.
	Instances int `json:"instances"`
	// Rate is nil if no instance has a verdict. NoRate then says why.
	Rate   *ResolveRate `json:"rate,omitempty"`
	NoRate string       `json:"no_rate,omitempty"`
	// PerInstance is the largest number of attempts that count at an instance, if
	// there are several (-k). The score is that of the first ones; see
	// RepetitionSummary. It is 0 if there is only one.
	PerInstance int `json:"attempts_per_instance,omitempty"`
	// WithoutQuarantined is the rate without quarantined instances. It is nil if
	// no instances or all instances are quarantined, and for a baseline.
	WithoutQuarantined *ResolveRate `json:"without_quarantined,omitempty"`
	// WithoutAutosubmitted is the rate if diffs that mini submitted at a limit
	// count as not resolved. It makes the rate comparable with agents that submit
	// nothing at a limit. It is nil if there are no such diffs.
	WithoutAutosubmitted *ResolveRate `json:"without_autosubmitted,omitempty"`

	Classes []ScoreClass `json:"classes"`
	// NotEvaluated lists the instances with a submission but no verdict yet.
	// NoResult counts the instances without a submission.
	NotEvaluated []string `json:"not_evaluated,omitempty"`
	NoResult     int      `json:"no_result"`

	// Flags counts the instances with each flag, Flagged the instances with any
	// flag. ChangedWithoutSuspect lists the instances whose verdict is different
	// without the flagged files.
	Flags                 map[string]int   `json:"flags,omitempty"`
	Flagged               int              `json:"flagged"`
	ChangedWithoutSuspect []ChangedVerdict `json:"changed_without_suspect,omitempty"`

	// VerdictReasons explains the verdicts of the classes unstable,
	// infrastructure and error.
	VerdictReasons []VerdictReason        `json:"reasons,omitempty"`
	Quarantined    []evaluate.Quarantined `json:"quarantined,omitempty"`
	Reused         int                    `json:"reused"` // verdicts without a new test run

	// Rewards summarizes the rewards of Harbor tasks; nil if there are none.
	Rewards *RewardSummary `json:"rewards,omitempty"`

	// Cost is the known cost of all attempts at the evaluated instances, in US
	// dollars. CostUnknown counts the instances with calls of unknown cost.
	Cost        model.Cost `json:"cost"`
	CostUnknown int        `json:"cost_unknown_instances"`
	Seconds     float64    `json:"evaluation_seconds"` // sum over all verdicts
	HasRun      bool       `json:"has_run"`            // whether costs, steps and times are known
}

// ResolveRate is the share of resolved instances, with its 95% Wilson interval.
type ResolveRate struct {
	Resolved int     `json:"resolved"`
	Of       int     `json:"of"`
	Rate     float64 `json:"rate"` // 0 to 1
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
}

// ScoreClass summarizes the instances with one class of verdict.
type ScoreClass struct {
	Class verdicts.Class `json:"class"`
	Count int            `json:"count"`
	IDs   []string       `json:"ids"`
	// Autosubmitted counts the diffs that mini submitted at a limit.
	Autosubmitted int `json:"autosubmitted"`
	// Attempts, Cost, Steps and Seconds sum up all attempts of the agent at these
	// instances; they are 0 if the run is unknown. Evaluation is the total
	// duration of the evaluations, in seconds.
	Attempts   int        `json:"attempts"`
	Cost       model.Cost `json:"cost"`
	Steps      int        `json:"steps"`
	Seconds    float64    `json:"seconds"`
	Evaluation float64    `json:"evaluation_seconds"`
}

// ChangedVerdict is a verdict that is different without the flagged files.
type ChangedVerdict struct {
	ID       string         `json:"instance_id"`
	Class    verdicts.Class `json:"class"`
	Resolved bool           `json:"resolved_without_suspect"`
}

// VerdictReason explains the class of a verdict.
type VerdictReason struct {
	ID     string         `json:"instance_id"`
	Class  verdicts.Class `json:"class"`
	Reason string         `json:"reason,omitempty"`
	Hint   string         `json:"hint,omitempty"`
}

// NewResolveRate returns the rate of resolved instances with its interval.
func NewResolveRate(resolved, of int) ResolveRate {
	s := ResolveRate{Resolved: resolved, Of: of}
	if of > 0 {
		s.Rate = float64(resolved) / float64(of)
	}
	i := stats.Wilson(float64(resolved), float64(of))
	s.Low, s.High = i.Low, i.High
	return s
}

// NewScore summarizes an evaluation.
func NewScore(e Evaluation) Score {
	s := Score{Format: ScoreFormat, RunID: e.RunID, Official: e.Official, HasRun: e.Run != nil, Models: []string{}}
	rows := map[string]Row{}
	if e.Run != nil {
		summary := NewSummary(e.Run, e.IDs, e.Now)
		s.Run, s.Instances = e.Run.Dir, summary.Instances
		if r := summary.Repetitions; r != nil {
			s.PerInstance = r.PerInstance
		}
		for _, r := range summary.Rows {
			rows[r.ID] = r
		}
	}
	records := slices.Clone(e.Records)
	if e.IDs != nil {
		records = slices.DeleteFunc(records, func(r verdicts.Record) bool { return !slices.Contains(e.IDs, r.Instance) })
	}
	slices.SortFunc(records, func(a, b verdicts.Record) int { return datasets.CompareNatural(a.Instance, b.Instance) })
	builder := scoreBuilder{Score: &s, rows: rows, classes: map[verdicts.Class]*ScoreClass{}}
	for _, r := range records {
		builder.add(r)
	}
	if len(s.Models) == 1 && isBaseline(s.Models[0]) {
		s.Baseline = s.Models[0]
	}
	builder.addUnevaluated(e.Unfinished)
	s.Instances = max(s.Instances, len(e.IDs), builder.accounted+s.NoResult)
	builder.computeRates()
	return s
}

// scoreBuilder builds a Score.
type scoreBuilder struct {
	*Score
	rows              map[string]Row // the run's rows for which add has seen no record, by instance id
	classes           map[verdicts.Class]*ScoreClass
	accounted         int // instances with a record or a submission
	submittedResolved int // resolved and not autosubmitted
	trustedResolved   int // resolved and not quarantined
}

func (b *scoreBuilder) add(r verdicts.Record) {
	c := b.classes[r.Class]
	if c == nil {
		c = &ScoreClass{Class: r.Class}
		b.classes[r.Class] = c
	}
	row, ok := b.rows[r.Instance]
	delete(b.rows, r.Instance)
	if ok && !row.CostKnown {
		b.CostUnknown++
	}
	b.addReward(r)
	b.accounted++
	c.Count++
	c.IDs = append(c.IDs, r.Instance)
	c.Cost += row.Cost
	c.Steps += row.AllSteps
	c.Seconds += row.Seconds
	c.Evaluation += r.Seconds
	c.Attempts += row.Attempts
	b.Cost, b.Seconds = b.Cost+row.Cost, b.Seconds+r.Seconds
	if row.Autosubmitted {
		c.Autosubmitted++
	} else if r.Class == verdicts.Resolved {
		b.submittedResolved++
	}
	if r.ReusedFrom != "" {
		b.Reused++
	}
	if !slices.Contains(b.Models, r.Model) {
		b.Models = append(b.Models, r.Model)
	}
	b.addFlags(r)
	switch r.Class {
	case verdicts.Unstable, verdicts.Infrastructure, verdicts.Error:
		b.VerdictReasons = append(b.VerdictReasons, VerdictReason{ID: r.Instance, Class: r.Class, Reason: r.Reason, Hint: r.Hint})
	}
	if r.IsQuarantined() {
		b.Quarantined = append(b.Quarantined, evaluate.Quarantined{Instance: r.Instance, Gold: r.Gold, Noop: r.Noop})
	} else if r.Class == verdicts.Resolved {
		b.trustedResolved++
	}
}

// RewardSummary summarizes the rewards that count (see verdicts.Reward).
type RewardSummary struct {
	Mean       float64            `json:"mean"`       // a task without a reward counts as 0
	Of         int                `json:"of"`         // number of tasks with a verdict
	Fractional int                `json:"fractional"` // rewards that are neither 0 nor 1
	Instances  map[string]float64 `json:"instances"`  // the rewards by instance
	sum        float64
}

// addReward adds the reward of a record.
func (b *scoreBuilder) addReward(r verdicts.Record) {
	if r.Kind != verdicts.KindHarbor {
		return
	}
	if b.Rewards == nil {
		b.Rewards = &RewardSummary{Instances: map[string]float64{}}
	}
	s := b.Rewards
	s.Of++
	if n, ok := verdicts.Reward(r.Rewards); ok {
		s.Instances[r.Instance] = n
		s.sum += n
	}
	if !verdicts.IsBinary(r.Rewards) {
		s.Fractional++
	}
	s.Mean = s.sum / float64(s.Of)
}

// text describes the rewards; "" if resolved or not says it all.
func (s *RewardSummary) text() string {
	if s == nil || s.Fractional == 0 {
		return ""
	}
	return fmt.Sprintf("mean reward %.3f of %s; %s neither 0 nor 1, and only a reward of 1 or more is resolved",
		s.Mean, text.Count(s.Of, "task"), text.Count(s.Fractional, "reward")+" "+map[bool]string{true: "is", false: "are"}[s.Fractional == 1])
}

// addFlags counts the distinct flags of a record.
func (b *scoreBuilder) addFlags(r verdicts.Record) {
	if len(r.Flags) > 0 {
		b.Flagged++
	}
	for _, name := range r.FlagNames() {
		if b.Flags == nil {
			b.Flags = map[string]int{}
		}
		b.Flags[name]++
	}
	if without := r.ResolvedWithoutSuspect; without != nil && *without != (r.Class == verdicts.Resolved) {
		b.ChangedWithoutSuspect = append(b.ChangedWithoutSuspect, ChangedVerdict{ID: r.Instance, Class: r.Class, Resolved: *without})
	}
}

// addUnevaluated counts the instances without a record.
func (b *scoreBuilder) addUnevaluated(unfinished []string) {
	pending := map[string]bool{}
	for _, id := range unfinished {
		pending[id] = true
	}
	for id, row := range b.rows {
		if row.Class.IsResult() {
			pending[id] = true
		} else if !pending[id] {
			b.NoResult++
		}
	}
	b.NotEvaluated = slices.SortedFunc(maps.Keys(pending), datasets.CompareNatural)
	b.accounted += len(b.NotEvaluated)
}

func (b *scoreBuilder) computeRates() {
	b.NoResult = b.Instances - b.accounted // includes instances that were not started
	for _, class := range verdicts.Classes() {
		if c := b.classes[class]; c != nil {
			b.Classes = append(b.Classes, *c)
		} else if class == verdicts.Resolved || class == verdicts.Unresolved {
			b.Classes = append(b.Classes, ScoreClass{Class: class, IDs: []string{}})
		}
	}
	resolved, autosubmitted := b.Count(verdicts.Resolved), 0
	for _, c := range b.Classes {
		autosubmitted += c.Autosubmitted
	}
	if b.verdictCount() == 0 {
		b.NoRate = b.noRateText()
		return
	}
	rate := NewResolveRate(resolved, b.Instances)
	b.Rate = &rate
	if autosubmitted > 0 {
		rate := NewResolveRate(b.submittedResolved, b.Instances)
		b.WithoutAutosubmitted = &rate
	}
	if len(b.Quarantined) == 0 || b.Baseline != "" {
		return
	}
	if b.Instances == len(b.Quarantined) {
		return // all instances are quarantined
	}
	trusted := NewResolveRate(b.trustedResolved, b.Instances-len(b.Quarantined))
	b.WithoutQuarantined = &trusted
}

// Count returns the number of instances in a class.
func (s Score) Count(class verdicts.Class) int {
	for _, c := range s.Classes {
		if c.Class == class {
			return c.Count
		}
	}
	return 0
}

// Complete reports whether every patch has a verdict. If not, mini exits with
// code 3.
func (s Score) Complete() bool {
	return len(s.NotEvaluated) == 0 && s.Count(verdicts.Infrastructure) == 0
}

// byCount returns the keys of counts, highest count first.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}
