package report

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories"
)

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
	return ok && p.Model == r.Model && !s.stale(r)
}

// stale says that a verdict is on what the run's instance had submitted before.
func (s Submissions) stale(r verdicts.Record) bool {
	p, ok := s[r.Instance]
	if !ok || p.Model != r.Model {
		return false
	}
	sum := sha256.Sum256([]byte(p.Patch))
	return r.Basis.PatchBytes != len(p.Patch) || p.Patch != "" && r.Basis.PatchSHA256 != hex.EncodeToString(sum[:])
}
