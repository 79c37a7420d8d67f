package envtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minibench/mini/env"
)

// escapes are scripts that try to escape a kill. Each starts a process that writes its
// PID to $F and would run for minutes.
var escapes = map[string]string{
	"plain child":                     `bash -c 'echo $$ >$F; exec sleep 300' &`,
	"foreground child":                `bash -c 'echo $$ >$F; exec sleep 300'`,
	"setsid":                          `setsid bash -c 'echo $$ >$F; exec sleep 300' &`,
	"orphan in a session":             `(setsid bash -c 'echo $$ >$F; exec sleep 300' &)`,
	"nohup":                           `nohup bash -c 'echo $$ >$F; exec sleep 300' >/dev/null 2>&1 &`,
	"signals ignored":                 `bash -c 'trap "" TERM INT HUP QUIT; echo $$ >$F; while :; do sleep 1; done' &`,
	"disowned":                        `bash -c 'echo $$ >$F; exec sleep 300' & disown`,
	"cleared environment":             `env -i F=$F setsid bash -c 'echo $$ >$F; exec sleep 300' &`,
	"cleared environment, disowned":   `env -i F=$F bash -c "setsid bash -c 'echo \$\$ >$F; exec sleep 300' & disown" &`,
	"double fork, session, no traces": `(env -i F=$F setsid bash -c '(echo $BASHPID >$F; exec sleep 300) & exit' >/dev/null 2>&1 &)`,
	"exec":                            `exec bash -c 'echo $$ >$F; exec sleep 300'`,
	"stopped":                         `bash -c 'echo $$ >$F; kill -STOP $$; sleep 300' &`,
	"chain of sessions":               `setsid setsid bash -c 'setsid bash -c "echo \$\$ >$F; exec sleep 300" & exit' &`,
}

// foreground are the escapes that a script does not go on after.
var foreground = []string{"foreground child", "exec"}

// allEscapes returns a script that tries all escapes, and one of foreground at its end.
// The PIDs are in files beside $F, named pid-*. When all processes run, the script writes
// "ready" to $F and prints it.
func allEscapes(last string) string {
	var s strings.Builder
	s.WriteString("D=${F%/*} READY=$F; rm -f $F $D/pid-*\n")
	n := 1
	for name, script := range escapes {
		if !slices.Contains(foreground, name) {
			fmt.Fprintf(&s, "export F=$D/pid-%d\n%s\n", n, script)
			n++
		}
	}
	fmt.Fprintf(&s, "{ until test $(cat $D/pid-* | wc -l) = %d; do sleep 0.02; done 2>/dev/null; echo ready | tee $READY; } &\n", n)
	s.WriteString("export F=$D/pid-last\n" + escapes[last] + "\nsleep 300")
	return s.String()
}

// timeouts: at a timeout, all processes that the command started are killed.
func timeouts(t *testing.T, s suite) {
	b := s.start(t)
	dir := b.tempDir()
	for _, last := range foreground {
		t.Run("all escapes, "+last, func(t *testing.T) {
			b := sandbox{b, t}
			checkTimeout(t, b.runUntilTimeout(allEscapes(last), dir+"/ready"))
			if got := b.living(dir + "/pid-*"); got != "" {
				t.Errorf("processes survived: %s", got)
			}
		})
	}
	t.Run("writing all the time", func(t *testing.T) {
		b := sandbox{b, t}
		r := b.runUntilTimeout("rm -f $F; head -c 1M /dev/zero; echo written >$F; yes", dir+"/written")
		checkTimeout(t, r)
		if r.Bytes == 0 || !r.Truncated {
			t.Errorf("%d bytes, truncated %v", r.Bytes, r.Truncated)
		}
	})
	t.Run("many children", func(t *testing.T) {
		b := sandbox{b, t}
		r := b.runUntilTimeout("rm -f $F; for i in $(seq 60); do setsid sleep 300 & echo $! >$F-$i; done; echo started >$F; sleep 300", dir+"/many")
		checkTimeout(t, r)
		// How many were killed is not checked: the kill may catch a process that its
		// list did not have yet.
		if got := b.living(dir + "/many-*"); got != "" {
			t.Errorf("processes survived: %s", got)
		}
	})
	t.Run("children that start children", func(t *testing.T) {
		b := sandbox{b, t}
		// The number of generations is limited, in case the kill fails.
		r := b.run(env.Command{
			Script:  `cat >` + dir + `/beget <<'X'` + "\n" + `[ "$1" -gt 0 ] && { setsid bash "$0" $(($1-1)) & }; sleep 0.05` + "\nX\n" + `bash ` + dir + `/beget 500; sleep 300`,
			Timeout: 400 * time.Millisecond,
		})
		checkTimeout(t, r)
		if got := b.sh("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '[b]ash " + dir + "/beget' || true"); got != "0" {
			t.Errorf("%s generations live on", got)
		}
	})
}

