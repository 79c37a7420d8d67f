package evaluate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
)

func predict(t testing.TB, patch string) evaluate.Task {
	return evaluate.NewTask(row(t), "m", []byte(patch))
}

// TestVerdictsAreReused checks that a restarted evaluation runs no tests again.
func TestVerdictsAreReused(t *testing.T) {
	sandboxes := &fakeSandboxes{image: "sha256:aa"}
	for name, s := range map[string]evaluate.Sandboxes{"identified before the start": identifiedSandboxes{sandboxes}, "identified by the start": sandboxes} {
		t.Run(name, func(t *testing.T) {
			sandboxes.starts = 0
			b := newEvaluation(t, s)
			first := b.run(t.Context(), predict(t, fix), evaluate.NewTask(row(t), "other", []byte(fix)))
			// The tests of the same patch of another model do not run either.
			if first.Count(verdicts.Resolved) != 2 || first.Reused != 1 {
				t.Fatalf("%v, %d reused", first.ByClass, first.Reused)
			}
			ran := 0
			for _, sandbox := range sandboxes.started {
				for _, c := range sandbox.commands {
					if c == "/bin/bash /eval.sh" {
						ran++
					}
				}
			}
			sandboxes.started = nil
			if ran != 1 || b.official("other", "minidemo__ledger-17") != graded {
				t.Errorf("the script ran %d times; files of the other: %s", ran, b.official("other", "minidemo__ledger-17"))
			}
			starts := sandboxes.starts
			again := b.run(t.Context(), predict(t, fix), evaluate.NewTask(row(t), "other", []byte(fix)))
			if sandboxes.starts != starts || again.Reused != 2 || again.Count(verdicts.Resolved) != 2 {
				t.Errorf("%d more starts, %d reused", sandboxes.starts-starts, again.Reused)
			}
			if diff := cmp.Diff(asJSON(t, first.Records), asJSON(t, again.Records)); diff != "" {
				t.Errorf("the records differ (-first +again):\n%s", diff)
			}
		})
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestChangedInputRunsAgain changes each input of a verdict.
func TestChangedInputRunsAgain(t *testing.T) {
	for name, change := range map[string]func(b *evaluation, sandboxes *fakeSandboxes, in *datasets.Instance, patch *string){
		"nothing": nil,
		"patch":   func(_ *evaluation, _ *fakeSandboxes, _ *datasets.Instance, patch *string) { *patch += "\n" },
		"image": func(_ *evaluation, sandboxes *fakeSandboxes, _ *datasets.Instance, _ *string) {
			sandboxes.image = "sha256:bb"
		},
		"processor": func(_ *evaluation, sandboxes *fakeSandboxes, _ *datasets.Instance, _ *string) {
			sandboxes.arch = "arm64"
		},
		"timeout": func(b *evaluation, _ *fakeSandboxes, _ *datasets.Instance, _ *string) { b.config.Timeout = time.Hour },
		"network": func(b *evaluation, _ *fakeSandboxes, _ *datasets.Instance, _ *string) { b.config.Network = "bridge" },
		"profile": func(b *evaluation, _ *fakeSandboxes, _ *datasets.Instance, _ *string) { b.config.Profile = "other" },
		"mini":    func(b *evaluation, _ *fakeSandboxes, _ *datasets.Instance, _ *string) { b.config.MiniVersion = "1.1" },
		"tests": func(_ *evaluation, _ *fakeSandboxes, in *datasets.Instance, _ *string) {
			in.PassToPass = in.PassToPass[1:]
		},
		"script": func(_ *evaluation, _ *fakeSandboxes, in *datasets.Instance, _ *string) { in.EvalScript += "\nid" },
		"parser": func(_ *evaluation, _ *fakeSandboxes, in *datasets.Instance, _ *string) {
			in.LogParser = "parse_log_pytest_v2"
		},
		"a column": func(_ *evaluation, _ *fakeSandboxes, in *datasets.Instance, _ *string) { in.TestPatch += "\n" },
	} {
		for _, where := range []string{"folder", "cache"} {
			t.Run(name+", "+where, func(t *testing.T) {
				sandboxes := &fakeSandboxes{image: "sha256:aa"}
				b := newEvaluation(t, identifiedSandboxes{sandboxes})
				b.config.Cache = filepath.Join(t.TempDir(), "shared")
				b.run(t.Context(), predict(t, fix))
				if where == "cache" {
					b.dir = t.TempDir()
				} else {
					b.config.Cache = ""
				}
				in, patch, want := row(t), fix, 2
				if change == nil {
					want = 1
				} else {
					change(b, sandboxes, &in, &patch)
				}
				s := b.run(t.Context(), evaluate.NewTask(in, "m", []byte(patch)))
				if sandboxes.starts != want || s.Reused != 2-want {
					t.Errorf("%d starts, %d reused; want %d starts", sandboxes.starts, s.Reused, want)
				}
				if got := b.official("m", "minidemo__ledger-17"); got != graded {
					t.Errorf("files %s", got)
				}
			})
		}
	}
}

// TestDamageRunsAgain checks that the tests run again if files of a verdict are missing
// or its record is invalid.
func TestDamageRunsAgain(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"report gone": func(dir string) error { return os.Remove(filepath.Join(dir, tree, "report.json")) },
		"record torn": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "verdicts/r1/m/minidemo__ledger-17.json"), []byte(`{"format":`), 0o600)
		},
		"record of another model": func(dir string) error {
			return edit(filepath.Join(dir, "verdicts/r1/m/minidemo__ledger-17.json"), `"model_name_or_path": "m"`, `"model_name_or_path": "x"`)
		},
		"record of another format": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "verdicts/r1/m/minidemo__ledger-17.json"), []byte(`{"format":"x"}`), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			sandboxes := &fakeSandboxes{image: "sha256:aa"}
			b := newEvaluation(t, identifiedSandboxes{sandboxes})
			b.run(t.Context(), predict(t, fix))
			if err := damage(b.dir); err != nil {
				t.Fatal(err)
			}
			if s := b.run(t.Context(), predict(t, fix)); sandboxes.starts != 2 || s.Count(verdicts.Resolved) != 1 || b.official("m", "minidemo__ledger-17") != graded {
				t.Errorf("%d starts, %v", sandboxes.starts, s.ByClass)
			}
		})
	}
}

