package report

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// ScoreFormat names the layout of a Score as JSON. Fields may be added to it;
// those that are there keep their names and meaning.
const ScoreFormat = "mini-score-1"

// Evaluation is what a Score sums up.
type Evaluation struct {
	RunID   string
	Records []verdicts.Record // one for each instance
	// Unfinished are instances that were submitted and have no record, as when
	// the evaluation was stopped.
	Unfinished []string
	// Run is the run that the patches are from; nil when they are from elsewhere.
	// It has costs, steps and times, and the instances without a result.
	Run *runner.Run
	// IDs are the instances that were asked for; nil means those of Run and those
	// with a record.
	IDs      []string
	Official string // path of the official summary; may be empty
	Now      time.Time
}

// Score is how an evaluation ended: the final table. It is what `mini eval`,
// `mini bench --eval` and `mini report` print, as text or as JSON.
type Score struct {
	Format   string   `json:"format"`
	RunID    string   `json:"run_id"`
	Models   []string `json:"models"` // as the predictions name them
	Run      string   `json:"run,omitempty"`
	Official string   `json:"official_summary,omitempty"`
	// Baseline is gold or noop where the patches are those of the baseline of a
	// machine. Then Rate says nothing of an agent: of gold all should be resolved,
	// of noop none.
	Baseline string `json:"baseline,omitempty"`

	// Instances are those that were asked for: the denominator of Rate. What has
	// no verdict counts as not resolved there, as with the official harness.
	Instances int   `json:"instances"`
	Rate      Share `json:"rate"`
	// Trusted leaves out the quarantined instances; nil where there are none or no
	// others, and of a baseline.
	Trusted *Share `json:"without_quarantined,omitempty"`
	// LikePeers takes the diffs that mini submitted at a limit for nothing, as
	// agents do that submit nothing there; nil where there are none.
	LikePeers *Share `json:"without_autosubmitted,omitempty"`

	Classes []ScoreClass `json:"classes"`
	// NotEvaluated have a submission and no verdict yet; NoResult have none to
	// evaluate: see the outcomes of the run.
	NotEvaluated []string `json:"not_evaluated,omitempty"`
	NoResult     int      `json:"no_result"`

	// Flags counts instances by what is suspicious about them, Flagged those that
	// have any. Swayed are those whose verdict changes without the flagged hunks.
	Flags   map[string]int `json:"flags,omitempty"`
	Flagged int            `json:"flagged"`
	Swayed  []Swayed       `json:"changed_without_suspect,omitempty"`

	// ForeignLogs are the instances whose verdict rests on a log that came with the
	// folder.
	ForeignLogs []string `json:"foreign_logs,omitempty"`
	// Told are the verdicts that need a reason, by class: unstable,
	// infrastructure and error.
	Told        []Told                 `json:"reasons,omitempty"`
	Quarantined []evaluate.Quarantined `json:"quarantined,omitempty"`
	Reused      int                    `json:"reused"` // verdicts for which nothing was run

	// Cost is of all attempts at the evaluated instances, US dollars. Unknown
	// says that somebody knows more than is added up here.
	Cost        model.Cost `json:"cost"`
	CostUnknown int        `json:"cost_unknown_instances"`
	Seconds     float64    `json:"evaluation_seconds"` // one after the other
	HasRun      bool       `json:"has_run"`            // costs, steps and seconds are known
}

// Share is a part of instances, with the 95% interval (Wilson) of its rate.
type Share struct {
	Resolved int     `json:"resolved"`
	Of       int     `json:"of"`
	Rate     float64 `json:"rate"` // 0 to 1
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
}

// ScoreClass is the instances of one class.
type ScoreClass struct {
	Class verdicts.Class `json:"class"`
	Count int            `json:"count"`
	IDs   []string       `json:"ids"`
	// Autosubmitted are the diffs that mini submitted at a limit.
	Autosubmitted int `json:"autosubmitted"`
	// Attempts, Cost, Steps and Seconds are of the agent, of all attempts at the
	// instances, added up; 0 where no run is known. Evaluation is how many seconds
	// the evaluations took.
	Attempts   int        `json:"attempts"`
	Cost       model.Cost `json:"cost"`
	Steps      int        `json:"steps"`
	Seconds    float64    `json:"seconds"`
	Evaluation float64    `json:"evaluation_seconds"`
}

