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
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/suspect"
	"github.com/minibench/mini/runner/rootdir"
	"github.com/minibench/mini/runner/verdicts"
)

// Regrade is a verdict given anew, from the logs of its runs and the row as it
// is now. Nothing is written yet.
type Regrade struct {
	// Record has the new verdict, and the one before among its Regraded.
	Record verdicts.Record
	// Reports are the new contents of report.json, by path.
	Reports map[string][]byte
	// Changed says that something is new, be it only what the verdict rests on.
	Changed bool

	judged verdicts.Record // by the logs alone, changed or not
}

// ErrNotRegraded is wrapped by the error for a verdict that its logs cannot
// renew: it stays as it is.
var ErrNotRegraded = errors.New("cannot be regraded")

// Again judges the saved logs of records in the folder of a run, by rows as
// they are now. Its methods are safe for concurrent use.
type Again struct {
	dir      *rootdir.Dir
	editions []datasets.Edition
	now      time.Time
	key      []byte
	reading  *semaphore.Weighted // the memory for logs
}

// NewAgain judges in this folder. The editions are those of the rows, now is
// when the earlier verdicts are given up, and key seals records (Config.Key). The
// verdict of a record without that seal rests on a log made elsewhere.
func NewAgain(dir *rootdir.Dir, editions []datasets.Edition, now time.Time, key []byte) *Again {
	return &Again{dir: dir, editions: editions, now: now, key: key, reading: semaphore.NewWeighted(memory)}
}

// Judge gives the verdict of a record anew. What
// ended without a log that is to be judged stays as it is: an empty patch, one
// that did not apply, a script that took too long, a machine that failed. The
// error wraps ErrNotRegraded, or grade.ErrNotGradable for the row.
func (again *Again) Judge(ctx context.Context, r verdicts.Record, in datasets.Instance) (Regrade, error) {
	not := func(format string, args ...any) (Regrade, error) {
		return Regrade{}, fmt.Errorf("%s %w: %s", r.Instance, ErrNotRegraded, fmt.Sprintf(format, args...))
	}
	p, err := newPlan(Config{}, Task{Instance: in})
	if err != nil {
		return Regrade{}, err
	}
	old := r
	r.Runs = slices.Clone(r.Runs)
	if r.VerdictRun() == nil {
		return Regrade{Record: old}, nil
	}
	switch {
	case r.Basis.ScriptSHA256 != "" && r.Basis.ScriptSHA256 != p.basis.ScriptSHA256:
		return not("the row's evaluation script is not the one that made the log; mini eval runs the new one")
	case r.Basis.Image != "" && r.Basis.Image != p.basis.Image:
		return not("the row names another image than the one that made the log; mini eval runs the new one")
	}
	run, err := grade.NewRun(again.dir.Path(), r.RunID)
	if err != nil {
		return not("%v", err)
	}
	s := &store{dir: again.dir.Path()}
	where, err := s.paths(run, r.Model, r.Instance)
	if err != nil {
		return not("%v", err)
	}
	g := regrading{plan: p, dir: again.dir, paths: where, reading: again.reading, reports: map[string][]byte{}}
	for i := range r.Runs {
		if err := g.judge(ctx, &r.Runs[i]); err != nil {
			return not("run %d: %v", i+1, err)
		}
	}
	if old.Class == verdicts.Infrastructure && len(g.reports) == 0 {
		return Regrade{Record: old}, nil // there is no verdict to renew
	}
	r.Basis.RowSHA256, r.Basis.Parser, r.Basis.ParserRelease = p.basis.RowSHA256, p.basis.Parser, p.basis.ParserRelease
	r.Basis.EvalType, r.Basis.Editions = p.basis.EvalType, again.editions
	r.Basis.Key = r.Basis.ComputeKey()
	for i, a := range r.Runs {
		if a.Key != "" {
			r.Runs[i].Key = r.Basis.KeyWithPatch(a.PatchSHA256)
		}
	}
	r.Conclude()
	if r.VerdictClass() != old.VerdictClass() && g.lost {
		return not("the verdict would be %s, but the log of a further run is not here to be held against", r.Class)
	}
	r.Flags = append(slices.DeleteFunc(slices.Clone(r.Flags), ofLog), r.VerdictRun().Flags...)
	g.without(&r, old)
	out := Regrade{Record: r, Reports: g.reports, judged: r}
	out.Changed = r.Class != old.Class || r.Resolution != old.Resolution || r.Basis.RowSHA256 != old.Basis.RowSHA256 ||
		r.Basis.Parser != old.Basis.Parser || r.Basis.ParserRelease != old.Basis.ParserRelease || r.Basis.EvalType != old.Basis.EvalType
	if !out.Changed {
		out.Record = old
		return out, nil
	}
	out.Record.Regraded = append(slices.Clone(old.Regraded), verdicts.Regraded{
		Time: again.now, Class: old.Class, Resolution: old.Resolution, Reason: old.Reason, RowSHA256: old.Basis.RowSHA256,
		Parser: old.Basis.Parser, ParserRelease: old.Basis.ParserRelease, EvalType: old.Basis.EvalType,
	})
	out.Record.ForeignLog = old.ForeignLog || !old.IsSealed(again.key)
	out.Record, err = out.Record.Sealed(again.key)
	return out, err
}

// ofLog says that a flag is one of the log, and not of the patch.
func ofLog(f suspect.Finding) bool { return f.File == "" }

// regrading is the work on one record.
type regrading struct {
	plan    plan
	dir     *rootdir.Dir
	paths   paths
	reading *semaphore.Weighted
	reports map[string][]byte
	// lost says that the files of a run are not here.
	lost bool
}

// judge gives a run its verdict anew, if it has one.
func (g *regrading) judge(ctx context.Context, a *verdicts.Attempt) error {
	switch a.Class {
	case verdicts.Resolved, verdicts.Unresolved, verdicts.Error:
	case verdicts.Infrastructure:
		if a.Resolution == "" {
			return nil // it never came to a log
		}
	default:
		return nil
	}
	if a.Dir == "" {
		g.lost = g.lost || a.Purpose != verdicts.ForVerdict
		return nil // a later run has taken its place
	}
	dir := filepath.Join(g.dir.Path(), filepath.FromSlash(a.Dir))
	if dir != g.paths.official.Dir && filepath.Dir(dir) != g.paths.further {
		return fmt.Errorf("%.100q is no folder of its own", a.Dir) // a stranger's record leads elsewhere
	}
	files, was := grade.FilesIn(dir), a.Class
	report, err := g.plan.read(ctx, g.reading, g.dir, files.TestOutput, a)
	if err != nil {
		return err
	}
	if report == nil && was != verdicts.Error {
		return errors.New(a.Reason)
	}
	if report != nil {
		g.reports[files.Report] = report
	}
	return classify(ctx, a, g.reading, g.dir, files)
}

// without renews what becomes of the verdict without the suspect hunks.
func (g *regrading) without(r *verdicts.Record, old verdicts.Record) {
	if old.ResolvedWithoutSuspect == nil {
		return
	}
	for _, a := range slices.Backward(r.Runs) {
		if a.Purpose != verdicts.WithoutSuspect || !a.Class.Final() {
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
		r.ResolvedWithoutSuspect = nil // nothing here says; the next evaluation finds out
	}
}
