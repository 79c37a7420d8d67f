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

// TestNothingRunsTwice: an evaluation that is started again repeats nothing.
func TestNothingRunsTwice(t *testing.T) {
	boxes := &fakeBoxes{image: "sha256:aa"}
	for name, s := range map[string]evaluate.Sandboxes{"asked beforehand": identified{boxes}, "known by its start": boxes} {
		t.Run(name, func(t *testing.T) {
			boxes.starts = 0
			b := newBench(t, s)
			first := b.run(t.Context(), predict(t, fix), evaluate.NewTask(row(t), "other", []byte(fix)))
			// The same patch of another model is not run either.
			if first.Count(verdicts.Resolved) != 2 || first.Reused != 1 {
				t.Fatalf("%v, %d reused", first.ByClass, first.Reused)
			}
			ran := 0
			for _, box := range boxes.boxes {
				for _, c := range box.ran {
					if c == "/bin/bash /eval.sh" {
						ran++
					}
				}
			}
			boxes.boxes = nil
			if ran != 1 || b.official("other", "minidemo__ledger-17") != judged {
				t.Errorf("the script ran %d times; files of the other: %s", ran, b.official("other", "minidemo__ledger-17"))
			}
			starts := boxes.starts
			again := b.run(t.Context(), predict(t, fix), evaluate.NewTask(row(t), "other", []byte(fix)))
			if boxes.starts != starts || again.Reused != 2 || again.Count(verdicts.Resolved) != 2 {
				t.Errorf("%d more starts, %d reused", boxes.starts-starts, again.Reused)
			}
			if diff := cmp.Diff(asJSON(t, first.Records), asJSON(t, again.Records)); diff != "" {
				t.Errorf("the records are others (-first +again):\n%s", diff)
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

// TestWhatChangedRunsAgain: each thing that a verdict rests on.
func TestWhatChangedRunsAgain(t *testing.T) {
	for name, change := range map[string]func(b *bench, boxes *fakeBoxes, in *datasets.Instance, patch *string){
		"nothing":   nil,
		"patch":     func(_ *bench, _ *fakeBoxes, _ *datasets.Instance, patch *string) { *patch += "\n" },
		"image":     func(_ *bench, boxes *fakeBoxes, _ *datasets.Instance, _ *string) { boxes.image = "sha256:bb" },
		"processor": func(_ *bench, boxes *fakeBoxes, _ *datasets.Instance, _ *string) { boxes.arch = "arm64" },
		"timeout":   func(b *bench, _ *fakeBoxes, _ *datasets.Instance, _ *string) { b.config.Timeout = time.Hour },
		"network":   func(b *bench, _ *fakeBoxes, _ *datasets.Instance, _ *string) { b.config.Network = "bridge" },
		"profile":   func(b *bench, _ *fakeBoxes, _ *datasets.Instance, _ *string) { b.config.Profile = "other" },
		"mini":      func(b *bench, _ *fakeBoxes, _ *datasets.Instance, _ *string) { b.config.MiniVersion = "1.1" },
		"tests":     func(_ *bench, _ *fakeBoxes, in *datasets.Instance, _ *string) { in.PassToPass = in.PassToPass[1:] },
		"script":    func(_ *bench, _ *fakeBoxes, in *datasets.Instance, _ *string) { in.EvalScript += "\nid" },
		"parser":    func(_ *bench, _ *fakeBoxes, in *datasets.Instance, _ *string) { in.LogParser = "parse_log_pytest_v2" },
		"a column":  func(_ *bench, _ *fakeBoxes, in *datasets.Instance, _ *string) { in.TestPatch += "\n" },
	} {
		for _, where := range []string{"folder", "cache"} {
			t.Run(name+", "+where, func(t *testing.T) {
				boxes := &fakeBoxes{image: "sha256:aa"}
				b := newBench(t, identified{boxes})
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
					change(b, boxes, &in, &patch)
				}
				s := b.run(t.Context(), evaluate.NewTask(in, "m", []byte(patch)))
				if boxes.starts != want || s.Reused != 2-want {
					t.Errorf("%d starts, %d reused; want %d starts", boxes.starts, s.Reused, want)
				}
				if got := b.official("m", "minidemo__ledger-17"); got != judged {
					t.Errorf("files %s", got)
				}
			})
		}
	}
}

// TestDamageRunsAgain: a verdict whose files are gone, or whose record is none.
func TestDamageRunsAgain(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"report gone": func(dir string) error { return os.Remove(filepath.Join(dir, tree, "report.json")) },
		"record torn": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "verdicts/r1/m/minidemo__ledger-17.json"), []byte(`{"format":`), 0o600)
		},
		"record of another model": func(dir string) error {
			return edit(filepath.Join(dir, "verdicts/r1/m/minidemo__ledger-17.json"), `"model_name_or_path": "m"`, `"model_name_or_path": "x"`)
		},
		"record of another verdict": func(dir string) error {
			return edit(filepath.Join(dir, "verdicts/r1/m/minidemo__ledger-17.json"), `"network": "none"`, `"network": "bridge"`)
		},
		"record that leads elsewhere": func(dir string) error {
			return edit(filepath.Join(dir, "verdicts/r1/m/minidemo__ledger-17.json"), `"dir": "logs/`, `"dir": "../logs/`)
		},
		"record of another format": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "verdicts/r1/m/minidemo__ledger-17.json"), []byte(`{"format":"x"}`), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			boxes := &fakeBoxes{image: "sha256:aa"}
			b := newBench(t, identified{boxes})
			b.run(t.Context(), predict(t, fix))
			if err := damage(b.dir); err != nil {
				t.Fatal(err)
			}
			if s := b.run(t.Context(), predict(t, fix)); boxes.starts != 2 || s.Count(verdicts.Resolved) != 1 || b.official("m", "minidemo__ledger-17") != judged {
				t.Errorf("%d starts, %v", boxes.starts, s.ByClass)
			}
		})
	}
}

