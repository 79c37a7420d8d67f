package envtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env"
)

// Run holds every case against fresh environments. open returns one that is
// up; Run closes it.
func Run(t *testing.T, open func(t *testing.T) env.Environment) {
	t.Helper()
	for name, group := range map[string]func(*testing.T, func(*testing.T) env.Environment){
		"Outputs":     outputs,
		"Ends":        ends,
		"Settings":    settings,
		"Scripts":     scripts,
		"Limits":      limits,
		"Submissions": submissions,
		"Timeouts":    timeouts,
		"Kept":        keptAlive,
		"Background":  background,
		"Cancel":      cancels,
		"Turns":       turns,
		"Closing":     closing,
	} {
		t.Run(name, func(t *testing.T) { group(t, open) })
	}
}

// patience bounds everything that is to happen soon.
const patience = 30 * time.Second

// box is an environment with the checks of a test.
type box struct {
	env.Environment
	t *testing.T
}

func fresh(t *testing.T, open func(*testing.T) env.Environment) box {
	t.Helper()
	e := open(t)
	t.Cleanup(func() {
		if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return box{e, t}
}

// run executes c, which has a timeout of its own or the suite's patience, and
// fails the test when the sandbox does.
func (b box) run(c env.Command) env.Result {
	b.t.Helper()
	if c.Timeout == 0 {
		c.Timeout = patience
	}
	r, err := b.Execute(b.t.Context(), c)
	if err != nil {
		b.t.Fatalf("execute %.80q: %v", c.Script, err)
	}
	return r
}

// sh runs a script that must succeed and returns its output, trimmed.
func (b box) sh(script string) string {
	b.t.Helper()
	r := b.run(env.Command{Script: script})
	if r.ExitCode != 0 || r.TimedOut {
		b.t.Fatalf("%.80q: exit code %d, failure %q, output %.200q", script, r.ExitCode, r.Failure, r.Output)
	}
	return strings.TrimSpace(string(r.Output))
}

// folder makes a directory in the sandbox that is gone after the test.
func (b box) folder() string {
	b.t.Helper()
	dir := b.sh("mktemp -d /tmp/mini-envtest-XXXXXX")
	b.t.Cleanup(func() {
		_, err := b.Execute(context.WithoutCancel(b.t.Context()), env.Command{Script: "rm -rf " + dir, Timeout: patience})
		if err != nil && !errors.Is(err, env.ErrClosed) {
			b.t.Errorf("remove %s: %v", dir, err)
		}
	})
	return dir
}

// runs reports whether the process whose id a file holds is alive in the
// sandbox; what only waits to be reaped is not.
func (b box) runs(pidFile string) bool {
	b.t.Helper()
	return b.sh(`pid=$(cat `+pidFile+`) && if read -r stat < /proc/$pid/stat; then
		case "${stat##*) }" in [ZX]*) echo dead;; *) echo alive;; esac; else echo dead; fi 2>/dev/null`) == "alive"
}
