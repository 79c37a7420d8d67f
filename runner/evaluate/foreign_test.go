package evaluate_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/verdicts"
)

const record = "verdicts/r1/m/minidemo__ledger-17.json"

// fails returns sandboxes in which the tests fail.
func fails() *fakeSandboxes {
	return scriptSandboxes(func(in datasets.Instance, _ int, c env.Command) (env.Result, error) {
		return respond(c, logOf(in, "FAILED", 1), env.Result{ExitCode: 1})
	})
}

// TestForeignVerdicts checks that a verdict without the user's signature is not reused,
// unless TrustVerdicts takes it.
func TestForeignVerdicts(t *testing.T) {
	claim := func(b *evaluation) error {
		return change(filepath.Join(b.dir, record), func(r *verdicts.Record) {
			r.Class, r.Resolution, r.Reason = verdicts.Resolved, "RESOLVED_FULL", ""
			r.Runs[0].Class, r.Runs[0].Resolution, r.Runs[0].Reason = verdicts.Resolved, "RESOLVED_FULL", ""
		})
	}
	another := func(b *evaluation) error { b.config.SigningKey = []byte("another"); return nil }
	for name, c := range map[string]struct {
		change func(b *evaluation) error
		trust  bool
		class  verdicts.Class
		starts int  // number of started sandboxes in both sessions
		taken  bool // the verdict is that of another user
	}{
		"of this user":             {func(*evaluation) error { return nil }, false, verdicts.Unresolved, 1, false},
		"of this user, trusted":    {func(*evaluation) error { return nil }, true, verdicts.Unresolved, 1, false},
		"of another user":          {another, false, verdicts.Unresolved, 2, false},
		"of another user, trusted": {another, true, verdicts.Unresolved, 1, true},
		"without a key":            {func(b *evaluation) error { b.config.SigningKey = nil; return nil }, false, verdicts.Unresolved, 2, false},
		"changed":                  {claim, false, verdicts.Unresolved, 2, false},
		"changed, trusted":         {claim, true, verdicts.Resolved, 1, true},
		"without a signature": {func(b *evaluation) error {
			return change(filepath.Join(b.dir, record), func(r *verdicts.Record) { r.Signature = "" })
		}, false, verdicts.Unresolved, 2, false},
		"with a log that has no result": {func(b *evaluation) error {
			return os.WriteFile(filepath.Join(b.dir, tree, "test_output.txt"), nil, 0o600)
		}, false, verdicts.Unresolved, 1, false},
		"without its log, trusted": {func(b *evaluation) error {
			return errors.Join(another(b), os.Remove(filepath.Join(b.dir, tree, "test_output.txt")))
		}, true, verdicts.Unresolved, 2, false},
		"with another key, trusted": {func(b *evaluation) error {
			return change(filepath.Join(b.dir, record), func(r *verdicts.Record) { r.Basis.Key = strings.Repeat("0", 64) })
		}, true, verdicts.Unresolved, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			sandboxes := fails()
			b := newEvaluation(t, identifiedSandboxes{sandboxes})
			b.run(t.Context(), predict(t, fix))
			if err := c.change(b); err != nil {
				t.Fatal(err)
			}
			before := b.file(record)
			b.config.TrustVerdicts = c.trust
			s := b.run(t.Context(), predict(t, fix))
			if sandboxes.starts != c.starts || s.Count(c.class) != 1 || s.Reused != 2-c.starts {
				t.Errorf("%d starts, %d reused, %v", sandboxes.starts, s.Reused, s.ByClass)
			}
			if c.taken && b.file(record) != before {
				t.Error("a verdict that was taken was written again")
			}
			warned := false
			for _, e := range b.events {
				warned = warned || e.Type == runner.Warning && strings.Contains(e.Text, "1 verdict without the signature of this user")
			}
			if warned != (c.starts == 2 && !c.trust) {
				t.Errorf("warned: %v", warned)
			}
			// Later sessions decide in the same way, and without trust the tests run.
			starts := sandboxes.starts
			if b.run(t.Context(), predict(t, fix)); len(b.config.SigningKey) > 0 && sandboxes.starts != starts {
				t.Errorf("the same again: %d starts", sandboxes.starts-starts)
			}
			b.config.TrustVerdicts = false
			if b.run(t.Context(), predict(t, fix)); c.taken && sandboxes.starts != starts+1 {
				t.Errorf("later, without trust: %d starts", sandboxes.starts-starts)
			}
		})
	}
}

