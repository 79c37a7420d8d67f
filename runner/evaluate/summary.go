package evaluate

import (
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
)

// Summary is how an evaluation ended.
type Summary struct {
	Submitted int `json:"submitted"` // patches; see Patches
	// ByClass has the ids of each class, sorted.
	ByClass map[verdicts.Class][]string `json:"by_class"`
	// Unfinished had no verdict when the evaluation was stopped.
	Unfinished []string `json:"unfinished,omitempty"`
	// Reused counts the verdicts for which nothing was run.
	Reused int `json:"reused"`
	// Flags counts the instances that have a flag, by its name. Swayed are those
	// whose verdict changes without the hunks that were flagged.
	Flags  map[string]int `json:"flags,omitempty"`
	Swayed []string       `json:"changed_without_suspect,omitempty"`
	// Quarantined are the instances that this machine cannot judge: their gold
	// patch fails here, or they pass without any.
	Quarantined []Quarantined `json:"quarantined,omitempty"`
	// Trusted and TrustedResolved are the second denominator: the patches whose
	// instances are not quarantined, and those of them that are resolved.
	Trusted         int           `json:"trusted"`
	TrustedResolved int           `json:"trusted_resolved"`
	Elapsed         time.Duration `json:"-"`
	// Official is the path of the official summary.
	Official string `json:"official_summary,omitempty"`
	// Records are all of them, by instance and model.
	Records []verdicts.Record `json:"-"`
	// Samples are the summaries of further patches for the same instances (see
	// Task.Sample), by sample. Nothing else here counts them.
	Samples []Summary `json:"samples,omitempty"`
	// Sample is which it is, in Samples.
	Sample int `json:"sample,omitempty"`
}

// Quarantined is an instance that is left out of the second denominator.
type Quarantined struct {
	Instance string         `json:"instance_id"`
	Gold     verdicts.Class `json:"gold,omitempty"`
	Noop     verdicts.Class `json:"noop,omitempty"`
}

// Count is how many patches ended in a class.
func (s Summary) Count(c verdicts.Class) int { return len(s.ByClass[c]) }

// Complete says whether every patch has a verdict. Where it is false, mini
// ends with code 3.
func (s Summary) Complete() bool {
	for _, further := range s.Samples {
		if !further.Complete() {
			return false
		}
	}
	return len(s.Unfinished) == 0 && s.Count(verdicts.Infrastructure) == 0
}

// Patches counts those of all samples.
func (s Summary) Patches() int {
	n := s.Submitted
	for _, further := range s.Samples {
		n += further.Patches()
	}
	return n
}

// judged counts the patches with a verdict, those of all samples.
func (s Summary) judged() int {
	n := s.Submitted - len(s.Unfinished)
	for _, further := range s.Samples {
		n += further.judged()
	}
	return n
}

// flushInterval bounds how often the summaries are written while it goes on:
// each time all of them, so not after every verdict.
const flushInterval = 5 * time.Second

// summaries writes mini's and the official summary of each sample, and returns
// that of the one that counts with the others in it. The lock is held.
func (e *Evaluator) summaries() (Summary, error) {
	e.written = time.Now()
	bySample := map[int][]*job{0: nil}
	for _, path := range e.order {
		j := e.jobs[path]
		bySample[j.further()] = append(bySample[j.further()], j)
	}
	var all Summary
	var failed error
	for _, k := range slices.Sorted(maps.Keys(bySample)) {
		jobs := bySample[k]
		s := e.summary(jobs)
		if err := e.writeSummary(&s, jobs); err != nil {
			failed = errors.Join(failed, err)
		}
		if k == 0 {
			all = s
			continue
		}
		s.Sample = k
		all.Samples = append(all.Samples, s)
	}
	return all, failed
}

// summary counts. The lock is held.
func (e *Evaluator) summary(jobs []*job) Summary {
	s := Summary{
		Submitted: len(jobs), ByClass: map[verdicts.Class][]string{}, Flags: map[string]int{},
		Elapsed: time.Since(e.began),
	}
	for _, j := range jobs {
		if j.record == nil {
			s.Unfinished = append(s.Unfinished, j.Instance.ID)
			continue
		}
		r := *j.record
		// The baseline may have come later than the verdict.
		r.Gold = cmp.Or(e.store.class(r.Basis.KeyWithPatch(verdicts.PatchHash([]byte(j.Instance.Patch)))), r.Gold)
		r.Noop = cmp.Or(e.store.class(r.Basis.KeyWithPatch(verdicts.NoPatch)), r.Noop)
		s.add(r, j.reused)
	}
	slices.Sort(s.Unfinished)
	s.conclude()
	return s
}