// edit replaces a text that a file contains.
func edit(path, from, to string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Contains(data, []byte(from)) {
		return fmt.Errorf("%s lacks %s", path, from)
	}
	return os.WriteFile(path, bytes.Replace(data, []byte(from), []byte(to), 1), 0o600)
}

// TestUnknownImageIsNotReused checks that a verdict with an unknown image is not reused.
func TestUnknownImageIsNotReused(t *testing.T) {
	sandboxes := &fakeSandboxes{}
	b := newEvaluation(t, sandboxes)
	b.run(t.Context(), predict(t, fix))
	if b.run(t.Context(), predict(t, fix)); sandboxes.starts != 2 {
		t.Errorf("%d starts", sandboxes.starts)
	}
}

// TestInfrastructureRunsAgain checks that an infrastructure failure is evaluated again
// and never reused.
func TestInfrastructureRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		sandboxes := &fakeSandboxes{image: "sha256:aa", start: func(context.Context, int) error {
			if down {
				return newEnvError(env.DaemonUnavailable)
			}
			return nil
		}}
		b := newEvaluation(t, identifiedSandboxes{sandboxes})
		if s := b.run(t.Context(), predict(t, fix)); s.IsComplete() {
			t.Fatalf("complete: %v", s.ByClass)
		}
		down = false
		if s := b.run(t.Context(), predict(t, fix)); !s.IsComplete() || s.Count(verdicts.Resolved) != 1 || sandboxes.starts != 4 {
			t.Errorf("%v after %d starts", s.ByClass, sandboxes.starts)
		}
	})
}

