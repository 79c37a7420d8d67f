package mcp

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/minibench/mini/internal/procgroup"
)

// exitTimeout is how long a program may take to exit after its input is closed.
const exitTimeout = time.Second

// maxStderr is the number of bytes that are kept of the end of a program's
// standard error.
const maxStderr = 2 << 10

// serverProcess is a server that runs as a program on this machine.
type serverProcess struct {
	cmd    *exec.Cmd
	group  *procgroup.Group
	stdin  io.Closer
	stdout *os.File // mini's end of the pipe
	stderr *procgroup.TailBuffer
	exited chan struct{}
}

// openStdio starts the program and opens a session with it.
func (s *Server) openStdio(ctx context.Context) (*session, error) {
	path, err := exec.LookPath(s.config.Command[0])
	if err != nil {
		return nil, fmt.Errorf("program not found: %.80q", s.config.Command[0])
	}
	// The program outlives this call, so it has no context.
	cmd := exec.Command(path, s.config.Command[1:]...) //nolint:gosec,noctx // the user's own program, which outlives ctx
	process := &serverProcess{cmd: cmd, group: procgroup.New(cmd, s.config.Env), stderr: &procgroup.TailBuffer{Limit: maxStderr}, exited: make(chan struct{})}
	cmd.Stderr, cmd.WaitDelay = process.stderr, exitTimeout
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the program: %w", err)
	}
	// Not StdoutPipe: Wait would close it while the session still reads.
	stdout, stdoutWriter, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the program: %w", err)
	}
	cmd.Stdout, process.stdin, process.stdout = stdoutWriter, stdin, stdout
	err = process.group.Start()
	stdoutWriter.Close() //nolint:errcheck // the program has its own copy
	if err != nil {
		stdout.Close() //nolint:errcheck // nothing was read
		return nil, fmt.Errorf("start the program: %w", err)
	}
	go func() {
		defer close(process.exited)
		_ = process.group.Wait() // the session reports why the program exited
	}()
	sess := &session{beforeClose: process.stop, afterClose: func() { stdout.Close() }, lastStderr: process.lastStderr} //nolint:errcheck // read only
	return s.handshake(ctx, &sdk.IOTransport{Reader: io.NopCloser(stdout), Writer: stdin, MaxLineLength: maxFrame}, sess)
}

// stderrDelay is how long lastStderr waits for a program that may be exiting.
const stderrDelay = time.Second

// lastStderr returns the end of the program's standard error.
func (p *serverProcess) lastStderr() string {
	timer := time.NewTimer(stderrDelay)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
	}
	text, _ := p.stderr.Text()
	return strings.TrimSpace(text)
}

// stop closes the program's input and waits for the program to exit, at most
// exitTimeout. Then it kills all processes that are left.
func (p *serverProcess) stop() {
	p.stdin.Close() //nolint:errcheck // asks the program to exit
	timer := time.NewTimer(exitTimeout)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
	}
	_ = p.group.Kill() // also processes that left its group
	<-p.exited
}
