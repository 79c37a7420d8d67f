package bubblewrap_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/bubblewrap"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/internal/require"
)

func TestMain(m *testing.M) {
	runOwner()
	goleak.VerifyTestMain(m)
}

// openHost opens the host, or skips the test if bwrap is not installed.
func openHost(t testing.TB) *bubblewrap.Host {
	t.Helper()
	requireBwrap(t)
	host, err := bubblewrap.Open(t.Context(), childtest.Program(t))
	require.NoError(t, err)
	return host
}

func start(t testing.TB, host *bubblewrap.Host, c bubblewrap.Config) *bubblewrap.Sandbox {
	t.Helper()
	sandbox, err := host.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := sandbox.Close(t.Context()); err != nil { // Close must work although t.Context() has ended
			t.Errorf("close: %v", err)
		}
	})
	return sandbox
}

// sh runs a script, which must exit with 0, and returns its output.
func sh(t testing.TB, sandbox env.Environment, script string) string {
	t.Helper()
	r, err := sandbox.Execute(t.Context(), env.Command{Script: script})
	if err != nil || r.ExitCode != 0 {
		t.Errorf("%.100q: exit code %d, failure %q, error %v, output %q", script, r.ExitCode, r.Failure, err, r.Output)
	}
	return string(r.Output)
}

// runOwner runs the test binary as the process to be killed by TestKilledOwner.
func runOwner() {
	childtest.RunOwner(func(ctx context.Context, p *child.Program, dir string) (env.Environment, error) {
		host, err := bubblewrap.Open(ctx, p)
		if err != nil {
			return nil, err
		}
		return host.Start(ctx, bubblewrap.Config{Dir: dir})
	})
}

// TestKilledOwner: when mini is killed, its sandboxes are killed, too.
func TestKilledOwner(t *testing.T) {
	requireBwrap(t)
	childtest.RunOrphanTest(t)
}

// requireBwrap skips the test if bubblewrap is not installed, or fails it if
// MINI_REQUIRE_BWRAP=1 is set.
func requireBwrap(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err == nil {
		return
	}
	if os.Getenv("MINI_REQUIRE_BWRAP") == "1" {
		t.Fatal("bwrap is missing (MINI_REQUIRE_BWRAP=1)")
	}
	t.Skip("bwrap is missing; scripts/setup.sh test installs it")
}
