package server_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/envtest"
	"github.com/minibench/mini/env/helper"
)

// sandbox is the least that makes a helper an environment: it trusts the
// helper, which the real client does not.
type sandbox struct {
	*box
	hello  helper.Hello
	mu     sync.Mutex
	closed bool
}

func (s *sandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return env.Result{}, env.ErrClosed
	case ctx.Err() != nil:
		return env.Result{}, context.Cause(ctx)
	case len(c.Script) > env.MaxScript:
		return env.Result{ExitCode: -1, Failure: "too long"}, nil
	}
	id := s.begin(helper.Run{
		Dir: c.Dir, Env: c.Env, TimeoutMillis: c.Timeout.Milliseconds(), OutputLimit: c.OutputLimit, Markers: c.Markers,
	}, c.Script)
	defer context.AfterFunc(ctx, func() {
		helper.WriteFrame(s.in, helper.Frame{Kind: helper.KindCancel, ID: id}) //nolint:errcheck // the command may have ended, and the helper with it
	})()
	e, out := s.end(id)
	r := env.Result{
		Output: out, Head: e.Head, Truncated: e.Truncated, Bytes: e.Bytes, Chars: e.Chars,
		ExitCode: e.ExitCode, Signal: e.Signal, Duration: time.Duration(e.DurationNanos),
		TimedOut: e.TimedOut, Survivors: e.Survivors, Killed: e.Killed, Collateral: e.Collateral,
		Background: e.Background, OOMKilled: e.OOMKilled, Failure: e.Failure,
	}
	if e.Cancelled {
		return r, context.Cause(ctx)
	}
	return r, nil
}

func (s *sandbox) Info() env.Info {
	h := s.hello
	return env.Info{System: h.System, Node: h.Node, Release: h.Release, Version: h.Kernel, Machine: h.Machine, Dir: h.Dir}
}

func (s *sandbox) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.in.Close()
}

func TestConformanceAsChild(t *testing.T) {
	envtest.Run(t, func(t *testing.T) env.Environment {
		t.Helper()
		b := start(t)
		return &sandbox{box: b, hello: b.setup(helper.Setup{Dir: t.TempDir()})}
	})
}

func TestConformanceAsPID1(t *testing.T) {
	namespace(t)
	envtest.Run(t, func(t *testing.T) env.Environment {
		t.Helper()
		return pid1(t)
	})
}

// pid1 starts a helper as the first process of a pid namespace of its own.
func pid1(t *testing.T) *sandbox {
	t.Helper()
	b := launch(t, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", binary)
	return &sandbox{box: b, hello: b.setup(helper.Setup{Dir: t.TempDir()})}
}

// namespace skips the test where pid namespaces cannot be made.
func namespace(t *testing.T) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "unshare", "--pid", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("no pid namespace can be made here: %v: %s", err, out)
	}
}

// TestBombs lets a bomb go off inside a pid namespace with bounded processes.
func TestBombs(t *testing.T) {
	namespace(t)
	group := pidsGroup(t, 256)
	for name, bomb := range map[string]string{
		"plain":    `f() { f | f & }; f; sleep 300`,
		"sessions": `cat >$F <<'X'` + "\n" + `while :; do env -i setsid bash "$0" & done` + "\nX\n" + `bash $F; sleep 300`,
	} {
		for _, server := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " beside a server", false: ""}[server], func(t *testing.T) {
				s := pid1In(t, group)
				script := filepath.Join(t.TempDir(), "bomb")
				if server {
					s.run("while :; do sleep 0.05; done >/dev/null 2>&1 & echo $! >" + script + ".pid")
				}
				e, _ := s.end(s.begin(helper.Run{TimeoutMillis: 1000, Env: map[string]string{"F": script}}, bomb))
				if !e.TimedOut || e.Survivors != 0 || e.Collateral || e.Killed < 2 {
					t.Errorf("exit is %+v", e)
				}
				t.Logf("killed %d in %v", e.Killed, time.Duration(e.DurationNanos)-time.Second)
				want := "1"
				if server {
					want = "2"
				}
				// The helper's children: this command's shell, and the server.
				e, out := s.run(`n=0; for p in /proc/[0-9]*; do s=$(<$p/stat) || continue; s=${s##*) }; set -- $s; [ $2 = 1 ] && n=$((n+1)); done 2>/dev/null; echo $n`)
				if strings.TrimSpace(out) != want {
					t.Errorf("helper has %s children after the bomb, want %s (%+v)", strings.TrimSpace(out), want, e)
				}
				if server {
					if _, out := s.run("kill -0 $(cat " + script + ".pid) && echo alive"); out != "alive\n" {
						t.Error("the server died")
					}
				}
			})
		}
	}
}

// TestKillEverythingFromInside: PID 1 survives what a command does to all. The
// signals come in bursts, because a single one hits nobody in a handler.
func TestKillEverythingFromInside(t *testing.T) {
	namespace(t)
	for range 10 {
		s := pid1(t)
		if e, out := s.run("for n in 1 2 3 4 5; do for i in $(seq 64); do kill -$i 1; done; done; sleep 0.05; echo sent"); out != "sent\n" || e.ExitCode != 0 {
			t.Fatalf("output %q, exit %+v", out, e)
		}
		s.run("sleep 60 & kill -9 -1")
		if _, out := s.run("echo alive"); out != "alive\n" {
			t.Fatalf("after kill -9 -1: %q", out)
		}
	}
}

// TestForgeryIsRefused: with a sandbox's capabilities nobody opens the helper's
// pipes or reads its memory.
func TestForgeryIsRefused(t *testing.T) {
	namespace(t)
	for name, drop := range map[string][]string{
		"root":         {"setpriv", "--bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+setuid,+setgid,+setfcap,+kill", "--inh-caps=-all"},
		"another user": {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.Chmod(filepath.Dir(binary), 0o755); err != nil { // the other user must reach the binary
				t.Fatal(err)
			}
			args := append([]string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}, drop...)
			b := launch(t, append(args, binary)...)
			b.setup(helper.Setup{Dir: "/"})
			for _, try := range []string{"printf forged > /proc/1/fd/1", "cat /proc/1/environ", "head -c1 /proc/1/mem", "readlink /proc/1/fd/1", "cat /proc/1/maps"} {
				if e, out := b.run(try); e.ExitCode == 0 {
					t.Errorf("%s: worked: %q", try, out)
				}
			}
		})
	}
}

// pidsGroup makes a control group with at most n processes.
func pidsGroup(t *testing.T, n int) string {
	t.Helper()
	group := "/sys/fs/cgroup/pids/mini-helper-test"
	if err := os.Mkdir(group, 0o750); err != nil {
		t.Skipf("no control group for processes can be made here: %v", err)
	}
	t.Cleanup(func() {
		deadline := time.Now().Add(10 * time.Second)
		for os.Remove(group) != nil && time.Now().Before(deadline) {
			continue
		}
	})
	limit, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(group+"/pids.max", limit, 0o600); err != nil {
		t.Skipf("processes cannot be limited here: %v", err)
	}
	return group
}

func pid1In(t *testing.T, group string) *sandbox {
	t.Helper()
	b := launch(t, "bash", "-c", "echo $$ >"+group+"/cgroup.procs && exec unshare --pid --fork --kill-child --mount-proc "+binary)
	return &sandbox{box: b, hello: b.setup(helper.Setup{Dir: t.TempDir()})}
}
