package web

import (
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
	Number      int
	Dir         string // as the user named it
	IsTemporary bool   // Dir will be removed
	Name        string
	rows        func([]datasets.SourceInfo, map[string]bool) map[string]datasets.Instance

	mu       sync.Mutex
	ids      []string       // instances by number
	numbers  map[string]int // index of ids
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
	// Version identifies the content: it changes when the files of the run change.
	Version string

	explain     sync.Once // sets why
	why         *report.Unresolved
	predictions func() report.Predictions
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
	if r.numbers == nil {
		r.numbers = map[string]int{}
	}
	// New instances get the next numbers, so that addresses stay valid while a run grows.
	for _, in := range s.Run.Instances {
		if _, ok := r.numbers[in.ID]; !ok {
			r.numbers[in.ID] = len(r.ids)
			r.ids = append(r.ids, in.ID)
		}
	}
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
	s.Stats = compare.Summarize(compared, compare.Drop)
	now := time.Now()
	s.Summary = report.NewSummary(read, nil, now)
	s.Summary.Verdicts = report.NewScores(found, read, nil, now)
	if s.Labels, err = read.Labels(); err != nil {
		s.Summary.Unreadable = append(s.Summary.Unreadable, err.Error())
	}
	return s, nil
}

// instance returns the id of an instance.
func (r *run) instance(number int) (id string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number < 0 || number >= len(r.ids) {
		return "", false
	}
	return r.ids[number], true
}

// number returns the number of an instance; false if the run does not have it.
func (r *run) number(id string) (int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok := r.numbers[id]
	return n, ok
}

// find returns the instance that a user means with an id or a part of it; see datasets.MatchID.
func (r *run) find(typed string) (id string, number int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, ok = datasets.MatchID(r.ids, typed)
	return id, r.numbers[id], ok
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
		if s.why = u; u == nil {
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
	return s.why
}

// freeze makes load return the same snapshot from now on.
func (r *run) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = true
}