// edit replaces a text in a file, which has it.
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

// TestUnknownImageIsNotReused: who cannot tell what ran cannot tell that it
// would be the same.
func TestUnknownImageIsNotReused(t *testing.T) {
	boxes := &fakeBoxes{}
	b := newBench(t, boxes)
	b.run(t.Context(), predict(t, fix))
	if b.run(t.Context(), predict(t, fix)); boxes.starts != 2 {
		t.Errorf("%d starts", boxes.starts)
	}
}

// TestInfrastructureRunsAgain, and is no verdict for anybody else.
func TestInfrastructureRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		boxes := &fakeBoxes{image: "sha256:aa", start: func(context.Context, int) error {
			if down {
				return failing(env.DaemonUnavailable)
			}
			return nil
		}}
		b := newBench(t, identified{boxes})
		if s := b.run(t.Context(), predict(t, fix)); s.IsComplete() {
			t.Fatalf("complete: %v", s.ByClass)
		}
		down = false
		if s := b.run(t.Context(), predict(t, fix)); !s.IsComplete() || s.Count(verdicts.Resolved) != 1 || boxes.starts != 4 {
			t.Errorf("%v after %d starts", s.ByClass, boxes.starts)
		}
	})
}

// TestInterrupted: what was not finished leaves no record, and runs again.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		boxes := &fakeBoxes{image: "sha256:aa"}
		boxes.play = func(ctx context.Context, _ *fakeBox, n int, c env.Command) (env.Result, bool, error) {
			if n != 2 || !is(c, "/bin/bash /eval.sh") {
				return env.Result{}, false, nil
			}
			cancel(stop)
			<-ctx.Done()
			return env.Result{ExitCode: -1}, true, context.Cause(ctx)
		}
		b := newBench(t, identified{boxes})
		all := rows(t)
		tasks := []evaluate.Task{
			evaluate.NewTask(all[0], "m", []byte(fix)), evaluate.NewTask(all[1], "m", []byte(fix)), evaluate.NewTask(all[2], "m", []byte(fix)),
		}
		s := b.run(ctx, tasks...)
		if diff := cmp.Diff([]string{all[1].ID, all[2].ID}, s.Unfinished); diff != "" || s.Count(verdicts.Resolved) != 1 || s.IsComplete() {
			t.Fatalf("unfinished %v, %v", s.Unfinished, s.ByClass)
		}
		if boxes.open != 0 {
			t.Errorf("%d sandboxes are left", boxes.open)
		}
		boxes.play = nil
		s = b.run(t.Context(), tasks...)
		if s.Count(verdicts.Resolved) != 3 || s.Reused != 1 || boxes.starts != 4 {
			t.Errorf("%v, %d reused, %d starts", s.ByClass, s.Reused, boxes.starts)
		}
		b.checkOfficial(s, tasks...)
	})
}

