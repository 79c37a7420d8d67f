package bubblewrap_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/bubblewrap"
	"github.com/minibench/mini/env/envtest"
	"github.com/minibench/mini/env/helper/child/childtest"
)

func TestMain(m *testing.M) {
	owner()
	goleak.VerifyTestMain(m)
}

// machine skips the test where there is no bwrap; where there is one, it must
// work.
func machine(t testing.TB) *bubblewrap.Machine {
	t.Helper()
	requireBwrap(t)
	m, err := bubblewrap.Open(t.Context(), childtest.Program(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func start(t testing.TB, m *bubblewrap.Machine, c bubblewrap.Config) *bubblewrap.Sandbox {
	t.Helper()
	box, err := m.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(t.Context()); err != nil { // the ended context must not matter
			t.Errorf("close: %v", err)
		}
	})
	return box
}

// sh runs a script that is to exit with 0, and returns its output.
func sh(t testing.TB, box env.Environment, script string) string {
	t.Helper()
	r, err := box.Execute(t.Context(), env.Command{Script: script})
	if err != nil || r.ExitCode != 0 {
		t.Errorf("%.100q: exit code %d, failure %q, error %v, output %q", script, r.ExitCode, r.Failure, err, r.Output)
	}
	return string(r.Output)
}

func TestConformance(t *testing.T) {
	m := machine(t)
	envtest.Run(t, func(t *testing.T) env.Environment {
		t.Helper()
		return start(t, m, bubblewrap.Config{Dir: t.TempDir()})
	},
		envtest.Lacks(envtest.ProcessLimit, "bubblewrap bounds no resources"),
		envtest.Lacks(envtest.OtherUsers, "a sandbox of bubblewrap's has one user"))
}
