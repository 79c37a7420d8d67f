package evaluate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/runner/verdicts"
)

// RegradeConfig configures Regrade.
type RegradeConfig struct {
	Dir      string // of the run, locked by the caller
	Verdicts []verdicts.Verdict
	// Instances are the current rows of the dataset, by ID.
	Instances map[string]datasets.Instance
	Editions  []datasets.SourceInfo // of Instances
	DryRun    bool                  // do not write files
	Now       time.Time             // the time in Record.Previous
	// SigningKey signs the records that were signed with it. Others stay without a signature.
	SigningKey []byte
}

// Regraded is the result of Regrade.
type Regraded struct {
	Verdicts int               `json:"verdicts"` // number of verdicts, also of those that failed
	Changed  []RegradedVerdict `json:"changed"`  // those with another class
	// Updated counts verdicts with the same class but other inputs, such as a
	// new version of the parsers or another row, or another report.
	Updated int `json:"renewed"`
	// Failed are the verdicts that could not be regraded. They stay unchanged.
	Failed []RegradedVerdict `json:"kept"`
	// Records are all current verdicts, ordered by run ID, model and instance.
	Records []verdicts.Verdict `json:"-"`
}

// RegradedVerdict is a verdict whose class has changed from From to To, or that could not be
// regraded and stays Class. Reason explains the new class, or the failure.
type RegradedVerdict struct {
	Instance string         `json:"instance_id"`
	Model    string         `json:"model_name_or_path"`
	RunID    string         `json:"run_id"`
	From     verdicts.Class `json:"from,omitempty"`
	To       verdicts.Class `json:"to,omitempty"`
	Class    verdicts.Class `json:"class,omitempty"`
	Reason   string         `json:"reason,omitempty"`
}

// regrader has what all verdicts of a Regrade share.
type regrader struct {
	RegradeConfig
	root      *rootdir.Dir
	logMemory *semaphore.Weighted
}