// TestNamesAreReserved: no instance is called as a file of the run.
func TestNamesAreReserved(t *testing.T) {
	b := newBench(t, identified{&fakeBoxes{image: "sha256:aa"}})
	b.run(t.Context(), predict(t, fix))
	entries, err := os.ReadDir(b.dir)
	if err != nil || len(entries) < 5 {
		t.Fatalf("the folder has %v, %v", entries, err)
	}
	for _, e := range entries {
		if datasets.CheckID(e.Name()) == nil && e.Name() != "m.r1.json" { // which a model and a run id name
			t.Errorf("an instance may be called %s", e.Name())
		}
	}
}

// TestUnstable: what failed is run again, and what then ends otherwise is told
// apart.
func TestUnstable(t *testing.T) {
	// The n-th run of the script ends as the n-th letter says.
	play := func(ends string) *fakeBoxes {
		return script(func(in datasets.Instance, n int, c env.Command) (env.Result, error) {
			switch ends[n-1] {
			case 'P':
				return say(c, logOf(in, "PASSED", 0), env.Result{})
			case 'T':
				return say(c, "", env.Result{ExitCode: -1, TimedOut: true})
			case 'I':
				return env.Result{}, failing(env.ContainerDied)
			}
			return say(c, logOf(in, "FAILED", 1), env.Result{ExitCode: 1})
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
		{"FIIIF", 2, verdicts.Unresolved, "FIIIF"}, // what the machine spoils is a try, and proves nothing
		{"FIP", 1, verdicts.Unstable, "FIP"},
	} {
		for _, later := range []bool{false, true} {
			name := c.ends
			if later {
				name += ", in a later session"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					boxes := play(c.ends)
					b := newBench(t, identified{boxes})
					if later {
						b.run(t.Context(), predict(t, fix))
					}
					b.config.RerunFailed = c.times
					s := b.run(t.Context(), predict(t, fix))
					if s.Count(c.class) != 1 || boxes.starts != len(c.ran) || len(s.Records[0].Runs) != len(c.ran) {
						t.Fatalf("%v after %d starts; want %s after %s", s.ByClass, boxes.starts, c.class, c.ran)
					}
					r := s.Records[0]
					for i, a := range r.Runs[1:] {
						if a.Purpose != verdicts.ForRerun {
							t.Errorf("run %d is for %s", i+2, a.Purpose)
						}
						if a.Dir == "" {
							continue // its files were replaced by the next try's
						}
						if _, err := os.Stat(filepath.Join(b.dir, a.Dir, "run_instance.log")); err != nil {
							t.Error(err)
						}
					}
					// The same again asks for no more.
					if starts := boxes.starts; !strings.Contains(c.ends, "I") {
						if b.run(t.Context(), predict(t, fix)); boxes.starts != starts {
							t.Errorf("%d more starts", boxes.starts-starts)
						}
					}
					// The official verdict stays the first one.
					if r.Runs[0].Dir != strings.TrimSuffix(tree, "/") {
						t.Errorf("the first run's files are in %s", r.Runs[0].Dir)
					}
					b.checkOfficial(s, predict(t, fix))
					// It stays what it is, without another run.
					if c.class == verdicts.Unstable {
						if s := b.run(t.Context(), predict(t, fix)); s.Count(verdicts.Unstable) != 1 || boxes.starts != len(c.ran) {
							t.Errorf("later: %v after %d starts", s.ByClass, boxes.starts)
						}
					}
				})
			})
		}
	}
}

