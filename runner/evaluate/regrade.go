package evaluate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/runner/verdicts"
)

// RegradedRecord is the result of grading the saved logs of a record again with
// the current row. It has not been written yet.
type RegradedRecord struct {
	// Record has the new verdict, and the earlier ones in Previous.
	Record verdicts.Record
	// Reports holds the new contents of report.json files, by path.
	Reports map[string][]byte
	// Changed reports that the verdict or its inputs have changed.
	Changed bool

	graded verdicts.Record // the new verdict, also if Changed is false
}

// ErrNotRegraded is wrapped by the error for a record whose logs cannot be
// graded g. The record stays unchanged.
var ErrNotRegraded = errors.New("cannot be regraded")

// Regrader grades the saved logs of a run folder again with the current rows.
// Its methods are safe for concurrent use.
type Regrader struct {
	dir       *rootdir.Dir
	editions  []datasets.SourceInfo
	now       time.Time
	key       []byte
	logMemory *semaphore.Weighted // bounds the memory for logs
}

// NewRegrader returns a Regrader for a run folder. editions identifies the
// dataset of the rows, now is the time for Record.Previous, and key signs
// records (Config.Key). The new verdict of a record without that signature has
// ForeignLog set.
func NewRegrader(dir *rootdir.Dir, editions []datasets.SourceInfo, now time.Time, key []byte) *Regrader {
	return &Regrader{dir: dir, editions: editions, now: now, key: key, logMemory: semaphore.NewWeighted(maxLogMemory)}
}

// Regrade grades the logs of a record g. Results without a complete log do
// not change: empty, apply_failed, timed_out and most infrastructure failures.
// The error wraps ErrNotRegraded, or grade.ErrNotGradable for the row.
func (g *Regrader) Regrade(ctx context.Context, r verdicts.Record, in datasets.Instance) (RegradedRecord, error) {
	fail := func(format string, args ...any) (RegradedRecord, error) {
		return RegradedRecord{}, fmt.Errorf("%s %w: %s", r.Instance, ErrNotRegraded, fmt.Sprintf(format, args...))
	}
	p, err := newPlan(Config{}, Task{Instance: in})
	if err != nil {
		return RegradedRecord{}, err
	}
	old := r
	r.Runs = slices.Clone(r.Runs)
	if r.VerdictRun() == nil {
		return RegradedRecord{Record: old}, nil
	}
	switch {
	case r.Basis.ScriptSHA256 != "" && r.Basis.ScriptSHA256 != p.basis.ScriptSHA256:
		return fail("the row's evaluation script has changed since the log was made; run the tests with mini eval")
	case r.Basis.Image != "" && r.Basis.Image != p.basis.Image:
		return fail("the row's image has changed since the log was made; run the tests with mini eval")
	}
	run, err := grade.NewLayout(g.dir.Path(), r.RunID)
	if err != nil {
		return fail("%v", err)
	}
	s := &store{dir: g.dir.Path()}
	files, err := s.pathsFor(run, r.Model, r.Instance)
	if err != nil {
		return fail("%v", err)
	}
	work := regrading{plan: p, dir: g.dir, paths: files, logMemory: g.logMemory, reports: map[string][]byte{}}
	for i := range r.Runs {
		if err := work.gradeRun(ctx, &r.Runs[i]); err != nil {
			return fail("run %d: %v", i+1, err)
		}
	}
	if old.Class == verdicts.Infrastructure && len(work.reports) == 0 {
		return RegradedRecord{Record: old}, nil // no log to grade
	}
	r.Basis.RowSHA256, r.Basis.Parser, r.Basis.ParserRelease = p.basis.RowSHA256, p.basis.Parser, p.basis.ParserRelease
	r.Basis.EvalType, r.Basis.Editions = p.basis.EvalType, g.editions
	r.Basis.Key = r.Basis.CacheKey()
	for i, a := range r.Runs {
		if a.Key != "" {
			r.Runs[i].Key = r.Basis.CacheKeyWithPatch(a.PatchSHA256)
		}
	}
	r.DeriveClass()
	if r.VerdictClass() != old.VerdictClass() && work.missingFiles {
		return fail("the verdict would be %s, but the log of another run is missing", r.Class)
	}
	r.Flags = append(slices.DeleteFunc(slices.Clone(r.Flags), isLogFlag), r.VerdictRun().Flags...)
	work.updateWithoutSuspect(&r, old)
	out := RegradedRecord{Record: r, Reports: work.reports, graded: r}
	out.Changed = r.Class != old.Class || r.Resolution != old.Resolution || r.Basis.RowSHA256 != old.Basis.RowSHA256 ||
		r.Basis.Parser != old.Basis.Parser || r.Basis.ParserRelease != old.Basis.ParserRelease ||
		r.Basis.EvalType != old.Basis.EvalType
	if !out.Changed {
		out.Record = old
		return out, nil
	}
	out.Record.Previous = append(slices.Clone(old.Previous), verdicts.PreviousVerdict{
		Time: g.now, Class: old.Class, Resolution: old.Resolution, Reason: old.Reason, RowSHA256: old.Basis.RowSHA256,
		Parser: old.Basis.Parser, ParserRelease: old.Basis.ParserRelease, EvalType: old.Basis.EvalType,
	})
	out.Record.ForeignLog = old.ForeignLog || !old.IsSignedBy(g.key)
	out.Record, err = out.Record.WithSignature(g.key)
	return out, err
}