// TestInterrupted checks that an interrupted patch has no record and is evaluated again.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		sandboxes := &fakeSandboxes{image: "sha256:aa"}
		sandboxes.execute = func(ctx context.Context, _ *fakeSandbox, n int, c env.Command) (env.Result, bool, error) {
			if n != 2 || !isCommand(c, "/bin/bash /eval.sh") {
				return env.Result{}, false, nil
			}
			cancel(stop)
			<-ctx.Done()
			return env.Result{ExitCode: -1}, true, context.Cause(ctx)
		}
		b := newEvaluation(t, identifiedSandboxes{sandboxes})
		all := rows(t)
		tasks := []evaluate.Task{
			evaluate.NewTask(all[0], "m", []byte(fix)), evaluate.NewTask(all[1], "m", []byte(fix)), evaluate.NewTask(all[2], "m", []byte(fix)),
		}
		s := b.run(ctx, tasks...)
		if diff := cmp.Diff([]string{all[1].ID, all[2].ID}, s.Unfinished); diff != "" || s.Count(verdicts.Resolved) != 1 || s.IsComplete() {
			t.Fatalf("unfinished %v, %v", s.Unfinished, s.ByClass)
		}
		if sandboxes.openCount != 0 {
			t.Errorf("%d sandboxes are left", sandboxes.openCount)
		}
		sandboxes.execute = nil
		s = b.run(t.Context(), tasks...)
		if s.Count(verdicts.Resolved) != 3 || s.Reused != 1 || sandboxes.starts != 4 {
			t.Errorf("%v, %d reused, %d starts", s.ByClass, s.Reused, sandboxes.starts)
		}
		b.checkOfficial(s, tasks...)
	})
}

// TestNamesAreReserved checks that no valid instance id equals the name of a run's file.
func TestNamesAreReserved(t *testing.T) {
	b := newEvaluation(t, identifiedSandboxes{&fakeSandboxes{image: "sha256:aa"}})
	b.run(t.Context(), predict(t, fix))
	entries, err := os.ReadDir(b.dir)
	if err != nil || len(entries) < 5 {
		t.Fatalf("the folder has %v, %v", entries, err)
	}
	for _, e := range entries {
		if datasets.CheckID(e.Name()) == nil && e.Name() != "m.r1.json" { // the official summary
			t.Errorf("an instance may be called %s", e.Name())
		}
	}
}

// TestUnstable checks that a failed patch is rerun, and that the verdict is unstable if a
// rerun has another class.
func TestUnstable(t *testing.T) {
	// Letter n is the result of run n of the script.
	play := func(ends string) *fakeSandboxes {
		return scriptSandboxes(func(in datasets.Instance, n int, c env.Command) (env.Result, error) {
			switch ends[n-1] {
			case 'P':
				return respond(c, logOf(in, "PASSED", 0), env.Result{})
			case 'T':
				return respond(c, "", env.Result{ExitCode: -1, TimedOut: true})
			case 'I':
				return env.Result{}, newEnvError(env.ContainerDied)
			}
			return respond(c, logOf(in, "FAILED", 1), env.Result{ExitCode: 1})
		})
	}
	for _, c := range []struct {
		ends  string
		times int
		class verdicts.Class
		ran   string
	}{
		{"P", 3, verdicts.Resolved, "P"},
		{"F", 0, verdicts.Unresolved, "F"},
		{"FFFF", 3, verdicts.Unresolved, "FFFF"},
		{"FP", 3, verdicts.Unstable, "FP"},
		{"FFP", 3, verdicts.Unstable, "FFP"},
		{"FT", 1, verdicts.Unstable, "FT"},
		{"TT", 1, verdicts.TimedOut, "TT"},
		{"FIIIF", 2, verdicts.Unresolved, "FIIIF"}, // an infrastructure failure uses up a run but is no different result
		{"FIP", 1, verdicts.Unstable, "FIP"},
	} {
		for _, later := range []bool{false, true} {
			name := c.ends
			if later {
				name += ", in a later session"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					sandboxes := play(c.ends)
					b := newEvaluation(t, identifiedSandboxes{sandboxes})
					if later {
						b.run(t.Context(), predict(t, fix))
					}
					b.config.RerunFailed = c.times
					s := b.run(t.Context(), predict(t, fix))
					if s.Count(c.class) != 1 || sandboxes.starts != len(c.ran) || len(s.Records[0].Runs) != len(c.ran) {
						t.Fatalf("%v after %d starts; want %s after %s", s.ByClass, sandboxes.starts, c.class, c.ran)
					}
					r := s.Records[0]
					for i, a := range r.Runs[1:] {
						if a.Purpose != verdicts.ForRerun {
							t.Errorf("run %d is for %s", i+2, a.Purpose)
						}
						if a.Dir == "" {
							continue // the next run replaced the files
						}
						if _, err := os.Stat(filepath.Join(b.dir, a.Dir, "run_instance.log")); err != nil {
							t.Error(err)
						}
					}
					// The same command makes no more reruns.
					if starts := sandboxes.starts; !strings.Contains(c.ends, "I") {
						if b.run(t.Context(), predict(t, fix)); sandboxes.starts != starts {
							t.Errorf("%d more starts", sandboxes.starts-starts)
						}
					}
					// The official verdict is that of the first run.
					if r.Runs[0].Dir != strings.TrimSuffix(tree, "/") {
						t.Errorf("the first run's files are in %s", r.Runs[0].Dir)
					}
					b.checkOfficial(s, predict(t, fix))
					// The class stays the same without another run.
					if c.class == verdicts.Unstable {
						if s := b.run(t.Context(), predict(t, fix)); s.Count(verdicts.Unstable) != 1 || sandboxes.starts != len(c.ran) {
							t.Errorf("later: %v after %d starts", s.ByClass, sandboxes.starts)
						}
					}
				})
			})
		}
	}
}