// Swayed is a verdict that changes without the hunks that were flagged.
type Swayed struct {
	ID       string         `json:"instance_id"`
	Class    verdicts.Class `json:"class"`
	Resolved bool           `json:"resolved_without_suspect"`
}

// Told is why an instance has no better verdict.
type Told struct {
	ID     string         `json:"instance_id"`
	Class  verdicts.Class `json:"class"`
	Reason string         `json:"reason,omitempty"`
	Hint   string         `json:"hint,omitempty"`
}

func share(resolved, of int) Share {
	s := Share{Resolved: resolved, Of: of}
	if of > 0 {
		s.Rate = float64(resolved) / float64(of)
	}
	s.Low, s.High = grade.Interval(resolved, of)
	return s
}

// NewScore sums an evaluation up.
func NewScore(e Evaluation) Score {
	s := Score{Format: ScoreFormat, RunID: e.RunID, Official: e.Official, HasRun: e.Run != nil, Models: []string{}}
	rows := map[string]Row{}
	if e.Run != nil {
		g := NewGlance(e.Run, e.IDs, e.Now)
		s.Run, s.Instances = e.Run.Dir, g.Instances
		for _, r := range g.Rows {
			rows[r.ID] = r
		}
	}
	records := slices.Clone(e.Records)
	if e.IDs != nil {
		records = slices.DeleteFunc(records, func(r verdicts.Record) bool { return !slices.Contains(e.IDs, r.Instance) })
	}
	slices.SortFunc(records, func(a, b verdicts.Record) int { return datasets.Natural(a.Instance, b.Instance) })
	t := scoring{Score: &s, rows: rows, classes: map[verdicts.Class]*ScoreClass{}}
	for _, r := range records {
		t.add(r)
	}
	if len(s.Models) == 1 && isBaseline(s.Models[0]) {
		s.Baseline = s.Models[0]
	}
	t.rest(e.Unfinished)
	s.Instances = max(s.Instances, len(e.IDs), t.known+s.NoResult)
	t.rates()
	return s
}

// scoring is a Score in the making.
type scoring struct {
	*Score
	rows    map[string]Row // of the run, by id; those with a record are taken out
	classes map[verdicts.Class]*ScoreClass
	known   int // instances with a record, or that wait for one
	peers   int // resolved by what peers would have submitted as well
	trusted int // resolved, and not quarantined
}

func (t *scoring) add(r verdicts.Record) {
	c := t.classes[r.Class]
	if c == nil {
		c = &ScoreClass{Class: r.Class}
		t.classes[r.Class] = c
	}
	row, ok := t.rows[r.Instance]
	delete(t.rows, r.Instance)
	if ok && !row.CostKnown {
		t.CostUnknown++
	}
	t.known++
	c.Count++
	c.IDs = append(c.IDs, r.Instance)
	c.Cost, c.Steps, c.Seconds, c.Evaluation = c.Cost+row.Cost, c.Steps+row.AllSteps, c.Seconds+row.Seconds, c.Evaluation+r.Seconds
	c.Attempts += row.Attempts
	t.Cost, t.Seconds = t.Cost+row.Cost, t.Seconds+r.Seconds
	if row.Autosubmitted {
		c.Autosubmitted++
	} else if r.Class == verdicts.Resolved {
		t.peers++
	}
	if r.Reused != "" {
		t.Reused++
	}
	if r.ForeignLog {
		t.ForeignLogs = append(t.ForeignLogs, r.Instance)
	}
	if !slices.Contains(t.Models, r.Model) {
		t.Models = append(t.Models, r.Model)
	}
	t.suspect(r)
	switch r.Class {
	case verdicts.Unstable, verdicts.Infrastructure, verdicts.Error:
		t.Told = append(t.Told, Told{ID: r.Instance, Class: r.Class, Reason: r.Reason, Hint: r.Hint})
	}
	if r.Quarantine() {
		t.Quarantined = append(t.Quarantined, evaluate.Quarantined{Instance: r.Instance, Gold: r.Gold, Noop: r.Noop})
	} else if r.Class == verdicts.Resolved {
		t.trusted++
	}
}

