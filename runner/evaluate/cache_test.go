package evaluate

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
)

// TestCacheConcurrentWriters checks that a verdict from the cache is from one run,
// even if other processes write the verdict at the same time.
func TestCacheConcurrentWriters(t *testing.T) {
	const minis, rounds = 4, 15
	shared := t.TempDir()
	patch := []byte("a patch\n")
	basis := verdicts.Basis{PatchSHA256: verdicts.PatchHash(patch), ScriptSHA256: verdicts.PatchHash(nil)}.WithImage("sha256:aa", "", "")
	var taken atomic.Int64
	var all errgroup.Group
	for mini := range minis {
		dir := t.TempDir()
		run, err := grade.NewLayout(dir, "r1")
		if err != nil {
			t.Fatal(err)
		}
		root, err := rootdir.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		s, _, err := newStore(Config{Cache: shared, SigningKey: []byte("k")}, dir, root)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() error {
			for round := range rounds {
				p, err := pathsFor(dir, run, "m", fmt.Sprintf("i-%d", round))
				if err != nil {
					return err
				}
				// The record and the log must be from the same run.
				start := time.Unix(int64(mini*rounds+round), 0).UTC()
				for path, text := range map[string]string{
					p.official.Patch: string(patch), p.official.Script: "", p.official.Log: start.String(),
					p.official.TestOutput: start.String(), p.official.Report: start.String(),
				} {
					if err := writeFile(root, path, []byte(text)); err != nil {
						return err
					}
				}
				r := verdicts.Record{Format: verdicts.Format, Instance: "i", Model: "m", RunID: "r1", Class: verdicts.Resolved, Basis: basis, Runs: []verdicts.TestRun{
					{Purpose: verdicts.ForVerdict, Class: verdicts.Resolved, Start: start, Dir: "logs"},
				}}
				if r, err = r.WithSignature(s.key); err != nil {
					return err
				}
				if err := s.addToCache(p.official, r); err != nil {
					return err
				}
				f, ok := s.find(basis.Key)
				if !ok {
					continue // another worker is replacing the verdict
				}
				ok, err = s.importFiles(f, p)
				if err != nil {
					return err
				}
				if !ok {
					continue
				}
				taken.Add(1)
				for _, path := range []string{p.official.Log, p.official.TestOutput, p.official.Report} {
					if text, err := os.ReadFile(path); err != nil || string(text) != f.record.VerdictRun().Start.String() {
						return fmt.Errorf("%s says %q, %w; the record is of %s", filepath.Base(path), text, err, f.record.VerdictRun().Start)
					}
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	if taken.Load() == 0 {
		t.Error("nothing was ever taken")
	}
	left, err := os.ReadDir(filepath.Join(shared, basis.Key[:2]))
	if err != nil || len(left) != 1 || left[0].Name() != basis.Key {
		t.Errorf("the cache has %v, %v", left, err)
	}
}