// TestWithoutSuspect checks the extra run without the flagged hunks.
func TestWithoutSuspect(t *testing.T) {
	const cheat = "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n+++ b/conftest.py\n@@ -0,0 +1 @@\n+cheat\n"
	// The tests pass if conftest.py is in the patch.
	cheated := scriptSandboxes(nil)
	cheated.execute = func(_ context.Context, b *fakeSandbox, _ int, c env.Command) (env.Result, bool, error) {
		if !isCommand(c, "/bin/bash /eval.sh") {
			return env.Result{}, false, nil
		}
		status, code := "FAILED", 1
		if strings.Contains(b.files["/tmp/patch.diff"], "conftest.py") {
			status, code = "PASSED", 0
		}
		res, err := respond(c, logOf(b.in, status, code), env.Result{})
		return res, true, err
	}
	b := newEvaluation(t, identifiedSandboxes{cheated})
	s := b.run(t.Context(), predict(t, fix+cheat))
	r := s.Records[0]
	if r.Class != verdicts.Resolved || r.ResolvedWithoutSuspect == nil || *r.ResolvedWithoutSuspect {
		t.Fatalf("%s, without %v", r.Class, r.ResolvedWithoutSuspect)
	}
	if diff := cmp.Diff([]string{"minidemo__ledger-17"}, s.ChangedWithoutSuspect); diff != "" || s.Flags["test_setup"] != 1 {
		t.Errorf("swayed %v, flags %v", s.ChangedWithoutSuspect, s.Flags)
	}
	if cheated.starts != 2 || cheated.started[1].files["/tmp/patch.diff"] != fix || r.Runs[1].Purpose != verdicts.WithoutSuspect {
		t.Errorf("%d starts, %+v", cheated.starts, r.Runs)
	}
	if b.file(tree+"patch.diff") != fix+cheat {
		t.Error("the official files are of the run without")
	}
	// The rest of the patch can be evaluated alone.
	if s := b.run(t.Context(), evaluate.NewTask(row(t), "honest", []byte(fix))); cheated.starts != 3 || s.Count(verdicts.Unresolved) != 1 ||
		b.official("honest", "minidemo__ledger-17") != graded || b.file("logs/run_evaluation/r1/honest/minidemo__ledger-17/patch.diff") != fix {
		t.Errorf("the rest alone: %d starts, %v", cheated.starts, s.ByClass)
	}
	// If all hunks are flagged, nothing is left to run.
	s = b.run(t.Context(), predict(t, cheat))
	if r := s.Records[0]; cheated.starts != 4 || r.ResolvedWithoutSuspect == nil || *r.ResolvedWithoutSuspect {
		t.Errorf("%d starts, without %v", cheated.starts, r.ResolvedWithoutSuspect)
	}
	// The row's own solution is not checked.
	in := row(t)
	in.Patch = fix + cheat
	if s := b.run(t.Context(), evaluate.GoldTask(in)); len(s.Records[0].Flags) > 0 || s.Records[0].ResolvedWithoutSuspect != nil {
		t.Errorf("gold: %+v", s.Records[0])
	}
}

