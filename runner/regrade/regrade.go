// Package regrade recomputes the verdicts in a run's folder from the saved test
// logs, after a change of the log parsers or of the dataset. It runs no tests.
//
//	result, err := regrade.Run(ctx, regrade.Config{Dir: "runs/first", Rows: rows})
//	for _, c := range result.Changed { fmt.Println(c.Instance, c.From, "->", c.To) }
package regrade

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/verdicts"
)

// Config configures a regrade.
type Config struct {
	Dir      string // of the run, locked by the caller
	Verdicts []verdicts.Verdict
	// Instances are the current rows of the dataset, by ID.
	Instances  map[string]datasets.Instance
	Editions   []datasets.SourceInfo // of Instances
	DryRun     bool                  // do not write files
	Now        time.Time
	SigningKey []byte // the user's; see evaluate.Config
}

// Result is the result of a regrade.
type Result struct {
	Verdicts int      `json:"verdicts"` // number of verdicts, also of those that failed
	Changed  []Change `json:"changed"`
	// Updated counts verdicts with the same class but other inputs, such as a
	// new version of the parsers or another row, or another report.
	Updated int `json:"renewed"`
	// Failed are the verdicts that could not be regraded. They stay unchanged.
	Failed []Failure `json:"kept"`
	// Records are all current verdicts, ordered by run ID, model and instance.
	Records []verdicts.Verdict `json:"-"`
}

// Change is a verdict with a new class.
type Change struct {
	Instance string         `json:"instance_id"`
	Model    string         `json:"model_name_or_path"`
	RunID    string         `json:"run_id"`
	From     verdicts.Class `json:"from"`
	To       verdicts.Class `json:"to"`
	Reason   string         `json:"reason,omitempty"`
}

// Failure is a verdict that could not be regraded, with the reason.
type Failure struct {
	Instance string         `json:"instance_id"`
	Model    string         `json:"model_name_or_path"`
	RunID    string         `json:"run_id"`
	Class    verdicts.Class `json:"class"`
	Reason   string         `json:"reason"`
}

// Run regrades the verdicts of a folder. It writes the reports and records of
// each verdict, and then the summaries. It returns an error if the folder
// cannot be opened, a file cannot be written or ctx is cancelled.
func Run(ctx context.Context, c Config) (Result, error) {
	result := Result{Verdicts: len(c.Verdicts), Changed: []Change{}, Failed: []Failure{}}
	root, err := rootdir.Open(c.Dir)
	if err != nil {
		return result, fmt.Errorf("regrade: %w", err)
	}
	defer root.Close() //nolint:errcheck // writes report their own errors
	grader := evaluate.NewRegrader(evaluate.Regrader{
		Dir: root, Editions: c.Editions, Now: c.Now, SigningKey: c.SigningKey, DryRun: c.DryRun,
	})
	all := slices.SortedFunc(slices.Values(c.Verdicts), func(a, b verdicts.Verdict) int {
		return cmp.Or(cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Model, b.Model), datasets.CompareNatural(a.Instance, b.Instance))
	})
	outcomes := make([]evaluate.Regraded, len(all))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i, v := range all {
		workers.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			row, ok := c.Instances[v.Instance]
			if !ok {
				outcomes[i] = evaluate.Regraded{Verdict: v, Err: fmt.Errorf("%s has no row in the dataset", v.Instance)}
				return nil
			}
			var err error
			if outcomes[i], err = grader.Regrade(ctx, v, row); ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		return result, err
	}
	for i, v := range all {
		result.add(v, outcomes[i])
	}
	if !c.DryRun && len(result.Changed)+result.Updated > 0 {
		err = c.summarize(root, result.Records)
	}
	return result, err
}

func (r *Result) add(v verdicts.Verdict, o evaluate.Regraded) {
	switch {
	case o.Err != nil:
		r.Failed = append(r.Failed, Failure{v.Instance, v.Model, v.RunID, v.Class, o.Err.Error()})
	case o.Verdict.Class != v.Class:
		r.Changed = append(r.Changed, Change{v.Instance, v.Model, v.RunID, v.Class, o.Verdict.Class, o.Verdict.Reason})
	case o.Updated:
		r.Updated++
	}
	r.Records = append(r.Records, o.Verdict)
}
