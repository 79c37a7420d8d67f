package local_test

import (
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
	"github.com/minibench/mini/env/local"
)

// alive reports whether the process whose PID is in a file exists; zombies count.
func alive(t *testing.T, pidFile string) bool {
	t.Helper()
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join("/proc", strings.TrimSpace(string(pid))))
	return err == nil
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
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
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
	if _, err := sandbox.Execute(t.Context(), env.Command{Script: "sleep 60", Timeout: 100 * time.Millisecond}); err != nil {
		t.Error(err)
	}
	if err := sandbox.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := sleep.Process.Signal(os.Kill); err != nil {
		t.Errorf("own program is gone: %v", err)
	}
	if err := sleep.Wait(); err == nil {
		t.Error("a killed program ended well")
	}
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
	if err := sandbox.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, env.ErrClosed) {
		t.Errorf("the command returned %v, want env.ErrClosed", err)
	}
	if alive(t, dir+"/pid") {
		t.Error("the command lives on")
	}
}
