package demo_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// TestVerdicts runs the eval script of every row in fresh containers of its image:
// without a patch, with the maintainers' patch, and with the patch that the scripted
// replies submit. It also counts the mistakes that the replies demonstrate.
func TestVerdicts(t *testing.T) {
	engine := dockertest.Engine(t)
	var all replayResult
	replayed := 0
	for _, in := range instances(t) {
		t.Run(in.ID, func(t *testing.T) {
			needImage(t, in.Image)
			if head := run(t, open(t, engine, in), "git rev-parse HEAD~1"); strings.TrimSpace(string(head.Output)) != in.BaseCommit {
				t.Fatalf("%s contains another repository (base commit %s); run scripts/images.sh to build it again", in.Image, head.Output)
			}
			if before := outcomes(t, open(t, engine, in), in, ""); !isBug(before, in) {
				t.Errorf("before any patch: %v", before)
			}
			if gold := outcomes(t, open(t, engine, in), in, in.Patch); !isFixed(gold, in) {
				t.Errorf("with the maintainers' patch: %v", gold)
			}
			result := replay(t, open(t, engine, in), in)
			if result.replies < 4 || result.replies > 8 || result.cost <= 0 {
				t.Errorf("%d replies for %v dollars", result.replies, result.cost)
			}
			if fixed := outcomes(t, open(t, engine, in), in, result.submission); result.submission == "" || !isFixed(fixed, in) {
				t.Errorf("with the submission: %v\n%s", fixed, result.submission)
			}
			replayed++
			all.formatErrors += result.formatErrors
			all.failures += result.failures
			all.timeouts += result.timeouts
		})
	}
	if t.Failed() || replayed < len(instances(t)) {
		return // the counts would only repeat earlier errors
	}
	want := replayResult{formatErrors: 2, failures: 2, timeouts: 1}
	if diff := cmp.Diff(want, all, cmp.AllowUnexported(replayResult{})); diff != "" {
		t.Errorf("mistakes in all instances (-want +got):\n%s", diff)
	}
}

// needImage skips the test if the image is missing. It fails the test instead if
// MINI_REQUIRE_DOCKER=1 is set.
func needImage(t *testing.T, name string) {
	t.Helper()
	_, err := dockertest.Client(t).ImageInspect(t.Context(), name)
	switch {
	case err == nil:
	case os.Getenv("MINI_REQUIRE_DOCKER") == "1":
		t.Fatalf("image %s is missing; run scripts/images.sh (MINI_REQUIRE_DOCKER=1): %v", name, err)
	default:
		t.Skipf("image %s is missing; run scripts/images.sh: %v", name, err)
	}
}

// open starts a container as the demo's configuration does.
func open(t *testing.T, engine *docker.Engine, in datasets.Instance) env.Environment {
	t.Helper()
	box, err := engine.Start(t.Context(), docker.Config{
		Image: in.ImageName(), Dir: "/testbed", Timeout: time.Minute, // for a busy machine
		Env: map[string]string{"BASH_ENV": "/root/.bashrc"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return box
}

var summary = regexp.MustCompile(`(?m)^(PASSED|FAILED|ERROR) (\S+)`)

// outcomes applies a patch, runs the eval script and reads pytest's summary.
func outcomes(t *testing.T, box env.Environment, in datasets.Instance, patch string) map[string]string {
	t.Helper()
	if patch != "" {
		if res := run(t, box, "git apply - <<'END_OF_PATCH'\n"+patch+"END_OF_PATCH\n"); res.ExitCode != 0 {
			t.Fatalf("the patch does not apply: %s", res.Output)
		}
	}
	res := run(t, box, in.EvalScript)
	_, log, started := strings.Cut(string(res.Output), "+ : '>>>>> Start Test Output'\n")
	log, _, ended := strings.Cut(log, "+ : '>>>>> End Test Output'\n")
	if !started || !ended {
		t.Fatalf("the log lacks a marker; exit code %d, signal %d, %d bytes in %v:\n%s", res.ExitCode, res.Signal, res.Bytes, res.Duration, res.Output)
	}
	byTest := map[string]string{}
	for _, m := range summary.FindAllStringSubmatch(log, -1) {
		byTest[m[2]] = m[1]
	}
	return byTest
}

func run(t *testing.T, box env.Environment, text string) env.Result {
	t.Helper()
	res, err := box.Execute(t.Context(), env.Command{Script: text, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if res.TimedOut {
		t.Fatalf("timed out after %v:\n%s", res.Duration, res.Output)
	}
	return res
}

func isBug(got map[string]string, in datasets.Instance) bool {
	return haveStatus(in.FailToPass, got, "FAILED") && haveStatus(in.PassToPass, got, "PASSED")
}

// isFixed reports whether all tests in the lists pass, and no other tests ran.
func isFixed(got map[string]string, in datasets.Instance) bool {
	return haveStatus(in.FailToPass, got, "PASSED") && haveStatus(in.PassToPass, got, "PASSED") &&
		len(got) == len(in.FailToPass)+len(in.PassToPass)
}

// haveStatus reports whether all tests have the same status.
func haveStatus(names []string, got map[string]string, want string) bool {
	for _, name := range names {
		if got[name] != want {
			return false
		}
	}
	return true
}