// TestQuarantine checks that the rate of trusted instances excludes those that this machine
// cannot evaluate, in any order of the baseline and the patch.
func TestQuarantine(t *testing.T) {
	all := rows(t)
	sandboxes := scriptSandboxes(func(in datasets.Instance, _ int, c env.Command) (env.Result, error) {
		if in.ID == all[0].ID {
			return respond(c, logOf(in, "FAILED", 1), env.Result{})
		}
		return respond(c, logOf(in, "PASSED", 0), env.Result{})
	})
	shared := filepath.Join(t.TempDir(), "shared")
	b := newEvaluation(t, identifiedSandboxes{sandboxes})
	b.config.Cache = shared
	var tasks, golds []evaluate.Task
	for _, in := range all {
		tasks = append(tasks, evaluate.NewTask(in, "m", []byte(fix)))
		golds = append(golds, evaluate.GoldTask(in))
	}
	s := b.run(t.Context(), tasks...)
	if s.Trusted != 5 || s.TrustedResolved != 4 || len(s.Quarantined) != 0 {
		t.Errorf("without a baseline: %d of %d, %v", s.TrustedResolved, s.Trusted, s.Quarantined)
	}
	other := newEvaluation(t, identifiedSandboxes{sandboxes})
	other.config.Cache = shared
	other.run(t.Context(), golds...)
	s = b.run(t.Context(), tasks...)
	want := []evaluate.Quarantined{{Instance: all[0].ID, Gold: verdicts.Unresolved}}
	if diff := cmp.Diff(want, s.Quarantined); diff != "" || s.Trusted != 4 || s.TrustedResolved != 4 {
		t.Errorf("%d of %d (-want +got):\n%s", s.TrustedResolved, s.Trusted, diff)
	}
}

// TestRejected checks that Job rejects tasks that cannot be evaluated.
func TestRejected(t *testing.T) {
	good := row(t)
	for name, c := range map[string]struct {
		change func(*evaluate.Task)
		want   error
	}{
		"no tests":       {func(k *evaluate.Task) { k.Instance.FailToPass, k.Instance.PassToPass = nil, nil }, grade.ErrNotGradable},
		"unknown parser": {func(k *evaluate.Task) { k.Instance.LogParser = "parse_log_x" }, grade.ErrNotGradable},
		"model":          {func(k *evaluate.Task) { k.Model = ".." }, grade.ErrInvalidName},
		"long model":     {func(k *evaluate.Task) { k.Model = strings.Repeat("m", 250) }, grade.ErrInvalidName},
		"instance":       {func(k *evaluate.Task) { k.Instance.ID = "a/../b" }, grade.ErrInvalidName},
		"like a record":  {func(k *evaluate.Task) { k.Instance.ID = "a.json" }, grade.ErrInvalidName},
		"assets": {func(k *evaluate.Task) {
			k.Instance.Row = map[string]json.RawMessage{"image_assets": json.RawMessage(`{"test_patch":[{"path":"a.png"}]}`)}
		}, grade.ErrNotGradable},
	} {
		t.Run(name, func(t *testing.T) {
			sandboxes := &fakeSandboxes{}
			b := newEvaluation(t, sandboxes)
			task := evaluate.NewTask(good, "m", []byte(fix))
			c.change(&task)
			if err := b.config.CheckTasks([]evaluate.Task{task})[0]; !errors.Is(err, c.want) {
				t.Errorf("check: %v", err)
			}
			folder, err := runner.Open(b.dir)
			if err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			b.config.Folder, b.config.Log = folder, runner.NewLog(folder, nil)
			s, err := evaluate.Run(t.Context(), b.config, []evaluate.Task{task})
			if !errors.Is(err, c.want) || sandboxes.starts > 0 || s.Submitted != 0 {
				t.Errorf("run: %v, %d starts", err, sandboxes.starts)
			}
		})
	}
}
