package envtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env"
)

// Capability is a feature that not every environment has. The tests that need it are
// skipped if the environment lacks it.
type Capability string

// The capabilities, with the effects of their tests on the sandbox.
const (
	// OwnProcesses: the sandbox has its own PID namespace, whose PID 1 survives
	// everything that commands do, and no other processes are visible. Tests send
	// signals to all processes.
	OwnProcesses Capability = "processes of its own"
	// ProcessLimit: the number of processes is limited to some hundreds. Tests start
	// fork bombs; they need OwnProcesses as well.
	ProcessLimit Capability = "a bound on processes"
	// ShieldedInit: no command can access PID 1, not even as root. Tests try to write
	// to the pipes of PID 1 and to trace it; they need OwnProcesses as well.
	ShieldedInit Capability = "a shielded PID 1"
	// OtherUsers: commands run as root and can switch to other users.
	OtherUsers Capability = "other users"
	// FileTransfer: the environment implements env.Files.
	FileTransfer Capability = "files in and out"
	// Tools: commands can call tools (see env.Command.Tools).
	Tools Capability = "tools"
)

// Option adapts the suite to an environment.
type Option func(*suite)

// WithoutCapability skips the tests that need a capability; reason is the message of the skipped
// tests, such as "bubblewrap cannot limit processes".
func WithoutCapability(capability Capability, reason string) Option {
	return func(s *suite) { s.lacks[capability] = reason }
}

// WithMemory sets a function that opens an environment with a memory limit of 64 to
// 256 MiB, whose processes are killed individually when the limit is reached. Without
// this option the memory tests are skipped.
func WithMemory(open func(t *testing.T) env.Environment) Option {
	return func(s *suite) { s.openSmall = open }
}

// SharedProcessTable declares that sandboxes do not affect each other although they
// see each other's processes, so that groups of tests may run in parallel.
func SharedProcessTable() Option {
	return func(s *suite) { s.parallel = true }
}

// OnlyGroups runs only the groups of tests with these names, for an environment that
// claims no more than they test.
func OnlyGroups(names ...string) Option {
	return func(s *suite) { s.only = names }
}

// group is a group of tests, which is a subtest of Run.
type group struct {
	name string
	run  func(*testing.T, suite)
	own  bool // needs an environment that no other group uses
}

// suite holds the environment under test and its options.
type suite struct {
	open      func(*testing.T) env.Environment
	openSmall func(*testing.T) env.Environment // with a memory limit; may be nil
	lacks     map[Capability]string            // the reason for each missing capability
	parallel  bool                             // groups may run in parallel
	only      []string                         // the groups to run; empty for all
	common    env.Environment                  // of the groups that need none of their own
}

// Run runs all tests. open returns a new, running environment; Run closes it. Groups of
// tests that leave nothing behind share one. See the package comment for the
// requirements, and WithoutCapability for exceptions.
func Run(t *testing.T, open func(t *testing.T) env.Environment, options ...Option) {
	t.Helper()
	s := suite{open: open, lacks: map[Capability]string{}}
	for _, o := range options {
		o(&s)
	}
	common := startWith(t, open).Environment
	for _, group := range append([]group{
		{name: "Output", run: output},
		{name: "ExitCodes", run: exitCodes},
		{name: "Settings", run: settings},
		{name: "Scripts", run: scripts},
		{name: "OutputLimits", run: outputLimits},
		{name: "Sinks", run: sinks},
		{name: "OnOutput", run: onOutput},
		{name: "Submissions", run: submissions},
		{"Timeouts", timeouts, true},
		{"TimeoutDurations", timeoutDurations, true},
		{"EarlierProcesses", earlierProcesses, true},
		{"Users", users, true},
		{"ForkBombs", forkBombs, true},
		{"PID1", pid1, true},
		{"Memory", memory, true},
		{"Background", background, true},
		{"Cancel", cancellation, true},
		{"OneAtATime", oneAtATime, true},
		{"Concurrency", concurrency, true},
		{"Files", fileTransfer, true},
		{"Tools", toolCalls, true},
		{"Nested", nestedCommands, true},
		{"Bridge", bridges, true},
		{"Close", closeEnvironment, true},
	}, moreGroups()...) {
		if len(s.only) > 0 && !slices.Contains(s.only, group.name) {
			continue
		}
		t.Run(group.name, func(t *testing.T) {
			// Most groups are idle most of the time; Concurrency is not.
			if (s.parallel || s.lacks[OwnProcesses] == "") && group.name != "Concurrency" {
				t.Parallel()
			}
			s := s
			if !group.own {
				s.common = common
			}
			group.run(t, s)
		})
	}
}