// TestWithoutSuspect: what touches the tests is dropped in a run of its own.
func TestWithoutSuspect(t *testing.T) {
	const cheat = "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n+++ b/conftest.py\n@@ -0,0 +1 @@\n+cheat\n"
	// Tests pass where conftest.py is in the patch.
	cheated := script(nil)
	cheated.play = func(_ context.Context, b *fakeBox, _ int, c env.Command) (env.Result, bool, error) {
		if !is(c, "/bin/bash /eval.sh") {
			return env.Result{}, false, nil
		}
		status, code := "FAILED", 1
		if strings.Contains(b.files["/tmp/patch.diff"], "conftest.py") {
			status, code = "PASSED", 0
		}
		res, err := say(c, logOf(b.in, status, code), env.Result{})
		return res, true, err
	}
	b := newBench(t, identified{cheated})
	s := b.run(t.Context(), predict(t, fix+cheat))
	r := s.Records[0]
	if r.Class != verdicts.Resolved || r.ResolvedWithoutSuspect == nil || *r.ResolvedWithoutSuspect {
		t.Fatalf("%s, without %v", r.Class, r.ResolvedWithoutSuspect)
	}
	if diff := cmp.Diff([]string{"minidemo__ledger-17"}, s.ChangedWithoutSuspect); diff != "" || s.Flags["test_setup"] != 1 {
		t.Errorf("swayed %v, flags %v", s.ChangedWithoutSuspect, s.Flags)
	}
	if cheated.starts != 2 || cheated.boxes[1].files["/tmp/patch.diff"] != fix || r.Runs[1].Purpose != verdicts.WithoutSuspect {
		t.Errorf("%d starts, %+v", cheated.starts, r.Runs)
	}
	if b.file(tree+"patch.diff") != fix+cheat {
		t.Error("the official files are of the run without")
	}
	// The rest alone is a patch like any other.
	if s := b.run(t.Context(), evaluate.NewTask(row(t), "honest", []byte(fix))); cheated.starts != 3 || s.Count(verdicts.Unresolved) != 1 ||
		b.official("honest", "minidemo__ledger-17") != judged || b.file("logs/run_evaluation/r1/honest/minidemo__ledger-17/patch.diff") != fix {
		t.Errorf("the rest alone: %d starts, %v", cheated.starts, s.ByClass)
	}
	// Without anything left there is nothing to run.
	s = b.run(t.Context(), predict(t, cheat))
	if r := s.Records[0]; cheated.starts != 4 || r.ResolvedWithoutSuspect == nil || *r.ResolvedWithoutSuspect {
		t.Errorf("%d starts, without %v", cheated.starts, r.ResolvedWithoutSuspect)
	}
	// A row's own solution is above it.
	in := row(t)
	in.Patch = fix + cheat
	if s := b.run(t.Context(), evaluate.GoldTask(in)); len(s.Records[0].Flags) > 0 || s.Records[0].ResolvedWithoutSuspect != nil {
		t.Errorf("gold: %+v", s.Records[0])
	}
}

// TestQuarantine: instances that this machine cannot judge are left out of the
// second denominator, whichever came first.
func TestQuarantine(t *testing.T) {
	all := rows(t)
	boxes := script(func(in datasets.Instance, _ int, c env.Command) (env.Result, error) {
		if in.ID == all[0].ID {
			return say(c, logOf(in, "FAILED", 1), env.Result{})
		}
		return say(c, logOf(in, "PASSED", 0), env.Result{})
	})
	shared := filepath.Join(t.TempDir(), "shared")
	b := newBench(t, identified{boxes})
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
	other := newBench(t, identified{boxes})
	other.config.Cache = shared
	other.run(t.Context(), golds...)
	s = b.run(t.Context(), tasks...)
	want := []evaluate.Quarantined{{Instance: all[0].ID, Gold: verdicts.Unresolved}}
	if diff := cmp.Diff(want, s.Quarantined); diff != "" || s.Trusted != 4 || s.TrustedResolved != 4 {
		t.Errorf("%d of %d (-want +got):\n%s", s.TrustedResolved, s.Trusted, diff)
	}
}

// TestSubmit refuses what cannot be evaluated, before anything runs.
func TestSubmit(t *testing.T) {
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
			boxes := &fakeBoxes{}
			b := newBench(t, boxes)
			task := evaluate.NewTask(good, "m", []byte(fix))
			c.change(&task)
			if err := b.config.CheckTask(task); !errors.Is(err, c.want) {
				t.Errorf("check: %v", err)
			}
			folder, err := runner.Open(b.dir)
			if err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			b.config.Folder, b.config.Log = folder, runner.NewLog(folder, nil)
			s, err := evaluate.Run(t.Context(), b.config, []evaluate.Task{task})
			if !errors.Is(err, c.want) || boxes.starts > 0 || s.Submitted != 0 {
				t.Errorf("run: %v, %d starts", err, boxes.starts)
			}
		})
	}
}
