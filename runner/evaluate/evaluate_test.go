package evaluate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner/evaluate"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
)

const fix = "diff --git a/ledger/money.py b/ledger/money.py\n--- a/ledger/money.py\n+++ b/ledger/money.py\n@@ -1 +1 @@\n-a\n+b\n"

// Lists of the files in the official tree.
var (
	none    = ""
	early   = "run_instance.log"
	patched = "patch.diff run_instance.log"
	ran     = "eval.sh patch.diff run_instance.log test_output.txt"
	graded  = "eval.sh patch.diff report.json run_instance.log test_output.txt"
)

// isCommand reports whether a command, joined with spaces, equals text.
func isCommand(c env.Command, text string) bool {
	return strings.Join(append(append([]string{}, c.Interpreter...), c.Script), " ") == text
}

// scriptSandboxes returns sandboxes in which play runs the evaluation script.
func scriptSandboxes(play func(in datasets.Instance, n int, c env.Command) (env.Result, error)) *fakeSandboxes {
	f := &fakeSandboxes{image: "sha256:aa"}
	f.execute = func(_ context.Context, b *fakeSandbox, n int, c env.Command) (env.Result, bool, error) {
		if !isCommand(c, "/bin/bash /eval.sh") {
			return env.Result{}, false, nil
		}
		res, err := play(b.in, n, c)
		return res, true, err
	}
	return f
}

func newEnvError(status env.Status) error {
	return &env.Error{Status: status, Op: "do", Hint: "mend it", Err: errors.New("it failed")}
}