// TestTakenVerdictIsNotSigned checks that a record that was taken, and has further runs
// of this user, does not become the user's own.
func TestTakenVerdictIsNotSigned(t *testing.T) {
	sandboxes := fails()
	b := newEvaluation(t, identifiedSandboxes{sandboxes})
	b.run(t.Context(), predict(t, fix))
	b.config.SigningKey, b.config.TrustVerdicts, b.config.RerunFailed = []byte("another"), true, 1
	b.run(t.Context(), predict(t, fix))
	if strings.Contains(b.file(record), `"seal"`) || sandboxes.starts != 2 {
		t.Errorf("%d starts, the record:\n%s", sandboxes.starts, b.file(record))
	}
	b.config.TrustVerdicts = false
	if b.run(t.Context(), predict(t, fix)); sandboxes.starts != 4 {
		t.Errorf("without trust: %d starts", sandboxes.starts)
	}
}

// TestForeignBaseline checks that a baseline without the user's signature quarantines no
// instance.
func TestForeignBaseline(t *testing.T) {
	b := newEvaluation(t, identifiedSandboxes{fails()})
	b.run(t.Context(), evaluate.GoldTask(row(t)))
	b.config.SigningKey = []byte("another")
	if s := b.run(t.Context(), predict(t, fix)); len(s.Quarantined) > 0 {
		t.Errorf("quarantined: %v", s.Quarantined)
	}
}

// TestLinksOut checks that an evaluation in an untrusted folder follows no links out of
// it, and that the error names the link.
func TestLinksOut(t *testing.T) {
	const id = "minidemo__ledger-17"
	for _, link := range []string{
		"logs", "logs/run_evaluation", "logs/run_evaluation/r1", "logs/run_evaluation/r1/m", "logs/run_evaluation/r1/m/" + id,
		"verdicts", "verdicts/r1", "verdicts/r1/m", "verdicts/r1/m/" + id, record, "m.r1.json", "verdicts/r1.json",
		"logs/run_evaluation/r1/m/" + id + "/test_output.txt", "logs/run_evaluation/r1/run.json",
	} {
		for _, again := range []bool{false, true} { // with another patch
			name := link
			if again {
				name += ", another patch"
			}
			t.Run(name, func(t *testing.T) {
				sandboxes := &fakeSandboxes{image: "sha256:aa"}
				b := newEvaluation(t, identifiedSandboxes{sandboxes})
				b.run(t.Context(), predict(t, fix))
				outside := filepath.Join(t.TempDir(), "outside")
				at := filepath.Join(b.dir, link)
				if err := os.Rename(at, outside); errors.Is(err, fs.ErrNotExist) { // there are no extra runs
					err = os.MkdirAll(filepath.Join(outside, "2"), 0o700)
					if err != nil {
						t.Fatal(err)
					}
				} else if err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(outside, at); err != nil {
					t.Fatal(err)
				}
				before := contents(t, outside)
				patch := fix
				if again {
					patch += "\n"
				}
				folder, err := runner.Open(b.dir)
				if err != nil {
					t.Fatal(err)
				}
				defer folder.Close()
				b.config.Folder, b.config.Log = folder, runner.NewLog(folder, nil)
				s, err := evaluate.Run(t.Context(), b.config, []evaluate.Task{predict(t, patch)})
				if info, failed := os.Lstat(at); failed == nil && info.Mode()&fs.ModeSymlink != 0 && !strings.HasSuffix(link, "run.json") {
					// The link still exists, unless nothing had to be written.
					if out, ok := errors.AsType[*rootdir.LinkError](err); (again || strings.Count(link, "/") < 2) && (!ok || out.Path != at) {
						t.Errorf("error %v, want one that names the link", err)
					}
				} else if err != nil || s.Count(verdicts.Resolved) != 1 {
					t.Errorf("%v, %v", s.ByClass, err)
				}
				if after := contents(t, outside); after != before {
					t.Errorf("outside was:\n%s\nand is:\n%s", before, after)
				}
			})
		}
	}
}

// contents returns the files in a folder, or a single file, as one text.
func contents(t *testing.T, path string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			all = append(all, path)
			return err
		}
		data, err := os.ReadFile(path)
		all = append(all, path, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