// isLogFlag reports whether a flag is about the log, not the patch.
func isLogFlag(f tampering.Finding) bool { return f.File == "" }

// regrading is the state of regrading one record.
type regrading struct {
	plan      plan
	dir       *rootdir.Dir
	paths     paths
	logMemory *semaphore.Weighted
	reports   map[string][]byte
	// missingFiles reports that the files of a run are missing.
	missingFiles bool
}

// gradeRun grades the log of a run again, if it has one.
func (g *regrading) gradeRun(ctx context.Context, a *verdicts.TestRun) error {
	switch a.Class {
	case verdicts.Resolved, verdicts.Unresolved, verdicts.Error:
	case verdicts.Infrastructure:
		if a.Resolution == "" {
			return nil // the tests did not run
		}
	default:
		return nil
	}
	if a.Dir == "" {
		g.missingFiles = g.missingFiles || a.Purpose != verdicts.ForVerdict
		return nil // a later run replaced its files
	}
	dir := filepath.Join(g.dir.Path(), filepath.FromSlash(a.Dir))
	if dir != g.paths.official.Dir && filepath.Dir(dir) != g.paths.extraRuns {
		return fmt.Errorf("%.100q is not a folder of this record", a.Dir) // records are untrusted
	}
	files, oldClass := grade.FilesIn(dir), a.Class
	report, err := g.plan.gradeFile(ctx, g.logMemory, g.dir, files.TestOutput, a)
	if err != nil {
		return err
	}
	if report == nil && oldClass != verdicts.Error {
		return errors.New(a.Reason)
	}
	if report != nil {
		g.reports[files.Report] = report
	}
	return classifyFailure(ctx, a, g.logMemory, g.dir, files)
}

// updateWithoutSuspect updates ResolvedWithoutSuspect.
func (g *regrading) updateWithoutSuspect(r *verdicts.Record, old verdicts.Record) {
	if old.ResolvedWithoutSuspect == nil {
		return
	}
	for _, a := range slices.Backward(r.Runs) {
		if a.Purpose != verdicts.WithoutSuspect || !a.Class.IsFinal() {
			continue
		}
		if a.Dir != "" {
			resolved := a.Class == verdicts.Resolved
			r.ResolvedWithoutSuspect = &resolved
			return
		}
		break
	}
	if r.Class != old.Class {
		r.ResolvedWithoutSuspect = nil // unknown until the next evaluation
	}
}
