package envtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env"
)

// asUser is a command prefix that switches to another user and group.
const asUser = "setpriv --reuid=65534 --regid=65534 --clear-groups "

// users: processes of other users are killed, too.
func users(t *testing.T, s suite) {
	s.needs(t, OtherUsers)
	b := s.start(t)
	dir := b.tempDir()
	b.sh("chmod 777 " + dir)
	t.Run("killed", func(t *testing.T) {
		b := sandbox{b, t}
		script := "D=${F%/*} READY=$F; rm -f $F $D/pid-*\n"
		for i, user := range []string{
			asUser + `bash -c 'echo $$ >$F; exec sleep 300' &`,
			asUser + `setsid bash -c 'echo $$ >$F; exec sleep 300' &`,
			`(env -i F=$F ` + asUser + `setsid bash -c '(echo $BASHPID >$F; exec sleep 300) & exit' >/dev/null 2>&1 &)`, // without a trace
			asUser + `setsid bash -c 'trap "" TERM INT HUP QUIT; echo $$ >$F; while :; do sleep 1; done' &`,
		} {
			script += fmt.Sprintf("export F=$D/pid-%d\n%s\n", i, user)
		}
		script += "until test $(cat $D/pid-* | wc -l) = 4; do sleep 0.02; done 2>/dev/null; echo ready >$READY; sleep 300"
		checkTimeout(t, b.runUntilTimeout(script, dir+"/ready"))
		if got := b.living(dir + "/pid-*"); got != "" {
			t.Errorf("processes survived: %s", got)
		}
	})
	t.Run("server of another user lives on", func(t *testing.T) {
		b := sandbox{b, t}
		b.run(env.Command{Script: "setsid " + asUser + `bash -c 'echo $$ >$F; exec sleep 300' >/dev/null 2>&1 &` + "\nuntil test -s $F; do sleep 0.01; done", Env: map[string]string{"F": dir + "/server"}})
		checkTimeout(t, b.runUntilTimeout(asUser+`setsid bash -c 'echo $$ >$F; exec sleep 300' & sleep 300`, dir+"/victim"))
		if b.isAlive(dir + "/victim") {
			t.Error("a process of the timed-out command survived")
		}
		if !b.isAlive(dir + "/server") {
			t.Error("the server of an earlier command died")
		}
	})
}

// bombs are scripts that start processes without end. $F is a file for a script.
var bombs = map[string]string{
	"fork bomb":                          `f() { f | f & }; f; sleep 300`,
	"sessions without an environment":    `cat >$F <<'X'` + "\n" + `while :; do env -i setsid bash "$0" & done` + "\nX\n" + `bash $F; sleep 300`,
	"children that outlive their parent": `cat >$F <<'X'` + "\n" + `while :; do (setsid bash "$0" &); done` + "\nX\n" + `bash $F; sleep 300`,
}

// runBomb runs a bomb until its timeout. It requires that all its processes are killed,
// and that a server of an earlier command is not.
func (b sandbox) runBomb(bomb string, withServer bool) {
	b.t.Helper()
	dir := b.tempDir()
	want := "0"
	if withServer {
		b.run(env.Command{Script: "setsid sleep 1000 >/dev/null 2>&1 & echo $! >" + dir + "/server"})
		want = "1"
	}
	for timeout := time.Second; ; timeout *= 4 { // a busy machine needs longer to start it
		r := b.run(env.Command{Script: bomb, Env: map[string]string{"F": dir + "/bomb"}, Timeout: timeout})
		checkTimeout(b.t, r)
		if r.Killed >= 2 {
			break
		}
		if timeout > waitLimit {
			b.t.Fatalf("killed %d", r.Killed)
		}
	}
	if n := b.otherProcesses(); n != want {
		b.t.Errorf("%s processes are left, want %s", n, want)
	}
	if withServer && !b.isAlive(dir+"/server") {
		b.t.Error("the server died")
	}
}

// forkBombs: fork bombs are killed completely, and other processes survive.
func forkBombs(t *testing.T, s suite) {
	s.needs(t, OwnProcesses, ProcessLimit)
	t.Run("beside a server", func(t *testing.T) { s.start(t).runBomb(bombs["sessions without an environment"], true) })
	t.Run("a bomb that returns at once", func(t *testing.T) {
		b := s.start(t)
		b.run(env.Command{Script: `f() { sleep 0.05; f | f & }; f; exit 0`, Timeout: 5 * time.Second})
		// If there is no free process slot for the command, the bomb is killed.
		if got := b.sh("echo on"); got != "on" {
			t.Errorf("afterwards: %q", got)
		}
	})
}

