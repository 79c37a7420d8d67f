package bubblewrap_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/bubblewrap"
	"github.com/minibench/mini/env/helper/child/childtest"
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
	if err != nil {
		t.Fatal(err)
	}
	return host
}

func start(t testing.TB, host *bubblewrap.Host, c bubblewrap.Config) *bubblewrap.Sandbox {
	t.Helper()
	sandbox, err := host.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
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