// Regrade grades the saved logs of a run folder again, after a change of the parsers or of the
// dataset. It writes the reports and records that change, and then the summaries. Results without
// a complete log do not change: empty, apply_failed, timed_out and most infrastructure failures.
// It returns an error if a file cannot be read or written, or ctx is cancelled.
func Regrade(ctx context.Context, c RegradeConfig) (Regraded, error) {
	result := Regraded{Verdicts: len(c.Verdicts), Changed: []RegradedVerdict{}, Failed: []RegradedVerdict{}}
	root, err := rootdir.Open(c.Dir)
	if err != nil {
		return result, fmt.Errorf("regrade: %w", err)
	}
	defer root.Close() //nolint:errcheck // writes report their own errors
	g := regrader{c, root, semaphore.NewWeighted(maxLogMemory)}
	result.Records = slices.SortedFunc(slices.Values(c.Verdicts), func(a, b verdicts.Verdict) int {
		return cmp.Or(cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Model, b.Model), datasets.CompareNatural(a.Instance, b.Instance))
	})
	old := slices.Clone(result.Records)
	updated, failures := make([]bool, len(old)), make([]error, len(old))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i := range result.Records {
		workers.Go(func() (err error) {
			updated[i], failures[i], err = g.regrade(ctx, &result.Records[i])
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		return result, err
	}
	for i, v := range result.Records {
		r := RegradedVerdict{Instance: v.Instance, Model: v.Model, RunID: v.RunID, Reason: v.Reason}
		switch {
		case failures[i] != nil:
			r.Class, r.Reason = v.Class, failures[i].Error()
			result.Failed = append(result.Failed, r)
		case v.Class != old[i].Class:
			r.From, r.To = old[i].Class, v.Class
			result.Changed = append(result.Changed, r)
		case updated[i]:
			result.Updated++
		}
	}
	if !c.DryRun && len(result.Changed)+result.Updated > 0 {
		err = g.summarize(result.Records)
	}
	return result, err
}

// maxReport limits the size of a report.json or a summary, in bytes.
const maxReport = 64 << 20

// regrade replaces a verdict by that of its logs, and writes the reports and the record that
// change. updated reports that a file was written, or would be without DryRun. failure is the
// reason why the verdict stays unchanged.
func (g *regrader) regrade(ctx context.Context, v *verdicts.Verdict) (updated bool, failure, err error) {
	r, reports, failure := g.gradeRecord(ctx, v.Record)
	if r == nil || failure != nil || ctx.Err() != nil {
		return false, failure, nil
	}
	for path, report := range reports {
		old, err := g.root.ReadFile(path, maxReport)
		if err == nil && bytes.Equal(old, report) {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return updated, nil, fmt.Errorf("read %s: %w", filepath.Base(path), err)
		}
		if updated = true; !g.DryRun {
			if err := writeFile(g.root, path, report); err != nil {
				return updated, nil, err
			}
		}
	}
	a, b := v.Basis, r.Basis
	if r.Class == v.Class && r.Resolution == v.Resolution && a.RowSHA256 == b.RowSHA256 &&
		a.Parser == b.Parser && a.ParserRelease == b.ParserRelease && a.EvalType == b.EvalType {
		return updated, nil, nil
	}
	r.Previous = append(slices.Clone(v.Previous), verdicts.PreviousVerdict{
		Time: g.Now, Class: v.Class, Resolution: v.Resolution, Reason: v.Reason, RowSHA256: a.RowSHA256,
		Parser: a.Parser, ParserRelease: a.ParserRelease, EvalType: a.EvalType,
	})
	isOwn := v.IsSignedBy(g.SigningKey)
	if v.Record, v.Signature = *r, ""; isOwn {
		v.Record, err = r.WithSignature(g.SigningKey)
	}
	if err == nil && !g.DryRun {
		err = verdicts.Write(g.root, v.Path, v.Record)
	}
	return true, nil, err
}

// gradeRecord returns the record with the verdict of its logs, and the new contents of
// report.json files by path. The record is nil if there is no log to grade.
func (g *regrader) gradeRecord(ctx context.Context, r verdicts.Record) (*verdicts.Record, map[string][]byte, error) {
	in, ok := g.Instances[r.Instance]
	if !ok {
		return nil, nil, fmt.Errorf("%s has no row in the dataset", r.Instance)
	}
	p, err := newPlan(Config{}, Task{Instance: in})
	if err != nil || r.VerdictRun() == nil {
		return nil, nil, err
	}
	fail := func(format string, args ...any) (*verdicts.Record, map[string][]byte, error) {
		return nil, nil, fmt.Errorf("%s cannot be regraded: %s", r.Instance, fmt.Sprintf(format, args...))
	}
	switch {
	case r.Basis.ScriptSHA256 != "" && r.Basis.ScriptSHA256 != p.basis.ScriptSHA256:
		return fail("the row's evaluation script has changed since the log was made; run the tests with mini eval")
	case r.Basis.Image != "" && r.Basis.Image != p.basis.Image:
		return fail("the row's image has changed since the log was made; run the tests with mini eval")
	}
	layout, err := grade.NewLayout(g.Dir, r.RunID)
	var own paths
	if err == nil {
		own, err = pathsFor(g.Dir, layout, r.Model, r.Instance)
	}
	if err != nil {
		return fail("%v", err)
	}
	old, reports, missingFiles := r, map[string][]byte{}, false
	r.Runs = slices.Clone(r.Runs)
	for i := range r.Runs {
		run := &r.Runs[i]
		class := run.Class
		hasLog := class == verdicts.Resolved || class == verdicts.Unresolved || class == verdicts.Error ||
			class == verdicts.Infrastructure && run.Resolution != ""
		if hasLog && run.Dir == "" { // a later run has replaced the files
			missingFiles = missingFiles || run.Purpose != verdicts.ForVerdict
			continue
		}
		if !hasLog {
			continue
		}
		files := grade.FilesIn(filepath.Join(g.Dir, filepath.FromSlash(run.Dir)))
		if files.Dir != own.official.Dir && filepath.Dir(files.Dir) != own.extraRuns { // the folder is untrusted
			return fail("run %d: %.100q is not a folder of this record", i+1, run.Dir)
		}
		report, err := p.gradeFile(ctx, g.logMemory, g.root, files.TestOutput, run)
		if err == nil && report == nil && class != verdicts.Error {
			err = errors.New(run.Reason)
		}
		if report != nil {
			reports[files.Report] = report
		}
		if err == nil {
			err = classifyFailure(ctx, run, g.logMemory, g.root, files)
		}
		if err != nil {
			return fail("run %d: %v", i+1, err)
		}
	}
	if old.Class == verdicts.Infrastructure && len(reports) == 0 {
		return nil, nil, nil
	}
	r.Basis.RowSHA256, r.Basis.Parser, r.Basis.ParserRelease = p.basis.RowSHA256, p.basis.Parser, p.basis.ParserRelease
	r.Basis.EvalType, r.Basis.Editions = p.basis.EvalType, g.Editions
	r.Basis.Key = r.Basis.CacheKey()
	r.ResolvedWithoutSuspect = nil // unknown until the next evaluation, unless there is a run
	for i, run := range r.Runs {
		if run.Key != "" {
			r.Runs[i].Key = r.Basis.CacheKeyWithPatch(run.PatchSHA256)
		}
		if run.Purpose == verdicts.WithoutSuspect && run.Class.IsFinal() && run.Dir != "" {
			resolved := run.Class == verdicts.Resolved
			r.ResolvedWithoutSuspect = &resolved
		}
	}
	r.DeriveClass()
	if r.VerdictClass() != old.VerdictClass() && missingFiles {
		return fail("the verdict would be %s, but the log of another run is missing", r.Class)
	}
	if r.Class == old.Class && r.ResolvedWithoutSuspect == nil {
		r.ResolvedWithoutSuspect = old.ResolvedWithoutSuspect
	}
	isLogFlag := func(f tampering.Finding) bool { return f.File == "" }
	r.Flags = append(slices.DeleteFunc(slices.Clone(r.Flags), isLogFlag), r.VerdictRun().Flags...)
	return &r, reports, nil
}

// summarize updates the two summaries of each run id and model. It does not create missing ones,
// which were never written or were moved.
func (g *regrader) summarize(all []verdicts.Verdict) error {
	done := map[string]bool{}
	for _, v := range all {
		layout, err := grade.NewLayout(g.Dir, v.RunID)
		if err != nil {
			return err
		}
		name, err := layout.SummaryName(v.Model)
		if err != nil {
			return err
		}
		if done[name] {
			continue
		}
		done[name] = true
		records := map[string]verdicts.Record{} // by instance; other models may have continued the run
		for _, other := range all {
			if _, ok := records[other.Instance]; other.RunID == v.RunID && (!ok || other.Model == v.Model) {
				records[other.Instance] = other.Record
			}
		}
		if err = g.updateOfficial(layout, name, records); err == nil {
			err = g.updateOwn(filepath.Join(g.Dir, verdicts.DirName, v.RunID+".json"), name, records)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// updateOfficial updates the official summary. It keeps the lists of rows and predictions.
func (g *regrader) updateOfficial(layout grade.Layout, name string, records map[string]verdicts.Record) error {
	var old struct {
		Submitted  []string `json:"submitted_ids"`
		Completed  []string `json:"completed_ids"`
		Incomplete []string `json:"incomplete_ids"`
		Empty      []string `json:"empty_patch_ids"`
		Errors     []string `json:"error_ids"`
	}
	path := filepath.Join(g.Dir, name)
	if ok, err := g.readSummary(path, &old); !ok {
		return err
	}
	model := strings.TrimSuffix(name, "."+layout.RunID()+".json")
	var preds []grade.Prediction
	for _, id := range old.Submitted {
		preds = append(preds, grade.Prediction{InstanceID: id, Model: cmp.Or(records[id].Model, model), Empty: slices.Contains(old.Empty, id)})
	}
	ids := slices.Concat(old.Completed, old.Incomplete, old.Empty, old.Errors)
	slices.Sort(ids)
	s, err := layout.Summarize(slices.Compact(ids), preds)
	if err != nil {
		return err
	}
	return writeFile(g.root, path, s.JSON())
}

// updateOwn updates mini's own summary if it is that of the official one with this name.
func (g *regrader) updateOwn(path, official string, records map[string]verdicts.Record) error {
	var old Summary
	ok, err := g.readSummary(path, &old)
	if !ok || filepath.Base(old.OfficialPath) != official {
		return err
	}
	s := newSummary()
	s.Submitted, s.Unfinished, s.Reused = old.Submitted, old.Unfinished, old.Reused
	s.OfficialPath, s.Repetitions = old.OfficialPath, old.Repetitions
	for _, ids := range old.ByClass {
		for _, id := range ids {
			if r, ok := records[id]; ok {
				s.add(r)
			}
		}
	}
	s.finish()
	return verdicts.Write(g.root, path, s)
}

// readSummary reads a summary. It returns false if the file is missing.
func (g *regrader) readSummary(path string, summary any) (ok bool, err error) {
	data, err := g.root.ReadFile(path, maxReport)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, summary)
	}
	if err != nil {
		return false, fmt.Errorf("read summary %s: %w", path, err)
	}
	return true, nil
}
