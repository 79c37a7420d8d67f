package report

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

// NewScores returns the scores of all evaluations in a run folder, newest last. If
// ids is not nil, the scores cover only these instances. Verdicts on replaced
// submissions do not count.
//
// NewScores combines models of one evaluation that have no instance in common,
// because a run may continue with another model. The baseline evaluations (gold,
// noop) determine the quarantined instances; they have a score of their own only if
// there are no other evaluations.
func NewScores(set verdicts.Set, run *runs.Run, ids []string, now time.Time) []Score {
	type group struct { // verdicts with a common score
		runID     string
		newest    time.Time // start of the newest test run
		records   []verdicts.Record
		instances map[string]bool
		baseline  bool
		hasRun    bool // has verdicts on the run's own submissions
	}
	var groups []*group
	baselines, submissions := baselineOf(set), ReadPredictions(run)
	for _, list := range byModel(set) {
		first := list[0]
		if first.Repetition > 1 {
			continue // see RepetitionSummary
		}
		list = slices.DeleteFunc(list, func(v verdicts.Verdict) bool { return submissions.isStale(v.Record) })
		baseline := isBaseline(first.Model)
		i := slices.IndexFunc(groups, func(g *group) bool {
			return g.runID == first.RunID && !baseline && !g.baseline &&
				!slices.ContainsFunc(list, func(v verdicts.Verdict) bool { return g.instances[v.Instance] })
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{runID: first.RunID, instances: map[string]bool{}, baseline: baseline})
		}
		g := groups[i]
		for _, v := range list {
			g.instances[v.Instance] = true
			g.hasRun = g.hasRun || submissions.matches(v.Record)
			g.records = append(g.records, baselines.withBaseline(v.Record))
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
		if g.hasRun { // otherwise the run's costs belong to other patches
			e.Run = run
		}
		s := NewScore(e)
		s.Official = officialPath(set.Dir, s)
		scores = append(scores, s)
	}
	return scores
}

// officialPath returns the path of the official summary; "" if there is none. The
// file is named after one of the score's models.
func officialPath(dir string, s Score) string {
	layout, err := grade.NewLayout(dir, s.RunID)
	if err != nil {
		return ""
	}
	for _, m := range s.Models {
		name, err := layout.SummaryName(m)
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

func isBaseline(name string) bool { return verdicts.Record{Model: name}.IsBaseline() }

// byModel groups the verdicts by evaluation and model.
func byModel(set verdicts.Set) [][]verdicts.Verdict {
	type key struct{ run, model string }
	groups := map[key][]verdicts.Verdict{}
	var order []key
	for _, v := range set.Verdicts {
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

// baseline holds the classes of the gold and noop tasks, by instance.
type baseline struct{ gold, noop map[string]verdicts.Class }

func baselineOf(set verdicts.Set) baseline {
	b := baseline{map[string]verdicts.Class{}, map[string]verdicts.Class{}}
	for _, v := range set.Verdicts {
		switch {
		case !v.Class.IsFinal(): // no result yet
		case v.Model == evaluate.GoldModel:
			b.gold[v.Instance] = v.Class
		case v.Model == evaluate.NoopModel:
			b.noop[v.Instance] = v.Class
		}
	}
	return b
}

// withBaseline returns the record with the current baseline classes.
func (b baseline) withBaseline(r verdicts.Record) verdicts.Record {
	if c, ok := b.gold[r.Instance]; ok {
		r.Gold = c
	}
	if c, ok := b.noop[r.Instance]; ok {
		r.Noop = c
	}
	return r
}

// Predictions holds the predictions of a run, by instance id.
type Predictions map[string]trajectories.Prediction

// ReadPredictions reads preds.json of a run. It returns nil if the file cannot be
// read. Then no verdict matches the run.
func ReadPredictions(run *runs.Run) Predictions {
	if run == nil {
		return nil
	}
	preds, err := trajectories.ReadPredictions(filepath.Join(run.Dir, "preds.json"))
	if err != nil {
		return nil
	}
	return preds.ByID()
}

// matches reports whether a verdict is about a prediction of the run.
func (p Predictions) matches(r verdicts.Record) bool {
	prediction, ok := p[r.Instance]
	return ok && r.Matches(prediction)
}

// isStale reports whether a verdict is about an earlier prediction of the run
// for the instance.
func (p Predictions) isStale(r verdicts.Record) bool {
	prediction, ok := p[r.Instance]
	return ok && prediction.Model == r.Model && !r.Matches(prediction)
}
