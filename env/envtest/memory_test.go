package envtest_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/envtest"
)

// TestMemory holds Memory to the conformance suite, with bash as its shell.
func TestMemory(t *testing.T) {
	envtest.Run(t, func(*testing.T) env.Environment {
		return envtest.NewMemory(env.Info{}, bash)
	}, envtest.OnlyGroups("Output", "OutputLimits", "Sinks", "OnOutput", "Submissions", "OneAtATime", "Close"))
}

// bash runs a command on this machine and kills its process group when ctx ends.
func bash(ctx context.Context, c env.Command, out io.Writer) int {
	cmd := exec.CommandContext(ctx, "bash", "-c", c.Script)
	cmd.Dir = os.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	w.Close() //nolint:errcheck // the command has its own descriptor
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 64<<10)
		for {
			n, err := r.Read(buffer)
			if n > 0 {
				_, _ = out.Write(buffer[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left in the background holds the pipe
	<-read
	exit := new(exec.ExitError)
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}
