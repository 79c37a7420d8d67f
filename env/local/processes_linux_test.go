package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/local"
)

// alive reports whether the process whose id a file holds lives; one that
// nobody has reaped yet counts.
func alive(t *testing.T, pidFile string) bool {
	t.Helper()
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join("/proc", strings.TrimSpace(string(pid))))
	return err == nil
}

// await polls until ok, at most for a while.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
		runtime.Gosched()
	}
}

// traces are what still ties a process that left its session to its command.
// Each starts it, lets its parent end, and writes its id to $F.
var traces = map[string]string{
	"environment": `(setsid bash -c 'echo $$ >$F; exec sleep 300' >/dev/null 2>&1 &)`,
	"pipe":        `(env -i F=$F setsid bash -c 'echo $$ >$F; exec sleep 300' &)`,
	"group":       `(env -i F=$F bash -c 'echo $$ >$F; exec sleep 300' >/dev/null 2>&1 &)`,
}

// TestSideBySide: a timeout, a cancel and a close in one environment leave the
// processes of the others alone.
func TestSideBySide(t *testing.T) {
	dir := t.TempDir()
	other := openWith(t, local.Config{Dir: dir})
	for name, script := range traces {
		run(t, other, "F="+dir+"/other-"+name+"; export F; "+script+"; until test -s $F; do sleep 0.01; done")
	}
	for name, script := range traces {
		t.Run(name, func(t *testing.T) {
			box := openWith(t, local.Config{Dir: dir})
			for i, c := range []struct {
				timeout, cancel time.Duration
			}{{timeout: time.Second, cancel: time.Hour}, {timeout: time.Hour, cancel: time.Second}} {
				file := fmt.Sprintf("%s/%s-%d", dir, name, i)
				ctx, cancel := context.WithTimeout(t.Context(), c.cancel)
				r, err := box.Execute(ctx, env.Command{Script: script + "\nsleep 300", Env: map[string]string{"F": file}, Timeout: c.timeout})
				cancel()
				if r.TimedOut != (err == nil) || r.Killed < 2 || r.Survivors != 0 {
					t.Errorf("timed out %v, killed %d, survivors %d, error %v", r.TimedOut, r.Killed, r.Survivors, err)
				}
				if alive(t, file) {
					t.Error("the command's process survived")
				}
			}
			run(t, box, "F="+dir+"/left-"+name+"; export F; "+script+"; until test -s $F; do sleep 0.01; done")
			if err := box.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if alive(t, dir+"/left-"+name) {
				t.Error("what was left running survived the close")
			}
			for left := range traces {
				if !alive(t, dir+"/other-"+left) {
					t.Fatalf("the other environment lost its process (%s)", left)
				}
			}
		})
	}
}

// TestOtherChildren: programs that mini itself runs meanwhile are none of its
// commands, and keep their exit codes.
func TestOtherChildren(t *testing.T) {
	box := openWith(t, local.Config{})
	long := exec.CommandContext(t.Context(), "sleep", "300")
	if err := long.Start(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 50 {
			var exit *exec.ExitError
			if err := exec.CommandContext(t.Context(), "sh", "-c", "exit 7").Run(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
				t.Errorf("own program ended with %v", err)
			}
		}
	})
	for range 50 {
		run(t, box, "(true &); (sleep 0.01 &); true")
	}
	wg.Wait()
	if _, err := box.Execute(t.Context(), env.Command{Script: "sleep 60", Timeout: 100 * time.Millisecond}); err != nil {
		t.Error(err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := long.Process.Signal(os.Kill); err != nil {
		t.Errorf("own program is gone: %v", err)
	}
	if err := long.Wait(); err == nil {
		t.Error("a killed program ended well")
	}
}

// TestManyAtOnce runs 200 commands over eight environments, with orphans of
// every kind among them, and leaves nothing.
func TestManyAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for w := range 8 {
		box := openWith(t, local.Config{Dir: t.TempDir(), Timeout: time.Minute})
		for i := range 25 {
			wg.Go(func() {
				want := fmt.Sprintf("%d of %d", i, w)
				r, err := box.Execute(t.Context(), env.Command{Script: fmt.Sprintf(`(sleep 0.0%d &); (setsid true &); echo %q; exit %d`, i%10, want, i)})
				if err != nil || string(r.Output) != want+"\n" || r.ExitCode != i {
					t.Errorf("%s: output %q, exit code %d, error %v", want, r.Output, r.ExitCode, err)
				}
			})
		}
	}
	wg.Wait()
}

// TestNoLostOutput is the stress test for the end of the pipe: a shell that has
// just ended, with and without somebody else on the pipe.
func TestNoLostOutput(t *testing.T) {
	each := 400
	if testing.Short() {
		each = 50
	}
	var wg sync.WaitGroup
	for range 8 {
		box := openWith(t, local.Config{Dir: t.TempDir()})
		wg.Go(func() {
			for n := range each {
				script, want := fmt.Sprintf("echo line %d", n), fmt.Sprintf("line %d\n", n)
				if n%8 == 0 {
					script = "sleep 0.06 & " + script
				}
				if got := run(t, box, script); got != want {
					t.Errorf("command %d: output %q", n, got)
				}
			}
		})
	}
	wg.Wait()
}

// TestCloseEndsTheCommand closes while a command runs.
func TestCloseEndsTheCommand(t *testing.T) {
	dir := t.TempDir()
	box := openWith(t, local.Config{Dir: dir})
	done := make(chan error, 1)
	go func() {
		r, err := box.Execute(t.Context(), env.Command{Script: "echo $$ >pid; echo begun; sleep 300"})
		if string(r.Output) != "begun\n" || r.ExitCode != -1 {
			err = errors.Join(err, fmt.Errorf("output %q, exit code %d", r.Output, r.ExitCode))
		}
		done <- err
	}()
	await(t, "the command runs", func() bool {
		pid, err := os.ReadFile(dir + "/pid")
		return err == nil && strings.HasSuffix(string(pid), "\n")
	})
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, env.ErrClosed) {
		t.Errorf("the command returned %v, want env.ErrClosed", err)
	}
	if alive(t, dir+"/pid") {
		t.Error("the command lives on")
	}
}

// TestFloodStaysSmall: 200 MB of output cost what is kept of them.
func TestFloodStaysSmall(t *testing.T) {
	box := openWith(t, local.Config{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := box.Execute(t.Context(), env.Command{Script: "head -c 200000000 /dev/zero"})
	if err != nil || r.Bytes != 200_000_000 || len(r.Output) != env.DefaultOutputLimit {
		t.Fatalf("kept %d of %d bytes, error %v", len(r.Output), r.Bytes, err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("allocated %d bytes for it, want at most 8 MiB", grown)
	}
}

// BenchmarkTrue is what a step costs, in this process and by a helper.
func BenchmarkTrue(b *testing.B) {
	program := childtest.Program(b)
	for name, helper := range map[string]*child.Program{"direct": nil, "helper": program} {
		b.Run(name, func(b *testing.B) {
			box, err := local.New(b.Context(), local.Config{Helper: helper})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := box.Execute(b.Context(), env.Command{Script: "true"}); err != nil {
					b.Fatal(err)
				}
			}
			if err := box.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkStart is what it takes to open and close an environment.
func BenchmarkStart(b *testing.B) {
	program := childtest.Program(b)
	for name, helper := range map[string]*child.Program{"direct": nil, "helper": program} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				box, err := local.New(b.Context(), local.Config{Helper: helper})
				if err != nil {
					b.Fatal(err)
				}
				if err := box.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
