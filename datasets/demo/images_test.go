package demo_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// TestVerdictsOfTwo runs the eval script of two rows in fresh containers of their images: without
// a patch and with the maintainers' patch.
func TestVerdictsOfTwo(t *testing.T) {
	engine := dockertest.Engine(t)
	for _, in := range instances(t)[:2] {
		t.Run(in.ID, func(t *testing.T) {
			t.Parallel()
			checkImage(t, engine, in)
		})
	}
}

// checkImage checks the repository of an image and the outcomes of its tests before and after the
// maintainers' patch.
func checkImage(t *testing.T, engine *docker.Engine, in datasets.Instance) {
	t.Helper()
	needImage(t, in.Image)
	box := open(t, engine, in)
	if head := run(t, box, "git rev-parse HEAD~1"); strings.TrimSpace(string(head.Output)) != in.BaseCommit {
		t.Fatalf("%s contains another repository (base commit %s); run scripts/images.sh to build it again", in.Image, head.Output)
	}
	if before := outcomes(t, box, in, ""); !isBug(before, in) {
		t.Errorf("before any patch: %v", before)
	}
	if gold := outcomes(t, open(t, engine, in), in, in.Patch); !isFixed(gold, in) {
		t.Errorf("with the maintainers' patch: %v", gold)
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
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, box.Close(context.WithoutCancel(t.Context()))) })
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
	require.NoError(t, err)
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
