package evaluate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// ErrNotRegraded reports that the logs of a record cannot be graded again. The
// record stays unchanged.
var ErrNotRegraded = errors.New("cannot be regraded")

// Regrader grades the saved logs of a run folder again with the current rows.
// Its methods are safe for concurrent use.
type Regrader struct {
	Dir      *rootdir.Dir          // the run folder
	Editions []datasets.SourceInfo // the datasets of the rows
	Now      time.Time             // the time in Record.Previous
	// SigningKey signs the records that were signed with it. Others stay without a
	// signature.
	SigningKey []byte
	DryRun     bool // do not write files

	logMemory *semaphore.Weighted // limits the memory for logs
}

// NewRegrader returns a Regrader with the exported fields of g.
func NewRegrader(g Regrader) *Regrader {
	g.logMemory = semaphore.NewWeighted(maxLogMemory)
	return &g
}

// Regraded is the result of Regrader.Regrade.
type Regraded struct {
	Verdict verdicts.Verdict // the new one, or the old one if nothing changes
	Updated bool             // a file was written, or would be without DryRun
	// Err is the reason why the verdict stays unchanged. It wraps ErrNotRegraded, or an
	// error of the row such as grade.ErrNotGradable.
	Err error
}

// Regrade grades the saved logs of a verdict again, with the current row, and writes
// the reports and the record that change. Results without a complete log do not
// change: empty, apply_failed, timed_out and most infrastructure failures. It returns an
// error if a file of the folder cannot be read or written.
func (g *Regrader) Regrade(ctx context.Context, v verdicts.Verdict, in datasets.Instance) (result Regraded, err error) {
	result.Verdict = v
	r, reports, err := g.regrade(ctx, v.Record, in)
	if err != nil || r == nil {
		result.Err = err
		return result, nil //nolint:nilerr // the error is in the result
	}
	for path, report := range reports {
		old, err := g.Dir.ReadFile(path, maxReport)
		switch {
		case err == nil && bytes.Equal(old, report):
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return result, fmt.Errorf("read %s: %w", filepath.Base(path), err)
		}
		if result.Updated = true; !g.DryRun {
			if err := writeFile(g.Dir, path, report); err != nil {
				return result, err
			}
		}
	}
	if !hasChanged(v.Record, *r) {
		return result, nil
	}
	r.Previous = append(slices.Clone(v.Previous), verdicts.PreviousVerdict{
		Time: g.Now, Class: v.Class, Resolution: v.Resolution, Reason: v.Reason, RowSHA256: v.Basis.RowSHA256,
		Parser: v.Basis.Parser, ParserRelease: v.Basis.ParserRelease, EvalType: v.Basis.EvalType,
	})
	r.Signature = ""
	result.Verdict.Record, result.Updated = *r, true
	if v.IsSignedBy(g.SigningKey) {
		result.Verdict.Record, err = r.WithSignature(g.SigningKey)
	}
	if err == nil && !g.DryRun {
		err = verdicts.Write(g.Dir, v.Path, result.Verdict.Record)
	}
	return result, err
}

// maxReport limits the size of a report.json, in bytes.
const maxReport = 64 << 20

// hasChanged reports whether the verdict or its inputs have changed.
func hasChanged(old, r verdicts.Record) bool {
	a, b := old.Basis, r.Basis
	return r.Class != old.Class || r.Resolution != old.Resolution || a.RowSHA256 != b.RowSHA256 ||
		a.Parser != b.Parser || a.ParserRelease != b.ParserRelease || a.EvalType != b.EvalType
}

// regrade returns the record with the verdict of its logs, and the new contents of
// report.json files by path. It returns nil if there is no log to grade.
func (g *Regrader) regrade(ctx context.Context, r verdicts.Record, in datasets.Instance) (*verdicts.Record, map[string][]byte, error) {
	fail := func(format string, args ...any) (*verdicts.Record, map[string][]byte, error) {
		return nil, nil, fmt.Errorf("%s %w: %s", r.Instance, ErrNotRegraded, fmt.Sprintf(format, args...))
	}
	p, err := newPlan(Config{}, Task{Instance: in})
	if err != nil {
		return nil, nil, err
	}
	old := r
	r.Runs = slices.Clone(r.Runs)
	if r.VerdictRun() == nil {
		return nil, nil, nil
	}
	switch {
	case r.Basis.ScriptSHA256 != "" && r.Basis.ScriptSHA256 != p.basis.ScriptSHA256:
		return fail("the row's evaluation script has changed since the log was made; run the tests with mini eval")
	case r.Basis.Image != "" && r.Basis.Image != p.basis.Image:
		return fail("the row's image has changed since the log was made; run the tests with mini eval")
	}
	layout, err := grade.NewLayout(g.Dir.Path(), r.RunID)
	var files paths
	if err == nil {
		files, err = pathsFor(g.Dir.Path(), layout, r.Model, r.Instance)
	}
	if err != nil {
		return fail("%v", err)
	}
	work := regrading{plan: p, dir: g.Dir, paths: files, logMemory: g.logMemory, reports: map[string][]byte{}}
	for i := range r.Runs {
		if err := work.gradeRun(ctx, &r.Runs[i]); err != nil {
			return fail("run %d: %v", i+1, err)
		}
	}
	if old.Class == verdicts.Infrastructure && len(work.reports) == 0 {
		return nil, nil, nil
	}
	r.Basis.RowSHA256, r.Basis.Parser, r.Basis.ParserRelease = p.basis.RowSHA256, p.basis.Parser, p.basis.ParserRelease
	r.Basis.EvalType, r.Basis.Editions = p.basis.EvalType, g.Editions
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
	return &r, work.reports, nil
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