// pid1: commands cannot affect PID 1.
func pid1(t *testing.T, s suite) {
	s.needs(t, OwnProcesses)
	b := s.start(t)
	prefixes := map[string]string{"root": ""}
	if s.lacks[OtherUsers] == "" {
		prefixes["another user"] = asUser
	}
	for user, prefix := range prefixes {
		t.Run("every signal as "+user, func(t *testing.T) {
			b := sandbox{b, t}
			// In bursts, so that signals arrive while a handler runs.
			r := b.run(env.Command{Script: prefix + `bash -c 'for n in 1 2 3 4 5; do for i in $(seq 64); do kill -$i 1; done; done 2>/dev/null; sleep 0.1; echo sent'`})
			if string(r.Output) != "sent\n" {
				t.Fatalf("output %q, exit code %d", r.Output, r.ExitCode)
			}
			if got := b.sh("echo alive"); got != "alive" {
				t.Errorf("after the signals: %q", got)
			}
		})
		t.Run("no access as "+user, func(t *testing.T) {
			s.needs(t, ShieldedInit)
			b := sandbox{b, t}
			for _, try := range []string{
				"printf forged > /proc/1/fd/1", "printf forged > /proc/1/fd/0", "cat /proc/1/fd/0", "readlink /proc/1/fd/1",
				"cat /proc/1/environ", "head -c1 /proc/1/mem", "cat /proc/1/maps", "ls /proc/1/root/", "printf x > /proc/1/mem",
			} {
				if r := b.run(env.Command{Script: prefix + "bash -c '" + try + "'"}); r.ExitCode == 0 || r.TimedOut {
					t.Errorf("%s: worked: %q", try, r.Output)
				}
			}
			if got := b.sh("echo alive"); got != "alive" {
				t.Errorf("after the tries: %q", got)
			}
		})
		t.Run("ptrace as "+user, func(t *testing.T) {
			s.needs(t, ShieldedInit)
			b := sandbox{b, t}
			if b.run(env.Command{Script: prefix + "python3 -c 'import ctypes'"}).ExitCode != 0 {
				t.Skipf("there is no python3 for %s to call ptrace with", user)
			}
			// attach, seize, and reading and writing memory.
			const try = `import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
buf = ctypes.create_string_buffer(8)
class iovec(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
here, there = iovec(ctypes.addressof(buf), 8), iovec(0x400000, 8)
print(libc.ptrace(16, 1, 0, 0), libc.ptrace(0x4206, 1, 0, 0),
  libc.process_vm_readv(1, ctypes.byref(here), 1, ctypes.byref(there), 1, 0),
  libc.process_vm_writev(1, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))`
			if r := b.run(env.Command{Script: prefix + "python3 -c '" + try + "'"}); string(r.Output) != "-1 -1 -1 -1\n" {
				t.Errorf("output %q, want four refusals", r.Output)
			}
			if got := b.sh("echo alive"); got != "alive" {
				t.Errorf("after the tries: %q", got)
			}
		})
	}
	t.Run("kill -9 -1", func(t *testing.T) {
		b := sandbox{b, t}
		// The shell spares itself.
		r := b.run(env.Command{Script: "sleep 300 & setsid sleep 300 & sleep 0.1; kill -9 -1; wait 2>/dev/null; echo spared"})
		if string(r.Output) != "spared\n" || r.ExitCode != 0 || len(r.Background) != 0 {
			t.Errorf("output %q, exit code %d, left running %v", r.Output, r.ExitCode, r.Background)
		}
		if got := b.sh("echo alive"); got != "alive" {
			t.Errorf("afterwards: %q", got)
		}
	})
	t.Run("orphans are collected", func(t *testing.T) {
		b := sandbox{b, t}
		b.sh("for i in $(seq 20); do (sleep 0.02 &); done")
		b.sh(`for n in $(seq 500); do grep -sq "^State:.Z" /proc/[0-9]*/status || exit 0; sleep 0.02; done; exit 1`)
	})
}

// memory: a process that uses too much memory is killed, no other is, and the result
// reports it.
func memory(t *testing.T, s suite) {
	if s.openSmall == nil {
		t.Skip("no memory limit (see envtest.WithMemory)")
	}
	b := startWith(t, s.openSmall)
	const hog = `tail -c 1G < <(head -c 1G /dev/zero)` // buffers its input
	t.Run("a child", func(t *testing.T) {
		b := sandbox{b, t}
		r := b.run(env.Command{Script: hog + " >/dev/null; echo code $?"})
		if r.OOMKilled < 1 || !strings.Contains(string(r.Output), "code 137\n") {
			t.Errorf("%d killed by the OOM killer, exit code %d, output %.200q", r.OOMKilled, r.ExitCode, r.Output)
		}
		for range 2 {
			if r := b.run(env.Command{Script: "echo on"}); r.OOMKilled != 0 || string(r.Output) != "on\n" {
				t.Errorf("next command: %d killed, output %q", r.OOMKilled, r.Output)
			}
		}
	})
	t.Run("the shell itself", func(t *testing.T) {
		b := sandbox{b, t}
		if r := b.run(env.Command{Script: "exec " + hog}); r.OOMKilled < 1 || r.Signal != 9 {
			t.Errorf("%d killed by the OOM killer, signal %d", r.OOMKilled, r.Signal)
		}
		if got := b.sh("echo on"); got != "on" {
			t.Errorf("next command: %q", got)
		}
	})
	t.Run("output", func(t *testing.T) {
		b := sandbox{b, t}
		if r := b.run(env.Command{Script: "head -c 150000000 /dev/zero", Timeout: 5 * time.Minute}); r.Bytes != 150_000_000 || r.ExitCode != 0 || r.OOMKilled != 0 {
			t.Errorf("%d bytes, exit code %d, %d killed", r.Bytes, r.ExitCode, r.OOMKilled)
		}
	})
}
