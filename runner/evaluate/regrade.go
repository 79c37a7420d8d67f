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

// RegradedRecord is the result of Regrader.Regrade. The caller writes it.
type RegradedRecord struct {
	// Record has the new verdict; Record.Previous has the earlier ones.
	Record verdicts.Record
	// Reports holds the new contents of report.json files, by path.
	Reports map[string][]byte
	// Changed reports whether the verdict or its inputs have changed.
	Changed bool

	graded verdicts.Record // the regraded record, even if Changed is false; zero if there was no log to grade
}

// ErrNotRegraded reports that the logs of a record cannot be graded again. The
// record stays unchanged.
var ErrNotRegraded = errors.New("cannot be regraded")

// Regrader grades the saved logs of a run folder again with the current rows.
// Its methods are safe for concurrent use.
type Regrader struct {
	dir       *rootdir.Dir
	editions  []datasets.SourceInfo
	now       time.Time
	key       []byte
	logMemory *semaphore.Weighted // limits the memory for logs
}

// NewRegrader returns a Regrader for a run folder. editions identifies the
// datasets of the rows, now is the time in Record.Previous, and key signs records
// (see Config.SigningKey). The new verdict on a record that is not signed with key has
// ForeignLog set.
func NewRegrader(dir *rootdir.Dir, editions []datasets.SourceInfo, now time.Time, key []byte) *Regrader {
	return &Regrader{dir: dir, editions: editions, now: now, key: key, logMemory: semaphore.NewWeighted(maxLogMemory)}
}

// Regrade grades the saved logs of a record again, with the current row. Results
// without a complete log do not change: empty, apply_failed, timed_out and most
// infrastructure failures. The error wraps ErrNotRegraded, or
// grade.ErrNotGradable if the row cannot be graded.
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
	layout, err := grade.NewLayout(g.dir.Path(), r.RunID)
	if err != nil {
		return fail("%v", err)
	}
	s := &store{dir: g.dir.Path()}
	files, err := s.pathsFor(layout, r.Model, r.Instance)
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
	for i, run := range r.Runs {
		if run.Key != "" {
			r.Runs[i].Key = r.Basis.CacheKeyWithPatch(run.PatchSHA256)
		}
	}
	r.DeriveClass()
	if r.VerdictClass() != old.VerdictClass() && work.missingFiles {
		return fail("the verdict would be %s, but the log of another run is missing", r.Class)
	}
	r.Flags = append(slices.DeleteFunc(slices.Clone(r.Flags), isLogFlag), r.VerdictRun().Flags...)
	work.updateWithoutSuspect(&r, old)
	result := RegradedRecord{Record: r, Reports: work.reports, graded: r}
	result.Changed = r.Class != old.Class || r.Resolution != old.Resolution || r.Basis.RowSHA256 != old.Basis.RowSHA256 ||
		r.Basis.Parser != old.Basis.Parser || r.Basis.ParserRelease != old.Basis.ParserRelease ||
		r.Basis.EvalType != old.Basis.EvalType
	if !result.Changed {
		result.Record = old
		return result, nil
	}
	result.Record.Previous = append(slices.Clone(old.Previous), verdicts.PreviousVerdict{
		Time: g.now, Class: old.Class, Resolution: old.Resolution, Reason: old.Reason, RowSHA256: old.Basis.RowSHA256,
		Parser: old.Basis.Parser, ParserRelease: old.Basis.ParserRelease, EvalType: old.Basis.EvalType,
	})
	result.Record.ForeignLog = old.ForeignLog || !old.IsSignedBy(g.key)
	result.Record, err = result.Record.WithSignature(g.key)
	return result, err
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
	// missingFiles reports whether the files of an extra run are missing.
	missingFiles bool
}

// gradeRun grades the log of a run again if it has a complete one.
func (g *regrading) gradeRun(ctx context.Context, run *verdicts.TestRun) error {
	switch run.Class {
	case verdicts.Resolved, verdicts.Unresolved, verdicts.Error:
	case verdicts.Infrastructure:
		if run.Resolution == "" {
			return nil // the tests did not run
		}
	default:
		return nil
	}
	if run.Dir == "" {
		g.missingFiles = g.missingFiles || run.Purpose != verdicts.ForVerdict
		return nil // a later run has replaced the files
	}
	dir := filepath.Join(g.dir.Path(), filepath.FromSlash(run.Dir))
	if dir != g.paths.official.Dir && filepath.Dir(dir) != g.paths.extraRuns {
		return fmt.Errorf("%.100q is not a folder of this record", run.Dir) // records are untrusted
	}
	files, oldClass := grade.FilesIn(dir), run.Class
	report, err := g.plan.gradeFile(ctx, g.logMemory, g.dir, files.TestOutput, run)
	if err != nil {
		return err
	}
	if report == nil && oldClass != verdicts.Error {
		return errors.New(run.Reason)
	}
	if report != nil {
		g.reports[files.Report] = report
	}
	return classifyFailure(ctx, run, g.logMemory, g.dir, files)
}

// updateWithoutSuspect sets ResolvedWithoutSuspect from the newest run without
// the flagged files. If there is no such run or its files are missing, the
// method clears the field when the class has changed.
func (g *regrading) updateWithoutSuspect(r *verdicts.Record, old verdicts.Record) {
	if old.ResolvedWithoutSuspect == nil {
		return
	}
	for _, run := range slices.Backward(r.Runs) {
		if run.Purpose != verdicts.WithoutSuspect || !run.Class.IsFinal() {
			continue
		}
		if run.Dir != "" {
			resolved := run.Class == verdicts.Resolved
			r.ResolvedWithoutSuspect = &resolved
			return
		}
		break
	}
	if r.Class != old.Class {
		r.ResolvedWithoutSuspect = nil // unknown until the next evaluation
	}
}