// runUntilTimeout runs a script until its timeout. On a busy machine it retries with a
// longer timeout if the script did not write file ($F) in time.
func (b sandbox) runUntilTimeout(script, file string) env.Result {
	b.t.Helper()
	for timeout := 300 * time.Millisecond; ; timeout *= 4 {
		r := b.run(env.Command{Script: script, Env: map[string]string{"F": file}, Timeout: timeout})
		if b.sh("test -s "+file+" && echo written || echo missing") == "written" || timeout > waitLimit {
			return r
		}
	}
}

func checkTimeout(t *testing.T, r env.Result) {
	t.Helper()
	if !r.TimedOut || r.ExitCode != -1 || r.Killed == 0 || r.Survivors != 0 || r.KilledEarlier || r.Signal != 0 {
		t.Errorf("timed out %v, exit code %d, signal %d, killed %d, survivors %d, killed earlier %v",
			r.TimedOut, r.ExitCode, r.Signal, r.Killed, r.Survivors, r.KilledEarlier)
	}
}

// earlierProcesses: processes that earlier commands left running survive a timeout, but not
// env.KillProgram.
func earlierProcesses(t *testing.T, s suite) {
	b := s.start(t)
	dir := b.tempDir()
	for name, server := range map[string]string{
		"server":            `bash -c 'echo $$ >$F; exec sleep 300' &`,
		"server-in-session": `setsid nohup bash -c 'echo $$ >$F; exec sleep 300' >/dev/null 2>&1 &`,
		"forking-loop":      `bash -c 'echo $$ >$F; while :; do sleep 0.02; done' >/dev/null 2>&1 &`,
		"loop-in-session":   `(env -i F=$F setsid bash -c 'echo $$ >$F; while :; do (sleep 0.02 &); sleep 0.02; done' >/dev/null 2>&1 &)`,
	} {
		b.run(env.Command{Script: server + "\nuntil test -s $F; do sleep 0.01; done", Env: map[string]string{"F": dir + "/" + name}})
	}
	for range 2 {
		checkTimeout(t, b.runUntilTimeout(`rm -f $F; setsid bash -c 'echo $$ >$F; exec sleep 300' & sleep 300`, dir+"/victim"))
		if got := b.living(dir + "/*"); len(strings.Fields(got)) != 4 || strings.Contains(got, "victim") {
			t.Fatalf("after the timeout, the living processes are %q; want the four of earlier commands", got)
		}
	}
	if s.lacks[FileTransfer] != "" { // there is no helper
		b.sh("kill -9 $(cat " + dir + "/*)")
		return
	}
	r := b.run(env.Command{Interpreter: []string{env.KillProgram}})
	if got := b.living(dir + "/*"); got != "" || r.Failure != "" || r.Killed < 4 || r.Survivors != 0 {
		t.Errorf("living %q, %+v", got, r)
	}
}

