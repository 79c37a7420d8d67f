// Package regrade gives the verdicts in the folder of a run anew, from the logs
// that its evaluations have saved: after a parser or the dataset has changed.
// Nothing is run. The folder may be one that the official harness has written;
// then there are no records, and its reports are what is renewed.
//
//	result, err := regrade.Folder(ctx, regrade.Config{Dir: "runs/first", Rows: rows})
//	for _, c := range result.Changed { fmt.Println(c.Instance, c.From, "->", c.To) }
package regrade

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/rootdir"
	"github.com/minibench/mini/runner/verdicts"
)

// Config says what is regraded.
type Config struct {
	Dir string // of the run; where it has records, the caller holds it
	// Verdicts are those that Find has found in it.
	Verdicts []verdicts.Verdict
	// Rows are the instances as they are now, by id.
	Rows     map[string]datasets.Instance
	Editions []datasets.Edition // that the rows are from
	DryRun   bool               // write nothing
	Now      time.Time
	Key      []byte // of the user; see evaluate.Config
}

// Result is what came of it.
type Result struct {
	Verdicts int      `json:"verdicts"` // that were looked at
	Changed  []Change `json:"changed"`
	// Renewed have the same class as before, on another basis: another release
	// of the parsers, another row.
	Renewed int `json:"renewed"`
	// Kept could not be regraded, and have the verdict they had.
	Kept []Kept `json:"kept"`
	// Records are all verdicts as they are now, by run id, model and instance.
	Records []verdicts.Verdict `json:"-"`
}

// Change is a verdict that is another one now.
type Change struct {
	Instance string         `json:"instance_id"`
	Model    string         `json:"model_name_or_path"`
	RunID    string         `json:"run_id"`
	From     verdicts.Class `json:"from"`
	To       verdicts.Class `json:"to"`
	Reason   string         `json:"reason,omitempty"`
}

// Kept is a verdict that stays as it was, and why.
type Kept struct {
	Instance string         `json:"instance_id"`
	Model    string         `json:"model_name_or_path"`
	RunID    string         `json:"run_id"`
	Class    verdicts.Class `json:"class"`
	Reason   string         `json:"reason"`
}

// Folder regrades a folder, verdict by verdict: each has its new report and its
// new record, or what it had. Then the summaries are written anew. The error is
// that of a file that cannot be written, or the cause of ctx.
func Folder(ctx context.Context, c Config) (Result, error) {
	r := Result{Verdicts: len(c.Verdicts), Changed: []Change{}, Kept: []Kept{}}
	root, err := rootdir.Open(c.Dir)
	if err != nil {
		return r, fmt.Errorf("regrade: %w", err)
	}
	defer root.Close() //nolint:errcheck // all is written
	again := evaluate.NewAgain(root, c.Editions, c.Now, c.Key)
	all := slices.SortedFunc(slices.Values(c.Verdicts), func(a, b verdicts.Verdict) int {
		return cmp.Or(cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Model, b.Model), datasets.Natural(a.Instance, b.Instance))
	})
	done := make([]outcome, len(all))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i, v := range all {
		workers.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			done[i] = c.one(ctx, root, again, v)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if failed, ok := errors.AsType[*writeError](done[i].err); ok {
				return failed
			}
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		return r, err
	}
	for i, v := range all {
		r.take(v, done[i])
	}
	if !c.DryRun && len(r.Changed)+r.Renewed > 0 {
		err = c.summarize(root, r.Records)
	}
	return r, err
}

// outcome is what came of a verdict: the one that counts now.
type outcome struct {
	now     verdicts.Verdict
	renewed bool // something was, or would be, written
	err     error
}

func (r *Result) take(v verdicts.Verdict, o outcome) {
	switch {
	case o.err != nil:
		r.Kept = append(r.Kept, Kept{v.Instance, v.Model, v.RunID, v.Class, o.err.Error()})
	case o.now.Class != v.Class:
		r.Changed = append(r.Changed, Change{v.Instance, v.Model, v.RunID, v.Class, o.now.Class, o.now.Reason})
	case o.renewed:
		r.Renewed++
	}
	r.Records = append(r.Records, o.now)
}

// one regrades a verdict.
func (c Config) one(ctx context.Context, root *rootdir.Dir, again *evaluate.Again, v verdicts.Verdict) outcome {
	row, ok := c.Rows[v.Instance]
	if !ok {
		return outcome{now: v, err: fmt.Errorf("%s has no row in the dataset", v.Instance)}
	}
	g, err := again.Judge(ctx, v.Record, row)
	if err != nil {
		return outcome{now: v, err: err}
	}
	renewed := false
	for path, report := range g.Reports {
		changed, err := c.replace(root, path, report)
		if err != nil {
			return outcome{now: v, err: &writeError{err}}
		}
		renewed = renewed || changed
	}
	v.Record = g.Record
	if v.Path == "" { // of another harness, which has no records
		return outcome{now: v, renewed: renewed}
	}
	if g.Changed && !c.DryRun {
		if err := verdicts.Write(root, v.Path, v.Record); err != nil {
			return outcome{now: v, err: &writeError{err}}
		}
	}
	return outcome{now: v, renewed: renewed || g.Changed}
}

// writeError is a file that cannot be written. Going on would leave more of
// them behind.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// replace writes a file in one piece, unless it says the same already.
func (c Config) replace(root *rootdir.Dir, path string, data []byte) (changed bool, err error) {
	old, err := root.ReadFile(path, maxReport)
	if err == nil && bytes.Equal(old, data) {
		return false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	if c.DryRun {
		return true, nil
	}
	if err := root.WriteFile(path, data); err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	return true, nil
}