// suspect counts the flags of a record, each kind once.
func (t *scoring) suspect(r verdicts.Record) {
	if len(r.Flags) > 0 {
		t.Flagged++
	}
	for _, name := range r.FlagNames() {
		if t.Flags == nil {
			t.Flags = map[string]int{}
		}
		t.Flags[name]++
	}
	if without := r.ResolvedWithoutSuspect; without != nil && *without != (r.Class == verdicts.Resolved) {
		t.Swayed = append(t.Swayed, Swayed{ID: r.Instance, Class: r.Class, Resolved: *without})
	}
}

// rest sorts the instances without a record.
func (t *scoring) rest(unfinished []string) {
	waiting := map[string]bool{}
	for _, id := range unfinished {
		waiting[id] = true
	}
	for id, row := range t.rows {
		if row.Class.Counts() {
			waiting[id] = true
		} else if !waiting[id] {
			t.NoResult++
		}
	}
	t.NotEvaluated = slices.SortedFunc(maps.Keys(waiting), datasets.Natural)
	t.known += len(t.NotEvaluated)
}

func (t *scoring) rates() {
	t.NoResult = t.Instances - t.known // those that were not started too
	for _, class := range verdicts.Classes() {
		if c := t.classes[class]; c != nil {
			t.Classes = append(t.Classes, *c)
		} else if class == verdicts.Resolved || class == verdicts.Unresolved {
			t.Classes = append(t.Classes, ScoreClass{Class: class, IDs: []string{}})
		}
	}
	resolved, auto := t.Count(verdicts.Resolved), 0
	for _, c := range t.Classes {
		auto += c.Autosubmitted
	}
	t.Rate = share(resolved, t.Instances)
	if auto > 0 {
		like := share(t.peers, t.Instances)
		t.LikePeers = &like
	}
	if len(t.Quarantined) == 0 || t.Baseline != "" {
		return
	}
	if t.Instances == len(t.Quarantined) {
		return // a rate of nothing
	}
	trusted := share(t.trusted, t.Instances-len(t.Quarantined))
	t.Trusted = &trusted
}

// Count is how many instances ended in a class.
func (s Score) Count(class verdicts.Class) int {
	for _, c := range s.Classes {
		if c.Class == class {
			return c.Count
		}
	}
	return 0
}

// Complete says whether every patch has a verdict. Where it is false, mini ends
// with code 3.
func (s Score) Complete() bool {
	return len(s.NotEvaluated) == 0 && s.Count(verdicts.Infrastructure) == 0
}