// background: processes that a command leaves running are reported, and do not delay
// its result.
func background(t *testing.T, s suite) {
	b := s.start(t)
	dir := b.tempDir()
	t.Run("holding the output", func(t *testing.T) {
		b := sandbox{b, t}
		r := b.run(env.Command{Script: `bash -c 'echo $$ >$F; exec sleep 300' & until grep -qsx sleep /proc/$!/comm; do sleep 0.01; done; echo hi`, Env: map[string]string{"F": dir + "/pid"}})
		if string(r.Output) != "hi\n" || r.TimedOut || r.ExitCode != 0 {
			t.Errorf("output %q, timed out %v, after %v", r.Output, r.TimedOut, r.Duration)
		}
		if pid := b.sh("cat " + dir + "/pid"); len(r.Background) != 1 || fmt.Sprint(r.Background[0].PID) != pid || r.Background[0].Name != "sleep" {
			t.Errorf("background is %v, want the sleep %s", r.Background, pid)
		}
		if next := b.run(env.Command{Script: "true"}); len(next.Background) != 0 {
			t.Errorf("the next command reports %v", next.Background)
		}
		if !b.isAlive(dir + "/pid") {
			t.Error("the process did not live on")
		}
	})
	t.Run("writing on", func(t *testing.T) {
		b := sandbox{b, t}
		// The background process would die of SIGPIPE, or block, if its output were not
		// read.
		b.run(env.Command{Script: `bash -c 'echo $$ >$F; while :; do head -c 100000 /dev/zero; echo x >>$F.turns; done' & until test -s $F.turns; do sleep 0.01; done`, Env: map[string]string{"F": dir + "/writer"}})
		b.sh(`n=$(wc -l <` + dir + `/writer.turns); until test $(wc -l <` + dir + `/writer.turns) -gt $((n+10)); do sleep 0.01; done`)
		if !b.isAlive(dir + "/writer") {
			t.Error("the process died")
		}
		b.sh("kill -9 $(cat " + dir + "/writer)")
	})
	t.Run("oldest first and bounded", func(t *testing.T) {
		b := sandbox{b, t}
		r := b.run(env.Command{Script: fmt.Sprintf("for i in $(seq %d); do sleep 300 >/dev/null 2>&1 & done", env.MaxBackground+8)})
		if len(r.Background) != env.MaxBackground {
			t.Fatalf("%d processes reported, want %d", len(r.Background), env.MaxBackground)
		}
		for i := 1; i < len(r.Background); i++ {
			if r.Background[i].PID < r.Background[i-1].PID && r.Background[i-1].PID-r.Background[i].PID < 10_000 { // unless PIDs have wrapped around
				t.Errorf("process %d comes after %d", r.Background[i].PID, r.Background[i-1].PID)
			}
		}
	})
	t.Run("ended with the command", func(t *testing.T) {
		b := sandbox{b, t}
		for range 5 {
			if r := b.run(env.Command{Script: "sleep 300 & kill -9 $!"}); len(r.Background) != 0 {
				t.Fatalf("background is %v", r.Background)
			}
		}
	})
}

// cancellation: when the context ends, all processes that the command started are
// killed.
func cancellation(t *testing.T, s suite) {
	b := s.start(t)
	dir := b.tempDir()
	stop := errors.New("the user said stop")
	for _, last := range foreground {
		t.Run("in mid-command, "+last, func(t *testing.T) {
			b := sandbox{b, t}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			r, err := b.Execute(ctx, env.Command{
				Script: allEscapes(last), Env: map[string]string{"F": dir + "/ready"}, Timeout: 4 * waitLimit,
				OnOutput: func([]byte) { cancel(stop) }, // it prints "ready"
			})
			if !errors.Is(err, stop) {
				t.Fatalf("error is %v, want the cause", err)
			}
			if r.TimedOut || r.ExitCode != -1 || r.Survivors != 0 || string(r.Output) != "ready\n" {
				t.Errorf("output %q, timed out %v, exit code %d, survivors %d", r.Output, r.TimedOut, r.ExitCode, r.Survivors)
			}
			if got := b.living(dir + "/pid-*"); got != "" {
				t.Errorf("processes survived: %s", got)
			}
		})
	}
	t.Run("before the command", func(t *testing.T) {
		b := sandbox{b, t}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stop)
		if _, err := b.Execute(ctx, env.Command{Script: "touch " + dir + "/ran"}); !errors.Is(err, stop) {
			t.Errorf("error is %v, want the cause", err)
		}
		if got := b.sh("test -e " + dir + "/ran && echo ran || echo did not"); got != "did not" {
			t.Error("the command ran")
		}
	})
}

// oneAtATime: commands of one environment run one after another, also from different
// goroutines.
func oneAtATime(t *testing.T, s suite) {
	b := s.start(t)
	dir := b.tempDir()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			r, err := b.Execute(t.Context(), env.Command{Script: "mkdir " + dir + "/turn && sleep 0.03 && rmdir " + dir + "/turn && echo ok", Timeout: waitLimit})
			if err != nil || string(r.Output) != "ok\n" {
				t.Errorf("output %q, error %v", r.Output, err)
			}
		})
	}
	wg.Wait()
}
