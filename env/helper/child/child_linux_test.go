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

func start(t *testing.T, p *child.Program) *child.Box {
	t.Helper()
	box, err := child.Start(t.Context(), child.Config{
		Name: "test", Program: p, Env: []string{"PATH=/usr/bin:/bin"}, Setup: helper.Setup{Dir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return box
}

// TestLostHelper: a command kills the helper. The sandbox is lost, with the
// reason, and what it ran dies all the same; another sandbox is untouched.
func TestLostHelper(t *testing.T) {
	p := childtest.Program(t)
	for name, script := range map[string]string{
		"in mid-command":   `exec -a $W sleep 300`,
		"with an orphan":   `(env -i W=$W setsid bash -c '(exec -a $W sleep 300) & exit' </dev/null >/dev/null 2>&1 &); sleep 300`,
		"with a server":    `setsid bash -c 'exec -a $W sleep 300' & sleep 300`,
		"forking all over": `while :; do (setsid bash -c 'exec -a $W sleep 300' &); sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			word, beside := "mini-lost-"+rand.Text(), "mini-beside-"+rand.Text()
			other := start(t, p)
			if _, err := other.Execute(t.Context(), env.Command{
				Script: `setsid bash -c 'exec -a $W sleep 300' >/dev/null 2>&1 &`, Env: map[string]string{"W": beside},
			}); err != nil {
				t.Fatal(err)
			}
			box := start(t, p)
			_, err := box.Execute(t.Context(), env.Command{
				Script: `(sleep 0.3; kill -9 $PPID) & ` + script, Env: map[string]string{"W": word}, Timeout: time.Minute,
			})
			e, ok := errors.AsType[*env.Error](err)
			if !ok || e.Status != env.ContainerDied || !strings.Contains(err.Error(), "signal 9") || e.Hint == "" {
				t.Errorf("error is %v", err)
			}
			childtest.Gone(t, word, 10*time.Second)
			if _, again := box.Execute(t.Context(), env.Command{Script: "true"}); !errors.Is(again, e) {
				t.Errorf("afterwards: %v, want the same error", again)
			}
			if n := len(childtest.Living(t, beside)); n != 1 {
				t.Errorf("of the other sandbox %d processes live, want 1", n)
			}
			if r, err := other.Execute(t.Context(), env.Command{Script: "echo well"}); err != nil || string(r.Output) != "well\n" {
				t.Errorf("the other sandbox: %q, %v", r.Output, err)
			}
		})
	}
}

// TestStoppedHelper: a helper that a command has stopped is closed all the same.
func TestStoppedHelper(t *testing.T) {
	box := start(t, childtest.Program(t))
	word := "mini-stopped-" + rand.Text()
	if _, err := box.Execute(t.Context(), env.Command{
		Script: `setsid bash -c 'exec -a $W sleep 300' >/dev/null 2>&1 &`, Env: map[string]string{"W": word},
	}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(box.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	childtest.Gone(t, word, time.Second)
}

// TestNoHelper: what does not become a helper says why, and leaves nothing.
func TestNoHelper(t *testing.T) {
	p := childtest.Program(t)
	word := "mini-none-" + rand.Text()
	for name, c := range map[string]struct {
		wrapper []string
		says    string
	}{
		"no such program":  {[]string{"/no/such/program"}, "no such file"},
		"fails at once":    {[]string{"sh", "-c", "echo because >&2; exit 3"}, "because"},
		"status":           {[]string{"sh", "-c", "exit 3"}, "status 3"},
		"says other words": {[]string{"sh", "-c", "echo hello there, general; cat >/dev/null"}, "frame"},
		"killed":           {[]string{"sh", "-c", "setsid -f bash -c 'exec -a " + word + " sleep 300'; kill -9 $$"}, "signal 9"},
	} {
		t.Run(name, func(t *testing.T) {
			box, err := child.Start(t.Context(), child.Config{Name: "test", Program: p, Wrapper: c.wrapper})
			if err == nil {
				t.Fatal(errors.Join(errors.New("it started"), box.Close(t.Context())))
			}
			var failed *child.FailedError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want one that says %q", err, c.says)
			}
		})
	}
	childtest.Gone(t, word, 10*time.Second)
	ctx, cancel := context.WithCancelCause(t.Context())
	gaveUp := errors.New("gave up")
	time.AfterFunc(50*time.Millisecond, func() { cancel(gaveUp) })
	if _, err := child.Start(ctx, child.Config{Name: "test", Program: p, Wrapper: []string{"sh", "-c", "cat >/dev/null"}}); !errors.Is(err, gaveUp) {
		t.Errorf("after a cancel: %v", err)
	}
}

// TestAnotherHelper: the hash is that of what was sent.
func TestAnotherHelper(t *testing.T) {
	_, err := child.Start(t.Context(), child.Config{Name: "test", Program: childtest.Mislabelled(t)})
	if !errors.Is(err, helper.ErrMismatch) {
		t.Errorf("error is %v, want a mismatch", err)
	}
}

// TestFewDescriptors: the helper's file and pipes are not passed on.
func TestFewDescriptors(t *testing.T) {
	box := start(t, childtest.Program(t))
	r, err := box.Execute(t.Context(), env.Command{Script: `ls /proc/self/fd | wc -l`})
	if err != nil {
		t.Fatal(err)
	}
	// ls has the standard three, and the folder it reads.
	if string(r.Output) != "4\n" {
		t.Errorf("commands have more open files than three: %q", r.Output)
	}
}
