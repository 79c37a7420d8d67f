package envtest

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env"
)

// Ability is something that not every environment has. The cases that need it
// are left out where it lacks.
type Ability string

// The abilities, each with what its cases do to the sandbox.
const (
	// OwnProcesses: PID 1 is the sandbox's own and survives all that commands do
	// to it, and nobody else's process is in sight. Cases signal everybody.
	OwnProcesses Ability = "processes of its own"
	// ProcessLimit: a bound on processes, of some hundreds. Cases set off fork
	// bombs; needs OwnProcesses as well.
	ProcessLimit Ability = "a bound on processes"
	// Shield: no command reaches into PID 1, root's neither. Cases try to write
	// to its pipes and to trace it; needs OwnProcesses as well.
	Shield Ability = "a shielded PID 1"
	// OtherUsers: commands are root and may become somebody else.
	OtherUsers Ability = "other users"
	// FileTransfer: the environment implements env.Files.
	FileTransfer Ability = "files in and out"
	// Tools: commands can ask, see env.Command.Tools.
	Tools Ability = "tools"
)

// Option says what is special about an environment.
type Option func(*suite)

// Lacks leaves out the cases that need an ability; why is what the skipped tests
// say, so it names the cause ("bubblewrap cannot limit processes").
func Lacks(a Ability, why string) Option {
	return func(s *suite) { s.lacks[a] = why }
}

// WithMemory gives the suite a way to open an environment with a bound on
// memory, of 64 to 256 MiB, whose commands are killed at it one by one. Without
// this option the cases about memory are left out.
func WithMemory(open func(t *testing.T) env.Environment) Option {
	return func(s *suite) { s.small = open }
}

// Apart says that sandboxes do not meet although their processes are in sight of
// each other, so that groups of cases may run side by side.
func Apart() Option {
	return func(s *suite) { s.apart = true }
}

// Long reports whether MINI_TEST_LONG=1 asks for the cases that take minutes.
func Long() bool { return os.Getenv("MINI_TEST_LONG") == "1" }

// suite is the environment under test, and what is known of it.
type suite struct {
	open  func(*testing.T) env.Environment
	small func(*testing.T) env.Environment // nil where memory has no bound
	lacks map[Ability]string
	apart bool // groups may run side by side
}

// Run holds every case against fresh environments. open returns one that is
// up, as it will be used; Run closes it. See the package's comment for what the
// environment needs, and Lacks for what it may do without.
func Run(t *testing.T, open func(t *testing.T) env.Environment, options ...Option) {
	t.Helper()
	s := suite{open: open, lacks: map[Ability]string{}}
	for _, o := range options {
		o(&s)
	}
	for _, group := range []struct {
		name  string
		cases func(*testing.T, suite)
	}{
		{"Outputs", outputs},
		{"Ends", ends},
		{"Settings", settings},
		{"Scripts", scripts},
		{"Limits", limits},
		{"Sinks", sinks},
		{"Watching", watching},
		{"Submissions", submissions},
		{"Timeouts", timeouts},
		{"Times", times},
		{"Kept", keptAlive},
		{"Users", users},
		{"Bombs", bombs},
		{"PID1", pid1},
		{"Memory", memory},
		{"Background", background},
		{"Cancel", cancels},
		{"Turns", turns},
		{"Crowd", crowd},
		{"Files", carries},
		{"Tools", tooling},
		{"Inside", inside},
		{"Closing", closing},
	} {
		t.Run(group.name, func(t *testing.T) {
			// Most groups wait most of the time; the crowd does not.
			if (s.apart || s.lacks[OwnProcesses] == "") && group.name != "Crowd" {
				t.Parallel()
			}
			group.cases(t, s)
		})
	}
}

// needs leaves a case out where the environment lacks an ability.
func (s suite) needs(t *testing.T, abilities ...Ability) {
	t.Helper()
	for _, a := range abilities {
		if why := s.lacks[a]; why != "" {
			t.Skipf("without %s: %s", a, why)
		}
	}
}

// patience bounds everything that is to happen soon.
const patience = 30 * time.Second

// box is an environment with the checks of a test.
type box struct {
	env.Environment
	t *testing.T
}

func (s suite) fresh(t *testing.T) box {
	t.Helper()
	return up(t, s.open)
}

func up(t *testing.T, open func(*testing.T) env.Environment) box {
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

// others counts the living processes of a sandbox with processes of its own,
// without PID 1 and the shell that counts.
func (b box) others() string {
	b.t.Helper()
	return b.sh(`n=0; for p in /proc/[0-9]*; do pid=${p#/proc/}; case $pid in 1|$$) continue;; esac
		read -r stat <$p/stat || continue; case "${stat##*) }" in [ZX]*) ;; *) n=$((n+1));; esac; done 2>/dev/null; echo $n`)
}