// needs skips a test if the environment lacks one of the required capabilities.
func (s suite) needs(t *testing.T, required ...Capability) {
	t.Helper()
	for _, capability := range required {
		if reason := s.lacks[capability]; reason != "" {
			t.Skipf("without %s: %s", capability, reason)
		}
	}
}

// waitLimit is the timeout of everything that should happen soon.
const waitLimit = 30 * time.Second

// sandbox is an environment with test helpers.
type sandbox struct {
	env.Environment
	t *testing.T
}

func (s suite) start(t *testing.T) sandbox {
	t.Helper()
	if s.common != nil {
		return sandbox{s.common, t}
	}
	return startWith(t, s.open)
}

func startWith(t *testing.T, open func(*testing.T) env.Environment) sandbox {
	t.Helper()
	e := open(t)
	t.Cleanup(func() {
		if err := e.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return sandbox{e, t}
}

// run executes c and fails the test if Execute returns an error. The default timeout
// is waitLimit.
func (b sandbox) run(c env.Command) env.Result {
	b.t.Helper()
	if c.Timeout == 0 {
		c.Timeout = 4 * waitLimit
	}
	r, err := b.Execute(b.t.Context(), c)
	if err != nil {
		b.t.Fatalf("execute %.80q: %v", c.Script, err)
	}
	return r
}

// sh runs a script, which must succeed, and returns its trimmed output.
func (b sandbox) sh(script string) string {
	b.t.Helper()
	r := b.run(env.Command{Script: script})
	if r.ExitCode != 0 || r.TimedOut {
		b.t.Fatalf("%.80q: exit code %d, failure %q, output %.200q", script, r.ExitCode, r.Failure, r.Output)
	}
	return strings.TrimSpace(string(r.Output))
}

// tempDir creates a directory in the sandbox that is removed after the test.
func (b sandbox) tempDir() string {
	b.t.Helper()
	dir := b.sh("mktemp -d /tmp/mini-envtest-XXXXXX")
	b.t.Cleanup(func() {
		_, err := b.Execute(context.WithoutCancel(b.t.Context()), env.Command{Script: "rm -rf " + dir, Timeout: waitLimit})
		if err != nil && !errors.Is(err, env.ErrClosed) {
			b.t.Errorf("remove %s: %v", dir, err)
		}
	})
	return dir
}

// living returns the files of a pattern that have the PID of a living process.
func (b sandbox) living(pattern string) string {
	b.t.Helper()
	return b.sh(`for f in ` + pattern + `; do read -r pid <$f && read -r stat </proc/$pid/stat || continue
		case "${stat##*) }" in [ZX]*) ;; *) echo ${f##*/};; esac; done 2>/dev/null; true`)
}

// isAlive reports whether the process whose PID is in a file is alive in the sandbox.
// Zombies are not.
func (b sandbox) isAlive(pidFile string) bool {
	b.t.Helper()
	return b.sh(`pid=$(cat `+pidFile+`) && if read -r stat < /proc/$pid/stat; then
		case "${stat##*) }" in [ZX]*) echo dead;; *) echo alive;; esac; else echo dead; fi 2>/dev/null`) == "alive"
}

// otherProcesses counts the living processes of a sandbox with OwnProcesses, without
// PID 1, the counting shell and processes that entered the sandbox from outside.
func (b sandbox) otherProcesses() string {
	b.t.Helper()
	return b.sh(`n=0; for p in /proc/[0-9]*; do pid=${p#/proc/}; case $pid in 1|$$) continue;; esac
		read -r stat <$p/stat || continue; case "${stat##*) }" in [ZX]*|?" 0 "*) ;; *) n=$((n+1));; esac; done 2>/dev/null; echo $n`)
}
