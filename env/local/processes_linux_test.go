package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/child"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// alive reports whether the process whose PID is in a file is running. A zombie is not:
// PID 1 may reap it much later.
func alive(t *testing.T, pidFile string) bool {
	t.Helper()
	pid, err := os.ReadFile(pidFile)
	require.NoError(t, err)
	stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// await polls until ok returns true, and fails the test after a timeout.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("timeout while waiting until %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// TestOtherChildren: other child processes of mini are not killed with commands, and
// keep their exit codes.
func TestOtherChildren(t *testing.T) {
	t.Parallel()
	sandbox := openWith(t, local.Config{})
	sleep := exec.CommandContext(t.Context(), "sleep", "300")
	require.NoError(t, sleep.Start())
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 15 {
			var exit *exec.ExitError
			if err := exec.CommandContext(t.Context(), "sh", "-c", "exit 7").Run(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
				t.Errorf("own program ended with %v", err)
			}
		}
	})
	for range 15 {
		run(t, sandbox, "(true &); (sleep 0.01 &); true")
	}
	wg.Wait()
	_, err := sandbox.Execute(t.Context(), env.Command{Script: "sleep 60", Timeout: 100 * time.Millisecond})
	assert.NoError(t, err)
	assert.NoError(t, sandbox.Close(t.Context()))
	if err := sleep.Process.Signal(os.Kill); err != nil {
		t.Errorf("own program is gone: %v", err)
	}
	assert.Error(t, sleep.Wait(), "a killed program ended well")
}

// TestCloseInMidCommand closes the environment while a command runs.
func TestCloseInMidCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sandbox := openWith(t, local.Config{Dir: dir})
	done := make(chan error, 1)
	go func() {
		r, err := sandbox.Execute(t.Context(), env.Command{Script: "echo $$ >pid; echo begun; sleep 300"})
		if string(r.Output) != "begun\n" || r.ExitCode != -1 {
			err = errors.Join(err, fmt.Errorf("output %q, exit code %d", r.Output, r.ExitCode))
		}
		done <- err
	}()
	await(t, "the command runs", func() bool {
		pid, err := os.ReadFile(dir + "/pid")
		return err == nil && strings.HasSuffix(string(pid), "\n")
	})
	assert.NoError(t, sandbox.Close(t.Context()))
	assert.ErrorIs(t, <-done, env.ErrClosed, "the command")
	if alive(t, dir+"/pid") {
		t.Error("the command lives on")
	}
}

// runOwner runs the test binary as the process to be killed by TestKilledOwner.
func runOwner() {
	childtest.RunOwner(func(ctx context.Context, p *child.Program, dir string) (env.Environment, error) {
		return local.New(ctx, local.Config{Dir: dir, Helper: p})
	})
}

// TestKilledOwner: when mini is killed, its commands are killed, too.
func TestKilledOwner(t *testing.T) {
	t.Parallel()
	childtest.RunOrphanTest(t)
}

