package envtest_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/envtest"
	"github.com/minibench/mini/env/process"
	"github.com/minibench/mini/internal/assert"
)

// TestMemory holds Memory to the conformance suite, with bash as its shell.
func TestMemory(t *testing.T) {
	envtest.Run(t, func(*testing.T) env.Environment {
		return envtest.NewMemory(env.Info{}, bash)
	}, envtest.OnlyGroups("Output", "OutputLimits", "Sinks", "OnOutput", "Submissions", "OneAtATime"))
}

// bash runs a command on this machine and kills its process group when ctx ends.
func bash(ctx context.Context, c env.Command, out io.Writer) int {
	cmd := exec.CommandContext(ctx, "bash", "-c", c.Script)
	cmd.Dir = os.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	output := process.NewOutput(out, c.Script, env.SubmissionLimit, c.SubmissionMarkers)
	var pipes, writers []*os.File
	var copied sync.WaitGroup
	for _, to := range output.Writers() {
		r, w, err := os.Pipe()
		if err != nil {
			panic(err)
		}
		defer r.Close()
		pipes, writers = append(pipes, r), append(writers, w)
		if cmd.Stderr = w; cmd.Stdout == nil {
			cmd.Stdout = w
		}
		copied.Go(func() { _, _ = io.Copy(to, r) })
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	for _, w := range writers {
		w.Close() //nolint:errcheck // the command has its own descriptor
	}
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left in the background
	for _, r := range pipes {
		_ = r.SetReadDeadline(time.Now().Add(time.Second)) // a process in another group may hold the pipe
	}
	copied.Wait()
	output.Finish(err == nil, new(env.Result))
	exit := new(exec.ExitError)
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// A closed Memory ends the command that runs, and runs no other.
func TestMemoryClose(t *testing.T) {
	started := make(chan struct{})
	m := envtest.NewMemory(env.Info{}, func(ctx context.Context, _ env.Command, _ io.Writer) int {
		close(started)
		<-ctx.Done()
		return 0
	})
	go func() {
		<-started
		_ = m.Close(context.Background())
	}()
	_, err := m.Execute(t.Context(), env.Command{})
	assert.ErrorIs(t, err, env.ErrClosed, "the command that ran")
	_, err = m.Execute(t.Context(), env.Command{})
	assert.ErrorIs(t, err, env.ErrClosed, "the next command")
}

// A command reaches its timeout; a script without an output is unknown.
func TestMemoryTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := envtest.NewMemory(env.Info{}, func(ctx context.Context, _ env.Command, out io.Writer) int {
			_, _ = io.WriteString(out, "so far")
			<-ctx.Done()
			return 0
		})
		r, err := m.Execute(t.Context(), env.Command{Timeout: time.Hour})
		if err != nil || !r.TimedOut || r.ExitCode != -1 || string(r.Output) != "so far" || r.Duration != time.Hour {
			t.Errorf("%+v, %v", r, err)
		}
		m = envtest.NewMemory(env.Info{}, envtest.Outputs(map[string]string{"ls": "a\n"}))
		for script, code := range map[string]int{"ls": 0, "pwd": 127} {
			if r, err := m.Execute(t.Context(), env.Command{Script: script}); err != nil || r.ExitCode != code {
				t.Errorf("%s: %+v, %v", script, r, err)
			}
		}
	})
}