// byCount are the names of counts, the highest first.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// Scores are the evaluations in the folder of a run, the newest last. With ids
// they are about those instances only. The models of one evaluation are taken
// together where they have no instance in common: a run may have gone on with
// another model. The baseline of the machine (gold, noop) is no score of its
// own where there are others; it is what quarantines instances in these. A
// verdict on what an instance had submitted before counts no more.
func Scores(found verdicts.Found, run *runner.Run, ids []string, now time.Time) []Score {
	type group struct {
		runID     string
		newest    time.Time
		records   []verdicts.Record
		instances map[string]bool
		baseline  bool
		ofRun     bool // the run's own submissions
	}
	var groups []*group
	base, own := baselineOf(found), SubmissionsOf(run)
	for _, v := range byModel(found) {
		first := v[0]
		if first.Sample > 1 {
			continue // see Samples
		}
		v = slices.DeleteFunc(v, func(v verdicts.Verdict) bool { return own.stale(v.Record) })
		baseline := isBaseline(first.Model)
		i := slices.IndexFunc(groups, func(g *group) bool {
			return g.runID == first.RunID && !baseline && !g.baseline &&
				!slices.ContainsFunc(v, func(v verdicts.Verdict) bool { return g.instances[v.Instance] })
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{runID: first.RunID, instances: map[string]bool{}, baseline: baseline})
		}
		g := groups[i]
		for _, v := range v {
			g.instances[v.Instance] = true
			g.ofRun = g.ofRun || own.has(v.Record)
			g.records = append(g.records, base.complete(v.Record))
			for _, run := range v.Runs {
				if run.Start.After(g.newest) {
					g.newest = run.Start
				}
			}
		}
	}
	if slices.ContainsFunc(groups, func(g *group) bool { return !g.baseline }) {
		groups = slices.DeleteFunc(groups, func(g *group) bool { return g.baseline })
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return a.newest.Compare(b.newest) })
	var scores []Score
	for _, g := range groups {
		e := Evaluation{RunID: g.runID, Records: g.records, IDs: ids, Now: now}
		if g.ofRun { // else its costs are of other patches
			e.Run = run
		}
		s := NewScore(e)
		s.Official = officialOf(found.Dir, s)
		scores = append(scores, s)
	}
	return scores
}

// officialOf is the path of the official summary in the folder, which is called
// after one of the models; empty where there is none.
func officialOf(dir string, s Score) string {
	run, err := grade.NewRun(dir, s.RunID)
	if err != nil {
		return ""
	}
	for _, m := range s.Models {
		name, err := run.SummaryName(m)
		if err != nil {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

func isBaseline(name string) bool { return name == evaluate.GoldModel || name == evaluate.NoopModel }

// byModel are the verdicts of each evaluation and model.
func byModel(found verdicts.Found) [][]verdicts.Verdict {
	type key struct{ run, model string }
	groups := map[key][]verdicts.Verdict{}
	var order []key
	for _, v := range found.Verdicts {
		k := key{v.RunID, v.Model}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], v)
	}
	var lists [][]verdicts.Verdict
	for _, k := range order {
		lists = append(lists, groups[k])
	}
	return lists
}

// baseline is what gold and noop came to, by instance.
type baseline struct{ gold, noop map[string]verdicts.Class }

func baselineOf(found verdicts.Found) baseline {
	b := baseline{map[string]verdicts.Class{}, map[string]verdicts.Class{}}
	for _, v := range found.Verdicts {
		switch {
		case !v.Class.Final(): // nothing is known yet
		case v.Model == evaluate.GoldModel:
			b.gold[v.Instance] = v.Class
		case v.Model == evaluate.NoopModel:
			b.noop[v.Instance] = v.Class
		}
	}
	return b
}

// complete adds to a record what is known of the baseline now.
func (b baseline) complete(r verdicts.Record) verdicts.Record {
	if c, ok := b.gold[r.Instance]; ok {
		r.Gold = c
	}
	if c, ok := b.noop[r.Instance]; ok {
		r.Noop = c
	}
	return r
}

// Submissions are the predictions of a run, by instance.
type Submissions map[string]trajectories.Prediction

// SubmissionsOf reads them from where evaluations do. What cannot be read is
// as good as missing: no verdict is tied to the run then.
func SubmissionsOf(run *runner.Run) Submissions {
	if run == nil {
		return nil
	}
	preds, err := trajectories.ReadPredictions(filepath.Join(run.Dir, "preds.json"))
	if err != nil {
		return nil
	}
	return preds.ByID()
}

// has says that a verdict is on a submission of the run.
func (s Submissions) has(r verdicts.Record) bool {
	p, ok := s[r.Instance]
	return ok && r.IsOn(p)
}

// stale says that a verdict is on what the run's instance had submitted before.
func (s Submissions) stale(r verdicts.Record) bool {
	p, ok := s[r.Instance]
	return ok && p.Model == r.Model && !r.IsOn(p)
}