// TestDirect tests commands without a helper. It runs alone: while a helper is open, no
// other process may be started in a new session; see process.Child.
func TestDirect(t *testing.T) {
	dir := t.TempDir()
	sandbox := openAs(t, local.Config{Dir: dir})
	cancelled, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, tt := range []struct {
		name    string
		command env.Command
		ctx     context.Context
		want    env.Result
		output  string
		err     error
	}{
		{name: "output and variables", command: env.Command{Script: "echo $A; echo b >&2", Env: map[string]string{"A": "a"}}, output: "a\nb\n"},
		{name: "exit code", command: env.Command{Script: "exit 7"}, want: env.Result{ExitCode: 7}},
		{name: "signal", command: env.Command{Script: "kill -9 $$"}, want: env.Result{ExitCode: 137, Signal: 9}},
		{name: "another interpreter", command: env.Command{Script: "echo ${0##*/}", Interpreter: []string{"sh", "-c"}}, output: "sh\n"},
		{name: "no such folder", command: env.Command{Script: "true", Dir: "nowhere"}, want: env.Result{ExitCode: -1, Failure: "x"}},
		{name: "no such shell", command: env.Command{Script: "true", Interpreter: []string{"/no/such/shell"}}, want: env.Result{ExitCode: -1, Failure: "x"}},
		{name: "in the background", command: env.Command{Script: "sleep 300 & echo a"}, output: "a\n"},
		{
			name: "a busy machine, where the output is read late", output: "a\nb\n",
			command: env.Command{Script: "echo a; until [ -e read ]; do sleep 0.01; done; echo b; sleep 300 &", OnOutput: func([]byte) {
				assert.NoError(t, os.WriteFile(filepath.Join(dir, "read"), nil, 0o600))
				time.Sleep(200 * time.Millisecond) // the late reader: the command ends meanwhile
			}},
		},
		{name: "timeout", command: env.Command{Script: "echo a; sleep 300 | sleep 300", Timeout: 5 * time.Second}, output: "a\n", want: env.Result{ExitCode: -1, TimedOut: true, Killed: 1}},
		{name: "cancelled", command: env.Command{Script: "echo a; sleep 300", OnOutput: func([]byte) { cancel() }}, ctx: cancelled, output: "a\n", want: env.Result{ExitCode: -1, Killed: 1}, err: context.Canceled},
		{name: "sink that fails", command: env.Command{Script: "echo a; sleep 300", Sink: failingSink{}}, want: env.Result{ExitCode: -1, Killed: 1}, err: env.ErrSink},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			if tt.ctx != nil {
				ctx = tt.ctx
			}
			r, err := sandbox.Execute(ctx, tt.command)
			got := env.Result{ExitCode: r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut, Killed: r.Killed}
			assert.Equal(t, tt.want.Failure != "", r.Failure != "", "failure %q", r.Failure)
			tt.want.Failure = ""
			if string(r.Output) != tt.output || !equal(got, tt.want) || !errors.Is(err, tt.err) {
				t.Errorf("output %q, %+v, error %v", r.Output, got, err)
			}
		})
	}
	long, err := sandbox.Execute(t.Context(), env.Command{Script: "head -c 20000000 /dev/zero"})
	if err != nil || !long.Truncated || long.Bytes != 20_000_000 || len(long.Output) != env.DefaultOutputLimit {
		t.Errorf("kept %d of %d bytes, truncated %v, error %v", len(long.Output), long.Bytes, long.Truncated, err)
	}
	var tree bytes.Buffer
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600))
	assert.NoError(t, errors.Join(sandbox.Get(t.Context(), "file", &tree), sandbox.Put(t.Context(), "copy", &tree)))
	if text, err := os.ReadFile(filepath.Join(dir, "copy", "file")); err != nil || string(text) != "text" {
		t.Errorf("copied %q, %v", text, err)
	}
}

func equal(a, b env.Result) bool {
	return a.ExitCode == b.ExitCode && a.Signal == b.Signal && a.TimedOut == b.TimedOut && a.Killed == b.Killed
}

type failingSink struct{}

func (failingSink) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestDirectClose closes the environment while a command and a background process run.
// It runs alone, like TestDirect.
func TestDirectClose(t *testing.T) {
	dir := t.TempDir()
	sandbox := openAs(t, local.Config{Dir: dir})
	run(t, sandbox, "sleep 300 >/dev/null 2>&1 & echo $! >background")
	done := make(chan error, 1)
	go func() {
		_, err := sandbox.Execute(t.Context(), env.Command{Script: "echo $$ >pid; sleep 300"})
		done <- err
	}()
	await(t, "the command runs", func() bool {
		pid, err := os.ReadFile(dir + "/pid")
		return err == nil && strings.HasSuffix(string(pid), "\n")
	})
	assert.NoError(t, sandbox.Close(t.Context()))
	assert.ErrorIs(t, <-done, env.ErrClosed, "the command")
	for _, file := range []string{"/pid", "/background"} {
		await(t, file+" is gone", func() bool { return !alive(t, dir+file) })
	}
	_, err := sandbox.Execute(t.Context(), env.Command{Script: "true"})
	assert.ErrorIs(t, err, env.ErrClosed, "after the close")
}
