package web

import (
	"slices"
	"sync"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/compare"
	"github.com/minibench/mini/runner/labels"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
)

// run is one run of a Viewer.
type run struct {
	Dir         string // as the user named it
	IsTemporary bool   // Dir will be removed
	Name        string
	Key         string // the name in addresses, see keys
	path        string // the absolute path
	rows        func([]datasets.SourceInfo, map[string]bool) map[string]datasets.Instance

	mu       sync.Mutex
	loaded   *snapshot
	checked  time.Time     // when loaded was last compared with the folder
	readTime time.Duration // of the last reading
	frozen   bool          // loaded is used until the end

	datasetMu sync.Mutex
	dataset   map[string]datasets.Instance
	asked     int // number of instances that dataset was read for
}

// snapshot is the content of a run folder at one time.
type snapshot struct {
	Run      *runs.Run
	Verdicts verdicts.Set
	Summary  report.Summary
	Stats    compare.Summary // rates with intervals, cost, pass@k
	Compared compare.Run
	Labels   labels.Labels
	Notes    labels.Notes
	// Version identifies the content: it changes when the files of the run change.
	Version string

	explain     sync.Once // sets unresolved
	unresolved  *report.Unresolved
	predictions func() report.Predictions
	phases      func() []report.Phase
	verdictOf   verdicts.Index
}

// recheck is how long a snapshot is used before the folder is looked at again. It is longer for a
// folder that takes long to read, which may be that of a running batch.
const recheck = time.Second

// load returns the current content of the folder. It reads the folder again only if one of its
// files has changed.
func (r *run) load() (*snapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loaded != nil && (r.frozen || time.Since(r.checked) < max(recheck, 10*r.readTime)) {
		return r.loaded, nil
	}
	version := runs.Version(r.Dir)
	if r.loaded != nil && r.loaded.Version == version {
		r.checked = time.Now()
		return r.loaded, nil
	}
	start := time.Now()
	s, err := readSnapshot(r.Dir, r.Name)
	if err != nil {
		return nil, err
	}
	r.readTime = time.Since(start)
	s.Version = version
	r.loaded, r.checked = s, time.Now()
	return s, nil
}

func readSnapshot(dir, name string) (*snapshot, error) {
	read, err := runs.Open(dir)
	if err != nil {
		return nil, err
	}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = read.Verdicts() }) // in parallel; the error is the same later
	read.Load()
	reading.Wait()
	found, err := read.Verdicts()
	if err != nil {
		return nil, err
	}
	compared, err := compare.NewRun(read)
	if err != nil {
		return nil, err
	}
	compared.Name = name
	s := &snapshot{Run: read, Verdicts: found, Compared: compared}
	s.predictions = sync.OnceValue(func() report.Predictions { return report.ReadPredictions(read) })
	s.verdictOf = found.Index()
	s.Stats = compare.Summarize(compared, compare.Drop)
	now := time.Now()
	s.Summary = report.NewSummary(read, nil, now)
	s.Summary.Verdicts = report.NewScores(found, read, nil, now)
	s.phases = sync.OnceValue(func() []report.Phase {
		own := s.Summary
		own.Totals.Phases = slices.Clip(own.Totals.Phases)
		own.AddEvaluationTimes(found, read)
		return own.Totals.Phases
	})
	if s.Labels, s.Notes, err = labels.ReadAll(dir); err != nil {
		s.Summary.Unreadable = append(s.Summary.Unreadable, err.Error())
	}
	return s, nil
}

// find returns an instance of the current content of the folder.
func (r *run) find(id string) (*snapshot, runs.Instance, error) {
	s, err := r.load()
	if err != nil {
		return nil, runs.Instance{}, err
	}
	in, ok := s.Run.Find(id)
	if !ok {
		return nil, runs.Instance{}, errNotFound
	}
	return s, in, nil
}

// row returns the dataset row of an instance; false if it is not on this machine.
func (r *run) row(s *snapshot, id string) (datasets.Instance, bool) {
	in, ok := r.allRows(s)[id]
	return in, ok
}

// allRows returns the dataset rows of the instances of the run, as far as they are on this machine.
func (r *run) allRows(s *snapshot) map[string]datasets.Instance {
	if r.rows == nil {
		return nil
	}
	r.datasetMu.Lock()
	defer r.datasetMu.Unlock()
	if len(s.Run.Instances) > r.asked { // also when a running batch has started more instances
		ids := map[string]bool{}
		for _, in := range s.Run.Instances {
			ids[in.ID] = true
		}
		r.dataset, r.asked = r.rows(s.Run.Manifest.Dataset.Editions, ids), len(ids)
	}
	return r.dataset
}

// unresolved returns why attempts are not resolved, compared with the gold patches; nil if there
// is no verdict.
func (r *run) unresolved(s *snapshot) *report.Unresolved {
	s.explain.Do(func() {
		u := report.NewUnresolved(s.Run, s.Verdicts, nil)
		if s.unresolved = u; u == nil {
			return
		}
		gold := map[string]string{}
		for id, row := range r.allRows(s) {
			gold[id] = row.Patch
		}
		if err := u.AddGold(gold); err != nil {
			u.Unreadable = append(u.Unreadable, err.Error())
		}
	})
	return s.unresolved
}

// reload makes the next load look at the folder.
func (r *run) reload() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checked = time.Time{}
}

// freeze makes load return the same snapshot from now on.
func (r *run) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = true
}

// verdict returns the record of the verdict on a result; nil if there is none.
func (s *snapshot) verdict(id string, r *runs.Result) *verdicts.Verdict {
	if !r.Class.IsResult() || r.Verdict == nil {
		return nil
	}
	return s.verdictOf.Find(id, max(1, r.Repetition), r.PatchBytes, verdicts.Class(*r.Verdict))
}
