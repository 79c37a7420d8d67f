package child_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/helper/child/childtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, p *child.Program) *child.Environment {
	t.Helper()
	sandbox, err := child.Start(t.Context(), child.Config{
		Name: "test", Program: p, Env: []string{"PATH=/usr/bin:/bin"}, Setup: helper.Setup{Dir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sandbox.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return sandbox
}

// TestLostHelper: if a command kills the helper, the sandbox is lost, the error says
// why, and all processes of the sandbox are killed. Another sandbox is not affected.
func TestLostHelper(t *testing.T) {
	p := childtest.Program(t)
	for name, script := range map[string]string{
		"in mid-command":   `exec -a $W sleep 300`,
		"with an orphan":   `(env -i W=$W setsid bash -c '(exec -a $W sleep 300) & exit' </dev/null >/dev/null 2>&1 &); sleep 300`,
		"with a server":    `setsid bash -c 'exec -a $W sleep 300' & sleep 300`,
		"forking all over": `while :; do (setsid bash -c 'exec -a $W sleep 300' &); sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			marker, otherMarker := "mini-lost-"+rand.Text(), "mini-beside-"+rand.Text()
			other := start(t, p)
			if _, err := other.Execute(t.Context(), env.Command{
				Script: `setsid bash -c 'exec -a $W sleep 300' >/dev/null 2>&1 & until grep -qsF -- "$W" /proc/$!/cmdline; do sleep 0.01; done`, Env: map[string]string{"W": otherMarker},
			}); err != nil {
				t.Fatal(err)
			}
			sandbox := start(t, p)
			_, err := sandbox.Execute(t.Context(), env.Command{
				Script: `(sleep 0.3; kill -9 $PPID) & ` + script, Env: map[string]string{"W": marker}, Timeout: time.Minute,
			})
			e, ok := errors.AsType[*env.Error](err)
			if !ok || e.Status != env.ContainerDied || !strings.Contains(err.Error(), "signal 9") || e.Hint == "" {
				t.Errorf("error is %v", err)
			}
			childtest.RequireExit(t, marker, time.Minute)
			if _, nextErr := sandbox.Execute(t.Context(), env.Command{Script: "true"}); !errors.Is(nextErr, e) {
				t.Errorf("afterwards: %v, want the same error", nextErr)
			}
			if n := len(childtest.Running(t, otherMarker)); n != 1 {
				t.Errorf("%d processes of the other sandbox are running, want 1", n)
			}
			if r, err := other.Execute(t.Context(), env.Command{Script: "echo well"}); err != nil || string(r.Output) != "well\n" {
				t.Errorf("the other sandbox: %q, %v", r.Output, err)
			}
		})
	}
}

// TestStoppedHelper: Close works if a command has stopped the helper with SIGSTOP.
func TestStoppedHelper(t *testing.T) {
	sandbox := start(t, childtest.Program(t))
	marker := "mini-stopped-" + rand.Text()
	if _, err := sandbox.Execute(t.Context(), env.Command{
		Script: `setsid bash -c 'exec -a $W sleep 300' >/dev/null 2>&1 &`, Env: map[string]string{"W": marker},
	}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(sandbox.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Close(t.Context()); err != nil {
		t.Error(err)
	}
	childtest.RequireExit(t, marker, time.Minute)
}

// TestNoHelper: if the process does not become a helper, the error says why, and no
// process is left.
func TestNoHelper(t *testing.T) {
	p := childtest.Program(t)
	marker := "mini-none-" + rand.Text()
	for name, c := range map[string]struct {
		wrapper []string
		wantErr string
	}{
		"no such program":  {[]string{"/no/such/program"}, "no such file"},
		"fails at once":    {[]string{"sh", "-c", "echo because >&2; exit 3"}, "because"},
		"status":           {[]string{"sh", "-c", "exit 3"}, "status 3"},
		"says other words": {[]string{"sh", "-c", "echo hello there, general; cat >/dev/null"}, "frame"},
		"killed":           {[]string{"sh", "-c", "setsid -f bash -c 'exec -a " + marker + " sleep 300'; kill -9 $$"}, "signal 9"},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox, err := child.Start(t.Context(), child.Config{Name: "test", Program: p, Wrapper: c.wrapper})
			if err == nil {
				t.Fatal(errors.Join(errors.New("it started"), sandbox.Close(t.Context())))
			}
			var failed *child.StartError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("error is %v, want one that says %q", err, c.wantErr)
			}
		})
	}
	childtest.RequireExit(t, marker, time.Minute)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("gave up")
	time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
	if _, err := child.Start(ctx, child.Config{Name: "test", Program: p, Wrapper: []string{"sh", "-c", "cat >/dev/null"}}); !errors.Is(err, cause) {
		t.Errorf("after a cancel: %v", err)
	}
}

// TestWrongHash: Start fails if the helper has another hash.
func TestWrongHash(t *testing.T) {
	_, err := child.Start(t.Context(), child.Config{Name: "test", Program: childtest.ProgramWithWrongHash(t)})
	if !errors.Is(err, helper.ErrMismatch) {
		t.Errorf("error is %v, want a mismatch", err)
	}
}

// TestDescriptors: commands do not inherit the helper's file and pipes.
func TestDescriptors(t *testing.T) {
	sandbox := start(t, childtest.Program(t))
	r, err := sandbox.Execute(t.Context(), env.Command{Script: `ls /proc/self/fd | wc -l`})
	if err != nil {
		t.Fatal(err)
	}
	// ls has the standard three descriptors, and the directory that it reads.
	if string(r.Output) != "4\n" {
		t.Errorf("commands have more open files than three: %q", r.Output)
	}
}
