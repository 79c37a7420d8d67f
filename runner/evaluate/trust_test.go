package evaluate_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
)

// entry returns the only folder of a verdict in a cache.
func entry(t testing.TB, cache string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cache, "*", "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the cache has %v, %v", found, err)
	}
	return found[0]
}

// change edits the record in a file.
func change(path string, edit func(r *verdicts.Record)) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var r verdicts.Record
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	edit(&r)
	if data, err = json.Marshal(r); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// TestHostileCache checks that incomplete and inconsistent entries are ignored.
func TestHostileCache(t *testing.T) {
	const record = "verdict.json"
	recorded := func(edit func(r *verdicts.Record)) func(dir string) error {
		return func(dir string) error { return change(filepath.Join(dir, record), edit) }
	}
	put := func(name, text string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	remove := func(name string) func(dir string) error {
		return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
	}
	for name, damage := range map[string]func(dir string) error{
		"nothing":          nil,
		"record gone":      remove(record),
		"record torn":      put(record, `{"format": "mini-verdict-1", "ins`),
		"record empty":     put(record, ""),
		"another format":   put(record, `{"format": "mini-verdict-9", "class": "resolved"}`),
		"a list":           put(record, "[]"),
		"log gone":         remove("test_output.txt"),
		"report gone":      remove("report.json"),
		"another key":      recorded(func(r *verdicts.Record) { r.Basis.Key = strings.Repeat("0", 64) }),
		"another instance": recorded(func(r *verdicts.Record) { r.Instance = "minidemo__other-1" }),
		"class of its own": recorded(func(r *verdicts.Record) { r.Class = "excellent" }),
		"run of its own":   recorded(func(r *verdicts.Record) { r.Class, r.Runs[0].Class = "excellent", "excellent" }),
		"no runs":          recorded(func(r *verdicts.Record) { r.Runs = nil }),
		"infrastructure":   recorded(func(r *verdicts.Record) { r.Class, r.Runs[0].Class = verdicts.Infrastructure, verdicts.Infrastructure }),
		"a link": func(dir string) error {
			log := filepath.Join(dir, "test_output.txt")
			return errors.Join(os.Rename(log, log+".other"), os.Symlink(log+".other", log))
		},
		"a folder": func(dir string) error {
			log := filepath.Join(dir, "test_output.txt")
			return errors.Join(os.Remove(log), os.Mkdir(log, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			sandboxes := &fakeSandboxes{image: "sha256:aa"}
			b := newEvaluation(t, identifiedSandboxes{sandboxes})
			b.config.Cache, b.config.TrustVerdicts = filepath.Join(t.TempDir(), "shared"), true
			b.run(t.Context(), predict(t, fix))
			want := 1
			if damage != nil {
				want = 2
				if err := damage(entry(t, b.config.Cache)); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // the first evaluation repairs the entry
				b.dir = t.TempDir()
				s := b.run(t.Context(), predict(t, fix))
				if sandboxes.starts != want || s.Count(verdicts.Resolved) != 1 || b.official("m", "minidemo__ledger-17") != graded {
					t.Errorf("%d starts, want %d; %v", sandboxes.starts, want, s.ByClass)
				}
				if left, _ := filepath.Glob(filepath.Join(b.dir, "logs", "run_evaluation", "r1", "m", ".*")); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			}
		})
	}
}

// TestCacheIsLeftAlone checks that an evaluation does not rewrite a reused entry of the
// cache, which others may be reading.
func TestCacheIsLeftAlone(t *testing.T) {
	b := newEvaluation(t, identifiedSandboxes{&fakeSandboxes{image: "sha256:aa"}})
	b.config.Cache = filepath.Join(t.TempDir(), "shared")
	b.run(t.Context(), predict(t, fix))
	before, err := os.Stat(filepath.Join(entry(t, b.config.Cache), "verdict.json"))
	if err != nil {
		t.Fatal(err)
	}
	b.dir = t.TempDir()
	b.run(t.Context(), predict(t, fix))
	if after, err := os.Stat(filepath.Join(entry(t, b.config.Cache), "verdict.json")); err != nil || !os.SameFile(before, after) {
		t.Errorf("the record was written again: %v", err)
	}
}

// TestCacheOfAnotherUser checks that entries without the user's signature count only with
// TrustVerdicts, and that the user's own replace them.
func TestCacheOfAnotherUser(t *testing.T) {
	sandboxes := &fakeSandboxes{image: "sha256:aa"}
	b := newEvaluation(t, identifiedSandboxes{sandboxes})
	b.config.Cache = filepath.Join(t.TempDir(), "shared")
	b.run(t.Context(), predict(t, fix))
	b.config.SigningKey = []byte("another")
	for _, c := range []struct {
		trust  bool
		starts int
	}{{true, 1}, {false, 2}, {false, 2}} {
		b.dir, b.config.TrustVerdicts = t.TempDir(), c.trust
		if b.run(t.Context(), predict(t, fix)); sandboxes.starts != c.starts {
			t.Errorf("%+v: %d starts", c, sandboxes.starts)
		}
	}
}

// TestTakenVerdictsAreNotCached checks that verdicts of another user are not added to the
// cache, also after further runs.
func TestTakenVerdictsAreNotCached(t *testing.T) {
	sandboxes := scriptSandboxes(func(in datasets.Instance, _ int, c env.Command) (env.Result, error) {
		return respond(c, logOf(in, "FAILED", 1), env.Result{})
	})
	b := newEvaluation(t, identifiedSandboxes{sandboxes})
	b.run(t.Context(), predict(t, fix))
	b.config.Cache = filepath.Join(t.TempDir(), "shared")
	b.config.RerunFailed, b.config.SigningKey, b.config.TrustVerdicts = 1, []byte("another"), true
	b.run(t.Context(), predict(t, fix), evaluate.NewTask(row(t), "other", []byte(fix)))
	if found, _ := filepath.Glob(filepath.Join(b.config.Cache, "*", "*")); len(found) > 0 {
		t.Errorf("the cache has %v", found)
	}
	b.dir = t.TempDir()
	b.run(t.Context(), predict(t, fix))
	entry(t, b.config.Cache)
}

// TestCacheThatCannotBeWritten checks that an unwritable cache loses no verdicts.
func TestCacheThatCannotBeWritten(t *testing.T) {
	b := newEvaluation(t, identifiedSandboxes{&fakeSandboxes{image: "sha256:aa"}})
	b.config.Cache = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(b.config.Cache, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all := rows(t)
	s := b.run(t.Context(), evaluate.NewTask(all[0], "m", []byte(fix)), evaluate.NewTask(all[1], "m", []byte(fix)))
	warned := 0
	for _, e := range b.events {
		if e.Type == runner.Warning && strings.Contains(e.Text, "write verdict to the cache") {
			warned++
		}
	}
	if s.Count(verdicts.Resolved) != 2 || warned != 1 {
		t.Errorf("%v, %d warnings", s.ByClass, warned)
	}
}

// TestNamesThatCollide checks that the check before a run rejects the second of two names
// with the same path, and that a verdict never counts for another model whose records have it.
func TestNamesThatCollide(t *testing.T) {
	upper := row(t)
	upper.ID = strings.ToUpper(upper.ID)
	again := evaluate.NewTask(row(t), "m", []byte(fix+"\n"))
	again.Repetition = 2
	for name, c := range map[string]struct {
		tasks    [2]evaluate.Task
		collides bool
	}{
		"slash":            {[2]evaluate.Task{evaluate.NewTask(row(t), "a/b", []byte(fix)), evaluate.NewTask(row(t), "a__b", []byte(fix))}, true},
		"case of models":   {[2]evaluate.Task{evaluate.NewTask(row(t), "Model", []byte(fix)), evaluate.NewTask(row(t), "model", []byte(fix))}, true},
		"case of a row":    {[2]evaluate.Task{evaluate.NewTask(row(t), "m", []byte(fix)), evaluate.NewTask(upper, "m", []byte(fix))}, true},
		"gold and a model": {[2]evaluate.Task{evaluate.GoldTask(row(t)), evaluate.NewTask(row(t), "GOLD", []byte(fix))}, true},
		"repetitions":      {[2]evaluate.Task{evaluate.NewTask(row(t), "m", []byte(fix)), again}, false},
		"another patch":    {[2]evaluate.Task{evaluate.NewTask(row(t), "m", []byte(fix)), evaluate.NewTask(row(t), "m", nil)}, false},
	} {
		errs := evaluate.Config{RunID: "run"}.CheckTasks(c.tasks[:])
		if errs[0] != nil || errors.Is(errs[1], grade.ErrInvalidName) != c.collides || !c.collides && errs[1] != nil {
			t.Errorf("%s: %v", name, errs)
		}
	}
	sandboxes := &fakeSandboxes{image: "sha256:aa"}
	b := newEvaluation(t, identifiedSandboxes{sandboxes})
	b.run(t.Context(), evaluate.NewTask(row(t), "a/b", []byte(fix)))
	if s := b.run(t.Context(), evaluate.NewTask(row(t), "a__b", []byte(fix))); sandboxes.starts != 2 || s.Records[0].Model != "a__b" {
		t.Errorf("later: %d starts, %+v", sandboxes.starts, s.Records[0])
	}
}

// TestLaterPatchCounts checks that the later of two patches with the same name counts.
func TestLaterPatchCounts(t *testing.T) {
	for name, c := range map[string]struct {
		later []byte
		class verdicts.Class
		files string
	}{
		"a patch": {[]byte(fix + "\n"), verdicts.Resolved, graded},
		"none":    {nil, verdicts.Empty, none},
	} {
		for _, workers := range []int{1, 2} {
			t.Run(name, func(t *testing.T) {
				b := newEvaluation(t, identifiedSandboxes{&fakeSandboxes{image: "sha256:aa"}})
				b.config.Workers = workers
				s := b.run(t.Context(), predict(t, fix), evaluate.NewTask(row(t), "m", c.later))
				again := b.run(t.Context(), evaluate.NewTask(row(t), "m", c.later))
				for _, s := range []evaluate.Summary{s, again} {
					if s.Submitted != 1 || s.Count(c.class) != 1 || s.Records[0].Basis.PatchBytes != len(c.later) {
						t.Errorf("%d workers: %v, %+v", workers, s.ByClass, s.Records)
					}
				}
				if got := b.official("m", "minidemo__ledger-17"); got != c.files {
					t.Errorf("files %q", got)
				}
			})
		}
	}
}

// TestEmptyPatchRemovesFiles checks that an empty patch removes the report of the patch
// that it replaces.
func TestEmptyPatchRemovesFiles(t *testing.T) {
	b := newEvaluation(t, identifiedSandboxes{&fakeSandboxes{image: "sha256:aa"}})
	b.run(t.Context(), predict(t, fix))
	if s := b.run(t.Context(), evaluate.NewTask(row(t), "m", nil)); s.Count(verdicts.Empty) != 1 || b.official("m", "minidemo__ledger-17") != none {
		t.Errorf("%v, files %q", s.ByClass, b.official("m", "minidemo__ledger-17"))
	}
}

// TestStoppedInAnotherEvaluation checks that a record never lies beside the files of
// another evaluation.
func TestStoppedInAnotherEvaluation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stopped := false
		sandboxes := scriptSandboxes(func(in datasets.Instance, n int, c env.Command) (env.Result, error) {
			res, err := respond(c, logOf(in, "PASSED", 0), env.Result{})
			if n == 2 {
				stopped = true
				cancel()
				<-ctx.Done()
				return res, context.Cause(ctx)
			}
			return res, err
		})
		b := newEvaluation(t, identifiedSandboxes{sandboxes})
		b.run(t.Context(), predict(t, fix))
		b.config.Network = "bridge"
		b.run(ctx, predict(t, fix))
		if _, err := os.Stat(filepath.Join(b.dir, "verdicts/r1/m/minidemo__ledger-17.json")); !stopped || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("stopped %v, the record: %v", stopped, err)
		}
		b.config.Network = "none"
		if s := b.run(t.Context(), predict(t, fix)); sandboxes.starts != 3 || s.Count(verdicts.Resolved) != 1 {
			t.Errorf("%d starts, %v", sandboxes.starts, s.ByClass)
		}
	})
}