// TestClasses checks every line of the table in the package's comment.
func TestClasses(t *testing.T) {
	lost := func(status env.Status) *fakeSandboxes {
		return scriptSandboxes(func(_ datasets.Instance, _ int, c env.Command) (env.Result, error) {
			res, _ := respond(c, "half a log", env.Result{ExitCode: -1})
			return res, newEnvError(status)
		})
	}
	noWay := &fakeSandboxes{image: "sha256:aa", execute: func(_ context.Context, _ *fakeSandbox, _ int, c env.Command) (env.Result, bool, error) {
		if c.Interpreter[0] == "git" && c.Interpreter[1] == "apply" || c.Interpreter[0] == "patch" {
			return env.Result{ExitCode: 1, Output: []byte("error: " + c.Interpreter[0] + "\nhunks failed\n")}, true, nil
		}
		return env.Result{}, false, nil
	}}
	for _, c := range []struct {
		name   string
		boxes  *fakeSandboxes
		patch  []byte
		class  verdicts.Class
		files  string
		starts int
		status env.Status
		reason string
	}{
		{"null", &fakeSandboxes{}, nil, verdicts.Empty, none, 0, "", "no patch"},
		{"empty", &fakeSandboxes{}, []byte{}, verdicts.Empty, none, 0, "", "no patch"},
		{"resolved", &fakeSandboxes{}, []byte(fix), verdicts.Resolved, graded, 1, "", ""},
		{"unresolved", scriptSandboxes(func(in datasets.Instance, _ int, c env.Command) (env.Result, error) {
			return respond(c, logOf(in, "FAILED", 1), env.Result{ExitCode: 1})
		}), []byte(fix), verdicts.Unresolved, graded, 1, "", "tests failed"},
		{"passes that the exit code denies", scriptSandboxes(func(in datasets.Instance, _ int, c env.Command) (env.Result, error) {
			return respond(c, logOf(in, "PASSED", 1), env.Result{})
		}), []byte(fix), verdicts.Unresolved, graded, 1, "", "no usable test results"},
		{"no log", scriptSandboxes(func(_ datasets.Instance, _ int, c env.Command) (env.Result, error) {
			return respond(c, "", env.Result{})
		}), []byte(fix), verdicts.Unresolved, graded, 1, "", "no usable test results"},
		{
			"no image", &fakeSandboxes{start: func(context.Context, int) error { return newEnvError(env.ImageNotFound) }},
			[]byte(fix), verdicts.Infrastructure, early, 1, env.ImageNotFound, "it failed",
		},
		{
			"no engine", &fakeSandboxes{start: func(context.Context, int) error { return newEnvError(env.DaemonUnavailable) }},
			[]byte(fix), verdicts.Infrastructure, early, 3, env.DaemonUnavailable, "it failed",
		},
		{"engine is back", &fakeSandboxes{start: func(_ context.Context, n int) error {
			if n < 3 {
				return newEnvError(env.DaemonUnavailable)
			}
			return nil
		}}, []byte(fix), verdicts.Resolved, graded, 3, "", ""},
		{"container killed", lost(env.ContainerDied), []byte(fix), verdicts.Infrastructure, ran, 3, env.ContainerDied, "it failed"},
		{"sandbox disrupted", lost(env.SandboxDisrupted), []byte(fix), verdicts.Infrastructure, ran, 5, env.SandboxDisrupted, "it failed"},
		{"disruption is over", &fakeSandboxes{start: func(_ context.Context, n int) error {
			if n < 3 {
				return newEnvError(env.SandboxDisrupted)
			}
			return nil
		}}, []byte(fix), verdicts.Resolved, graded, 3, "", ""},
		{"forged frames", lost(env.ProtocolViolation), []byte(fix), verdicts.Infrastructure, ran, 3, env.ProtocolViolation, "it failed"},
		{"engine's disk full", lost(env.HostDiskFull), []byte(fix), verdicts.Infrastructure, ran, 3, env.HostDiskFull, "it failed"},
		{"log unwritable", scriptSandboxes(func(datasets.Instance, int, env.Command) (env.Result, error) {
			return env.Result{ExitCode: -1}, fmt.Errorf("%w: no space", env.ErrSink)
		}), []byte(fix), verdicts.Infrastructure, ran, 3, evaluate.LogUnwritable, "no space"},
		{"no git", &fakeSandboxes{execute: func(_ context.Context, _ *fakeSandbox, _ int, c env.Command) (env.Result, bool, error) {
			return env.Result{ExitCode: -1, Failure: "There is no git."}, c.Interpreter[0] == "git", nil
		}}, []byte(fix), verdicts.Infrastructure, patched, 1, env.StartFailed, "no git"},
		{"git hangs", &fakeSandboxes{execute: func(_ context.Context, _ *fakeSandbox, _ int, c env.Command) (env.Result, bool, error) {
			return env.Result{ExitCode: -1, TimedOut: true}, c.Interpreter[0] == "git", nil
		}}, []byte(fix), verdicts.Infrastructure, patched, 3, "", "timeout after"},
		{"does not apply", noWay, []byte(fix), verdicts.ApplyFailed, patched, 1, "", "hunks failed"},
		{"timed out", scriptSandboxes(func(_ datasets.Instance, _ int, c env.Command) (env.Result, error) {
			return respond(c, "half a log", env.Result{ExitCode: -1, TimedOut: true})
		}), []byte(fix), verdicts.TimedOut, ran, 1, "", "exceeded its timeout of 30m"},
		{"out of memory, and unresolved", scriptSandboxes(func(in datasets.Instance, _ int, c env.Command) (env.Result, error) {
			return respond(c, logOf(in, "FAILED", 137), env.Result{ExitCode: 1, OOMKilled: 2})
		}), []byte(fix), verdicts.Infrastructure, graded, 3, "", "the kernel killed 2 processes"},
		{"out of memory, and resolved", scriptSandboxes(func(in datasets.Instance, _ int, c env.Command) (env.Result, error) {
			return respond(c, logOf(in, "PASSED", 0), env.Result{OOMKilled: 1})
		}), []byte(fix), verdicts.Resolved, graded, 1, "", ""},
		{
			"a mistake in mini", scriptSandboxes(func(datasets.Instance, int, env.Command) (env.Result, error) { panic("oh") }),
			[]byte(fix), verdicts.Infrastructure, ran, 1, "", "internal error",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newEvaluation(t, c.boxes)
				b.config.Retries.MaxDisruptions = 2
				s := b.run(t.Context(), evaluate.NewTask(row(t), "some/model", c.patch))
				if len(s.Records) != 1 || s.Count(c.class) != 1 {
					t.Fatalf("records %+v, by class %v; want %s", s.Records, s.ByClass, c.class)
				}
				r := s.Records[0]
				if c.boxes.starts != c.starts || c.boxes.openCount != 0 || len(r.Runs) != c.starts {
					t.Errorf("%d sandboxes started, %d left open, %d runs recorded; want %d", c.boxes.starts, c.boxes.openCount, len(r.Runs), c.starts)
				}
				if !strings.Contains(r.Reason, c.reason) || c.reason == "" && r.Reason != "" {
					t.Errorf("the reason is %q, want %q in it", r.Reason, c.reason)
				}
				if len(r.Runs) > 0 && r.Runs[len(r.Runs)-1].Status != c.status {
					t.Errorf("status %q, want %q", r.Runs[len(r.Runs)-1].Status, c.status)
				}
				if complete := c.class != verdicts.Infrastructure; s.IsComplete() != complete {
					t.Errorf("complete: %v", s.IsComplete())
				}
				if diff := cmp.Diff(c.files, b.official("some__model", "minidemo__ledger-17")); diff != "" {
					t.Errorf("files (-want +got):\n%s", diff)
				}
				b.checkOfficial(s, evaluate.NewTask(row(t), "some/model", c.patch))
			})
		})
	}
}

