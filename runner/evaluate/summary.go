package evaluate

import (
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
)

// Summary is the result of an evaluation.
type Summary struct {
	Submitted int `json:"submitted"` // patches of this repetition; PatchCount counts all
	// ByClass lists the sorted instance ids of each class.
	ByClass map[verdicts.Class][]string `json:"by_class"`
	// Unfinished lists the instances without a verdict when the evaluation was
	// stopped.
	Unfinished []string `json:"unfinished,omitempty"`
	// Reused counts the verdicts that needed no test run.
	Reused int `json:"reused"`
	// Flags counts the flagged patches by flag. ChangedWithoutSuspect lists the
	// instances whose verdict is different without the flagged files.
	Flags                 map[string]int `json:"flags,omitempty"`
	ChangedWithoutSuspect []string       `json:"changed_without_suspect,omitempty"`
	// Quarantined lists the instances that this machine cannot evaluate: their
	// gold patch fails here, or they pass without a patch.
	Quarantined []Quarantined `json:"quarantined,omitempty"`
	// Trusted counts the patches with a record whose instances are not
	// quarantined. TrustedResolved counts the resolved patches among these.
	Trusted         int `json:"trusted"`
	TrustedResolved int `json:"trusted_resolved"`
	// OfficialPath is the path of the official summary.
	OfficialPath string `json:"official_summary,omitempty"`
	// Records holds all records, sorted by instance and model.
	Records []verdicts.Record `json:"-"`
	// Repetitions holds the summaries of the repetitions after the first (see
	// Task.Repetition). The other fields do not count them.
	Repetitions []Summary `json:"samples,omitempty"`
	// Repetition is the repetition number; 0 in the summary of the first.
	Repetition int `json:"sample,omitempty"`
}

// Quarantined is an instance that this machine cannot evaluate.
type Quarantined struct {
	Instance string         `json:"instance_id"`
	Gold     verdicts.Class `json:"gold,omitempty"`
	Noop     verdicts.Class `json:"noop,omitempty"`
}

// Count returns the number of patches in a class.
func (s Summary) Count(c verdicts.Class) int { return len(s.ByClass[c]) }

// all returns the summaries of all repetitions.
func (s Summary) all() []Summary { return append([]Summary{s}, s.Repetitions...) }

// IsComplete reports whether every patch has a verdict. If not, mini exits with
// code 3.
func (s Summary) IsComplete() bool {
	return !slices.ContainsFunc(s.all(), func(r Summary) bool { return len(r.Unfinished)+r.Count(verdicts.Infrastructure) > 0 })
}

// PatchCount returns the number of patches of all repetitions.
func (s Summary) PatchCount() (n int) {
	for _, r := range s.all() {
		n += r.Submitted
	}
	return n
}

// evaluatedCount returns the number of patches with a record, of all
// repetitions.
func (s Summary) evaluatedCount() (n int) {
	for _, r := range s.all() {
		n += r.Submitted - len(r.Unfinished)
	}
	return n
}

// writeSummaries writes the official summary and mini's summary of each
// repetition. It returns the summary of the first repetition, which has the other
// summaries in Repetitions. The caller holds e.mu.
func (e *Evaluator) writeSummaries() (Summary, error) {
	byRepetition := map[int][]*job{0: nil}
	for _, path := range e.order {
		j := e.jobs[path]
		byRepetition[j.repetition()] = append(byRepetition[j.repetition()], j)
	}
	var summary Summary
	var errs error
	for _, number := range slices.Sorted(maps.Keys(byRepetition)) {
		jobs := byRepetition[number]
		s := e.summarize(jobs)
		if err := e.writeSummary(&s, jobs); err != nil {
			errs = errors.Join(errs, err)
		}
		if number == 0 {
			summary = s
			continue
		}
		s.Repetition = number
		summary.Repetitions = append(summary.Repetitions, s)
	}
	return summary, errs
}

// summarize counts the verdicts on jobs. The caller holds e.mu.
func (e *Evaluator) summarize(jobs []*job) Summary {
	s := newSummary()
	s.Submitted = len(jobs)
	for _, j := range jobs {
		if j.record == nil {
			s.Unfinished = append(s.Unfinished, j.Instance.ID)
			continue
		}
		r := *j.record
		e.store.setBaseline(&r, j.Instance) // a baseline task may have ended after this verdict
		if s.add(r); j.reused {
			s.Reused++
		}
	}
	slices.Sort(s.Unfinished)
	s.finish()
	return s
}

// finish sorts the lists and computes the fields that depend on all records.
func (s *Summary) finish() {
	quarantined := map[string]Quarantined{}
	for _, r := range s.Records {
		if r.IsQuarantined() {
			quarantined[r.Instance] = Quarantined{Instance: r.Instance, Gold: r.Gold, Noop: r.Noop}
		}
	}
	for _, ids := range s.ByClass {
		slices.Sort(ids)
	}
	for _, id := range slices.Sorted(maps.Keys(quarantined)) {
		s.Quarantined = append(s.Quarantined, quarantined[id])
	}
	for _, r := range s.Records {
		if _, ok := quarantined[r.Instance]; ok {
			continue
		}
		s.Trusted++
		if r.Class == verdicts.Resolved {
			s.TrustedResolved++
		}
	}
	slices.SortFunc(s.Records, func(a, b verdicts.Record) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Model, b.Model))
	})
	slices.Sort(s.ChangedWithoutSuspect)
}

func newSummary() Summary {
	return Summary{ByClass: map[verdicts.Class][]string{}, Flags: map[string]int{}}
}

func (s *Summary) add(r verdicts.Record) {
	s.ByClass[r.Class] = append(s.ByClass[r.Class], r.Instance)
	s.Records = append(s.Records, r)
	if w := r.ResolvedWithoutSuspect; w != nil && *w != (r.Class == verdicts.Resolved) {
		s.ChangedWithoutSuspect = append(s.ChangedWithoutSuspect, r.Instance)
	}
	for _, name := range r.FlagNames() {
		s.Flags[name]++
	}
}

// writeSummary writes the two summaries of one repetition. The caller holds
// e.mu.
func (e *Evaluator) writeSummary(s *Summary, jobs []*job) error {
	if len(jobs) == 0 {
		return nil
	}
	layout := jobs[0].layout
	name, err := layout.SummaryName(jobs[0].Model)
	if err != nil {
		return err
	}
	s.OfficialPath = filepath.Join(e.config.Folder.Dir, name)
	preds := make([]grade.Prediction, len(jobs))
	ids := e.config.Selected
	for i, j := range jobs {
		preds[i] = grade.Prediction{InstanceID: j.Instance.ID, Model: j.Model, Empty: j.isEmpty()}
		if e.config.Selected == nil && !slices.Contains(ids, j.Instance.ID) {
			ids = append(ids, j.Instance.ID)
		}
	}
	official, err := layout.Summarize(ids, preds)
	if err != nil {
		return err
	}
	if err := writeFile(e.store.root, s.OfficialPath, official.JSON()); err != nil {
		return err
	}
	return verdicts.Write(e.store.root, filepath.Join(e.config.Folder.Dir, verdicts.DirName, layout.RunID()+".json"), s)
}