// Renewed is the summary of the same evaluation where these are the records
// now.
func (s Summary) Renewed(records []verdicts.Record) Summary {
	was := s
	s = Summary{
		Submitted: was.Submitted, ByClass: map[verdicts.Class][]string{}, Flags: map[string]int{},
		Unfinished: was.Unfinished, Elapsed: was.Elapsed, Official: was.Official, Samples: was.Samples,
	}
	for _, r := range records {
		s.add(r, false)
	}
	s.Reused = was.Reused
	s.conclude()
	return s
}

// conclude counts what the records say together.
func (s *Summary) conclude() {
	out := map[string]Quarantined{}
	for _, r := range s.Records {
		if r.Quarantine() {
			out[r.Instance] = Quarantined{Instance: r.Instance, Gold: r.Gold, Noop: r.Noop}
		}
	}
	for _, ids := range s.ByClass {
		slices.Sort(ids)
	}
	for _, id := range slices.Sorted(maps.Keys(out)) {
		s.Quarantined = append(s.Quarantined, out[id])
	}
	for _, r := range s.Records {
		if _, ok := out[r.Instance]; ok {
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
	slices.Sort(s.Swayed)
}

func (s *Summary) add(r verdicts.Record, reused bool) {
	s.ByClass[r.Class] = append(s.ByClass[r.Class], r.Instance)
	s.Records = append(s.Records, r)
	if reused {
		s.Reused++
	}
	if w := r.ResolvedWithoutSuspect; w != nil && *w != (r.Class == verdicts.Resolved) {
		s.Swayed = append(s.Swayed, r.Instance)
	}
	for _, name := range r.FlagNames() {
		s.Flags[name]++
	}
}

// writeSummary writes both that there are of a sample. The lock is held.
func (e *Evaluator) writeSummary(s *Summary, jobs []*job) error {
	if len(jobs) == 0 {
		return nil
	}
	run := jobs[0].run
	name, err := run.SummaryName(jobs[0].Model)
	if err != nil {
		return err
	}
	s.Official = filepath.Join(e.config.Folder.Dir(), name)
	if err := writeFile(e.store.root, s.Official, e.official(jobs).JSON()); err != nil {
		return err
	}
	return verdicts.Write(e.store.root, filepath.Join(e.config.Folder.Dir(), verdicts.Folder, run.ID()+".json"), s)
}

// official is the summary that the official harness would make of the files,
// told from the records: reading all logs again each time would take long.
func (e *Evaluator) official(jobs []*job) grade.Summary {
	s := grade.Summary{FailureReasons: map[string]string{}}
	of := map[string]*job{}
	var submitted []string
	for _, j := range jobs {
		if of[j.Instance.ID] == nil {
			submitted = append(submitted, j.Instance.ID)
		}
		of[j.Instance.ID] = j
	}
	s.Submitted = submitted
	ids := e.config.Selected
	if ids == nil {
		ids = submitted
	}
	s.Total = len(ids)
	for _, id := range ids {
		j := of[id]
		switch {
		case j == nil:
			s.Incomplete = append(s.Incomplete, id)
			continue
		case j.empty():
			s.EmptyPatch = append(s.EmptyPatch, id)
			continue
		case j.record == nil:
			s.Errors = append(s.Errors, id)
			continue
		}
		a := j.record.VerdictRun()
		switch {
		case a.Class == verdicts.Resolved:
			s.Completed, s.Resolved = append(s.Completed, id), append(s.Resolved, id)
			continue
		case a.Resolution != "": // there is a report
			s.Completed, s.Unresolved = append(s.Completed, id), append(s.Unresolved, id)
		default:
			s.Errors = append(s.Errors, id)
		}
		switch a.Tier {
		case grade.Environment:
			s.InfraFailures = append(s.InfraFailures, id)
		case grade.Ambiguous:
			s.AmbiguousFailures = append(s.AmbiguousFailures, id)
		}
		if a.Failure != "" {
			s.FailureReasons[id] = a.Failure
		}
	}
	return s
}