// official lists the files of the official tree.
func (b *evaluation) official(model, id string) string {
	b.t.Helper()
	entries, err := os.ReadDir(filepath.Join(b.dir, "logs", "run_evaluation", "r1", model, id))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// checkOfficial compares the official summary with the one that Summarize computes
// from the files.
func (b *evaluation) checkOfficial(s evaluate.Summary, tasks ...evaluate.Task) {
	b.t.Helper()
	run, err := grade.NewLayout(b.dir, "r1")
	if err != nil {
		b.t.Fatal(err)
	}
	var predictions []grade.Prediction
	var ids []string
	for _, p := range tasks {
		predictions = append(predictions, grade.Prediction{InstanceID: p.Instance.ID, Model: p.Model, Empty: len(p.Patch) == 0})
		ids = append(ids, p.Instance.ID)
	}
	want, err := run.Summarize(ids, predictions)
	if err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want.JSON()), b.file(s.OfficialPath)); diff != "" {
		b.t.Errorf("the summary is not that of the files (-files +summary):\n%s", diff)
	}
}

func (b *evaluation) file(path string) string {
	b.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.dir, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

const tree = "logs/run_evaluation/r1/m/minidemo__ledger-17/"

// TestOrder checks that the commands in the sandbox and their order equal those of the
// official harness.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name     string
		succeeds string // the apply command that succeeds
		want     []string
		logged   string
	}{
		{"at once", "git apply --verbose /tmp/patch.diff", []string{"git apply --verbose /tmp/patch.diff"}, ">>>>> Applied Patch:\nit works"},
		{"3way", "git apply --verbose --3way /tmp/patch.diff", []string{
			"git apply --verbose /tmp/patch.diff", "RESET", "git apply --verbose --3way /tmp/patch.diff",
		}, ">>>>> Applied Patch:\nit works"},
		{"reject", "git apply --verbose --reject /tmp/patch.diff", []string{
			"git apply --verbose /tmp/patch.diff", "RESET", "git apply --verbose --3way /tmp/patch.diff", "RESET",
			"git apply --verbose --reject /tmp/patch.diff",
		}, ">>>>> Applied Patch:\nit works"},
		{"patch", "patch --batch --forward --fuzz=5 -p1 -i /tmp/patch.diff", []string{
			"git apply --verbose /tmp/patch.diff", "RESET", "git apply --verbose --3way /tmp/patch.diff", "RESET",
			"git apply --verbose --reject /tmp/patch.diff", "RESET", "patch --batch --forward --fuzz=5 -p1 -i /tmp/patch.diff",
		}, ">>>>> Applied Patch:\nit works"},
		{"there already", "git apply --check --reverse /tmp/patch.diff", []string{
			"git apply --verbose /tmp/patch.diff", "RESET", "git apply --verbose --3way /tmp/patch.diff", "RESET",
			"git apply --verbose --reject /tmp/patch.diff", "RESET", "patch --batch --forward --fuzz=5 -p1 -i /tmp/patch.diff",
			"git apply --check --reverse /tmp/patch.diff",
		}, ">>>>> Applied Patch:\nit works"},
		{"never", "", []string{
			"git apply --verbose /tmp/patch.diff", "RESET", "git apply --verbose --3way /tmp/patch.diff", "RESET",
			"git apply --verbose --reject /tmp/patch.diff", "RESET", "patch --batch --forward --fuzz=5 -p1 -i /tmp/patch.diff",
			"git apply --check --reverse /tmp/patch.diff",
		}, ">>>>> Patch Apply Failed:\nno: patch --batch --forward --fuzz=5 -p1 -i"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sandboxes := &fakeSandboxes{image: "sha256:aa", execute: func(_ context.Context, _ *fakeSandbox, _ int, cmd env.Command) (env.Result, bool, error) {
				if cmd.Script != "/tmp/patch.diff" {
					return env.Result{}, false, nil
				}
				if cmd.Dir != "/testbed" {
					t.Errorf("%v runs in %q", cmd.Interpreter, cmd.Dir)
				}
				if isCommand(cmd, c.succeeds) {
					return env.Result{Output: []byte("it works\n")}, true, nil
				}
				return env.Result{ExitCode: 128, Output: []byte("no: " + strings.Join(cmd.Interpreter, " "))}, true, nil
			}}
			b := newEvaluation(t, sandboxes)
			patch := fix + "no newline\r\nat the end \xf0"
			s := b.run(t.Context(), evaluate.NewTask(row(t), "m", []byte(patch)))
			const diff = "git -c core.fileMode=false diff"
			want := append([]string{}, c.want...)
			if c.succeeds != "" {
				want = append(want, diff, "/bin/bash /eval.sh", diff)
			}
			for i := range want {
				want[i] = strings.Replace(want[i], "RESET", "/bin/bash -c git checkout -- . ; git clean -fd", 1)
			}
			if d := cmp.Diff(want, sandboxes.started[0].commands); d != "" {
				t.Errorf("commands (-want +got):\n%s", d)
			}
			if sandboxes.started[0].files["/tmp/patch.diff"] != patch || b.file(tree+"patch.diff") != patch {
				t.Error("the patch is not what it was")
			}
			if log := b.file(tree + "run_instance.log"); !strings.Contains(log, c.logged) {
				t.Errorf("the log lacks %q:\n%s", c.logged, log)
			}
			if with := s.Records[0].Runs[0].AppliedWith; with != "" && with+" /tmp/patch.diff" != c.succeeds {
				t.Errorf("applied with %q, want %q", with, c.succeeds)
			}
		})
	}
}

// TestTimeoutText checks the end of the log after a timeout.
func TestTimeoutText(t *testing.T) {
	sandboxes := scriptSandboxes(func(_ datasets.Instance, _ int, c env.Command) (env.Result, error) {
		if c.Timeout.Seconds() != 1800 {
			t.Errorf("the timeout is %s", c.Timeout)
		}
		return respond(c, "half a log \xe2\x82", env.Result{ExitCode: -1, TimedOut: true})
	})
	b := newEvaluation(t, sandboxes)
	s := b.run(t.Context(), evaluate.NewTask(row(t), "m", []byte(fix)))
	want := "half a log \ufffd\n\nTimeout error: 1800 seconds exceeded."
	if diff := cmp.Diff(want, b.file(tree+"test_output.txt")); diff != "" {
		t.Error(diff)
	}
	if r := s.Records[0]; r.FailureReason != "tests_timed_out" || r.FailureTier != grade.TierAmbiguous {
		t.Errorf("failure %q, %q", r.FailureReason, r.FailureTier)
	}
}
