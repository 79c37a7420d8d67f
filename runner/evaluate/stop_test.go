package evaluate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/verdicts"
)

// stopper cancels a context at the operation for which left becomes 0.
type stopper struct {
	identifiedSandboxes
	left int
	stop context.CancelFunc
}

func (s *stopper) step(ctx context.Context) error {
	if s.left--; s.left == 0 {
		s.stop()
	}
	return context.Cause(ctx)
}

func (s *stopper) Start(ctx context.Context, in datasets.Instance) (env.Environment, error) {
	if err := s.step(ctx); err != nil {
		return nil, err
	}
	sandbox, err := s.identifiedSandboxes.Start(ctx, in)
	return &stopping{sandbox, s}, err
}

func (s *stopper) Identify(ctx context.Context, in datasets.Instance) (evaluate.Image, error) {
	if err := s.step(ctx); err != nil {
		return evaluate.Image{}, err
	}
	return s.identifiedSandboxes.Identify(ctx, in)
}

type stopping struct {
	env.Environment
	s *stopper
}

func (b *stopping) Put(ctx context.Context, dir string, tree io.Reader) error {
	if err := b.s.step(ctx); err != nil {
		return err
	}
	files, ok := b.Environment.(env.Files)
	if !ok {
		return errors.ErrUnsupported
	}
	return files.Put(ctx, dir, tree)
}

func (b *stopping) Get(context.Context, string, io.Writer) error { return errors.ErrUnsupported }

func (b *stopping) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if err := b.s.step(ctx); err != nil {
		return env.Result{ExitCode: -1}, err
	}
	return b.Environment.Execute(ctx, c)
}

func (b *stopping) Close(ctx context.Context) error {
	return errors.Join(ignored(b.s.step(ctx)), b.Environment.Close(ctx)) // closing must work after a cancellation
}

func ignored(error) error { return nil }

// TestStoppedAnywhere stops an evaluation at each operation. All records must be complete,
// and the next evaluation must have the same result.
func TestStoppedAnywhere(t *testing.T) {
	const cheat = "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n+++ b/conftest.py\n@@ -0,0 +1 @@\n+cheat\n"
	synctest.Test(t, func(t *testing.T) {
		for at := 1; ; at++ {
			sandboxes := scriptSandboxes(func(in datasets.Instance, _ int, c env.Command) (env.Result, error) {
				return respond(c, logOf(in, "FAILED", 1), env.Result{ExitCode: 1})
			})
			b := newEvaluation(t, identifiedSandboxes{sandboxes})
			b.config.RerunFailed, b.config.Cache = 1, filepath.Join(t.TempDir(), "shared")
			ctx, stop := context.WithCancel(t.Context())
			s := &stopper{identifiedSandboxes: identifiedSandboxes{sandboxes}, left: at, stop: stop}
			b.config.Sandboxes = s
			b.run(ctx, predict(t, fix+cheat))
			if sandboxes.openCount != 0 {
				t.Fatalf("stopped at step %d: %d sandboxes are left", at, sandboxes.openCount)
			}
			if err := wholeRecords(b.dir); err != nil {
				t.Fatalf("stopped at step %d: %v", at, err)
			}
			reached := s.left <= 0
			s.left = 0
			b.config.RerunFailed = 0
			sum := b.run(t.Context(), predict(t, fix+cheat))
			r := sum.Records[0]
			if r.Class != verdicts.Unresolved || r.ResolvedWithoutSuspect == nil || !sum.IsComplete() || b.official("m", "minidemo__ledger-17") != graded {
				t.Fatalf("stopped at step %d, then: %s, without %v, files %s", at, r.Class, r.ResolvedWithoutSuspect, b.official("m", "minidemo__ledger-17"))
			}
			// Another run reuses only complete verdicts of the cache.
			b.dir = t.TempDir()
			starts := sandboxes.starts
			if sum := b.run(t.Context(), predict(t, fix+cheat)); sum.Count(verdicts.Unresolved) != 1 || b.official("m", "minidemo__ledger-17") != graded {
				t.Fatalf("stopped at step %d, elsewhere: %v after %d more starts", at, sum.ByClass, sandboxes.starts-starts)
			}
			stop()
			if !reached {
				if at < 20 {
					t.Fatalf("it ends after %d steps", at)
				}
				return
			}
		}
	})
}

// wholeRecords returns an error if files of a record are missing.
func wholeRecords(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" || !strings.Contains(path, "verdicts/r1/m/minidemo__ledger-17.json") {
			return err
		}
		var missing error
		err = change(path, func(r *verdicts.Record) {
			for _, a := range r.Runs {
				if _, err := os.Stat(filepath.Join(dir, a.Dir, "report.json")); a.Dir != "" && err != nil {
					missing = errors.Join(missing, fmt.Errorf("run for %s: %w", a.Purpose, err))
				}
			}
		})
		return errors.Join(err, missing)
	})
}
