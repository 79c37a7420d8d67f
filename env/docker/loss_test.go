package docker_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/client"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestNoEngine(t *testing.T) {
	_, err := docker.Open(t.Context(), docker.EngineConfig{Host: "unix://" + filepath.Join(t.TempDir(), "no.sock")})
	e, ok := errors.AsType[*env.Error](err)
	if !ok || e.Status != env.DaemonUnavailable || e.Hint == "" {
		t.Errorf("err = %v, want DaemonUnavailable with a hint", err)
	}
}

// forge writes a frame that looks like the report of a command to PID 1's stdout.
const forge = `printf '\0\0\0\7X\0\0\0\1{}' > /proc/1/fd/1`

func TestForgedFramesDenied(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	for _, user := range []string{"", "1000"} {
		sandbox := start(t, e, docker.Config{Image: image, User: user})
		for _, script := range []string{forge, "cat /proc/1/environ", "ls -l /proc/1/fd/", "cat /proc/1/mem"} {
			if res := run(t, sandbox, script); res.ExitCode == 0 || !strings.Contains(string(res.Output), "Permission denied") {
				t.Errorf("user %q: %s: exit code %d, %q; want it refused", user, script, res.ExitCode, res.Output)
			}
		}
		assert.Equal(t, "true\n", output(t, sandbox, "echo true"), "user %q: afterwards", user)
	}
}

// TestForgedFrameEndsSandbox: with SYS_PTRACE, commands can write to the helper's
// pipes. A forged frame must end the sandbox.
func TestForgedFrameEndsSandbox(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	if _, err := e.Start(t.Context(), docker.Config{Image: image, CapAdd: []string{"cap_sys_ptrace"}}); err == nil || status(err) != "" {
		t.Errorf("SYS_PTRACE without Force: %v, want a configuration error", err)
	}
	sandbox := start(t, e, docker.Config{Image: image, CapAdd: []string{"SYS_PTRACE"}, AllowUnsafe: true})
	for range 2 {
		_, err := sandbox.Execute(t.Context(), env.Command{Script: `printf 'not a frame' > /proc/1/fd/1; sleep 100`})
		assert.Equal(t, env.ProtocolViolation, status(err), "err = %v, want ProtocolViolation", err)
	}
}

func TestContainerKilledInMidCommand(t *testing.T) {
	e, image, cli := dockertest.Engine(t), dockertest.Image(t), dockertest.Client(t)
	sandbox := start(t, e, docker.Config{Image: image})
	var g errgroup.Group
	g.Go(func() error {
		_, err := sandbox.Execute(t.Context(), env.Command{Script: "sleep 100"})
		return err
	})
	require.NoError(t, cli.ContainerKill(t.Context(), sandbox.Name(), "KILL"))
	err := g.Wait()
	if status(err) != env.ContainerDied || !strings.Contains(err.Error(), "the container was killed from outside (SIGKILL, exit code 137)") {
		t.Errorf("err = %v, want ContainerDied, killed from outside", err)
	}
	if strings.Contains(err.Error(), "stream") || strings.Contains(err.Error(), "EOF") {
		t.Errorf("err = %v, want one that does not mention streams", err)
	}
	if e, ok := errors.AsType[*env.Error](err); ok && strings.Contains(e.Hint, "memory") {
		t.Errorf("hint = %q, want one that does not mention memory", e.Hint)
	}
}

// TestContainerOutOfMemory: a command can make the OOM killer choose the helper, which
// ends the sandbox.
func TestContainerOutOfMemory(t *testing.T) {
	for try := 1; ; try++ {
		sandbox := start(t, dockertest.Engine(t), docker.Config{Image: dockertest.Image(t), MemoryBytes: 64 << 20})
		res, err := sandbox.Execute(t.Context(), env.Command{
			Script: "echo 1000 > /proc/1/oom_score_adj && echo 0 > /proc/self/oom_score_adj && exec python3 -c 'x = bytearray(1 << 30)'",
		})
		if err == nil && res.OOMKilled > 0 && try < 3 {
			continue // the kernel has chosen the command
		}
		e, ok := errors.AsType[*env.Error](err)
		if !ok || e.Status != env.ContainerDied || !strings.Contains(e.Hint, "memory") || strings.Contains(err.Error(), "stream") {
			t.Errorf("err = %v (exit code %d, %q), want ContainerDied with a hint about memory", err, res.ExitCode, res.Output)
		}
		return
	}
}

// engineProxy is a proxy for the engine's socket whose connections can be closed.
type engineProxy struct {
	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn
	workers  sync.WaitGroup
}

// newEngineProxy starts a proxy, and closes it after the test.
func newEngineProxy(t *testing.T) *engineProxy {
	t.Helper()
	host, ok := strings.CutPrefix(dockertest.Client(t).DaemonHost(), "unix://")
	if !ok {
		t.Skipf("the engine is not at a Unix socket but at %s", dockertest.Client(t).DaemonHost())
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	l := &engineProxy{listener: listener}
	l.workers.Go(func() {
		for {
			clientConn, err := listener.Accept()
			if err != nil {
				return
			}
			engineConn, err := new(net.Dialer).DialContext(t.Context(), "unix", host)
			if err != nil {
				_ = clientConn.Close()
				return
			}
			l.copy(clientConn, engineConn)
			l.copy(engineConn, clientConn)
		}
	})
	t.Cleanup(l.closeAll)
	return l
}

func (l *engineProxy) copy(from, to net.Conn) {
	l.mu.Lock()
	l.conns = append(l.conns, from)
	l.mu.Unlock()
	l.workers.Go(func() {
		_, _ = io.Copy(to, from) // either side may be cut
		_ = to.Close()
	})
}

func (l *engineProxy) closeAll() {
	_ = l.listener.Close()
	l.mu.Lock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.workers.Wait()
}

func TestEngineLostInMidCommand(t *testing.T) {
	image, l := dockertest.Image(t), newEngineProxy(t)
	e := dockertest.EngineWith(t, docker.EngineConfig{Host: "unix://" + l.listener.Addr().String()})
	sandbox, err := e.Start(t.Context(), docker.Config{Image: image})
	require.NoError(t, err)
	var g errgroup.Group
	g.Go(func() error {
		_, err := sandbox.Execute(t.Context(), env.Command{Script: "sleep 100"})
		return err
	})
	l.closeAll()
	assert.Equal(t, env.DaemonUnavailable, status(g.Wait()))
	assert.Equal(t, env.DaemonUnavailable, status(sandbox.Close(t.Context())), "Close")
	waitFor(t, time.Minute, "exit at the end of stdin", func() bool { return isRemoved(t, sandbox.Name()) })
	if _, err := e.Start(t.Context(), docker.Config{Image: image}); status(err) != env.DaemonUnavailable {
		t.Errorf("Start: %v, want DaemonUnavailable", err)
	}
}

func TestFixedVersionWarning(t *testing.T) {
	dockertest.Client(t)
	t.Setenv(client.EnvOverrideAPIVersion, "1.40")
	e := dockertest.Engine(t)
	if w := e.Warnings(); len(w) != 1 || !strings.Contains(w[0], "1.40") {
		t.Errorf("warnings = %q", w)
	}
}

// startSleep starts a command that does not end by itself. The channel receives the
// error of Execute.
func startSleep(t *testing.T, sandbox *docker.Container) <-chan error {
	t.Helper()
	_, err := sandbox.Execute(t.Context(), env.Command{Script: "true"})
	require.NoError(t, err)
	c := make(chan error, 1)
	go func() {
		_, err := sandbox.Execute(context.WithoutCancel(t.Context()), env.Command{Script: "sleep 600", Timeout: time.Hour})
		c <- err
	}()
	return c
}

// waitLoss returns the error from a channel of startSleep. It fails the test if
// no error arrives.
func waitLoss(t *testing.T, c <-chan error) *env.Error {
	t.Helper()
	select {
	case err := <-c:
		e, ok := errors.AsType[*env.Error](err)
		if !ok {
			t.Fatalf("err = %v, want the loss of the sandbox", err)
		}
		if strings.Contains(e.Error(), "\n") || e.Hint == "" {
			t.Errorf("%q, hint %q: want one line, and a hint", e, e.Hint)
		}
		return e
	case <-time.After(2 * time.Minute):
		t.Fatal("Execute does not return")
		return nil
	}
}

func TestPauseWithinLimit(t *testing.T) {
	t.Parallel()
	c := dockertest.Client(t)
	sandbox := start(t, dockertest.Engine(t), docker.Config{Image: dockertest.Image(t)})
	require.NoError(t, c.ContainerPause(t.Context(), sandbox.Name()))
	var g errgroup.Group
	var res env.Result
	g.Go(func() (err error) {
		res, err = sandbox.Execute(t.Context(), env.Command{Script: "echo on", Timeout: time.Minute})
		return err
	})
	waitFor(t, time.Minute, "mini has noticed the pause", func() bool { return docker.WasPausedRecently(sandbox) })
	require.NoError(t, c.ContainerUnpause(t.Context(), sandbox.Name()))
	if err := g.Wait(); err != nil || string(res.Output) != "on\n" {
		t.Errorf("%q, %v", res.Output, err)
	}
}

func TestPauseExceedsLimit(t *testing.T) {
	t.Parallel()
	c := dockertest.Client(t)
	sandbox := start(t, dockertest.EngineWith(t, docker.EngineConfig{PauseLimit: time.Second}), docker.Config{Image: dockertest.Image(t)})
	running := startSleep(t, sandbox)
	require.NoError(t, c.ContainerPause(t.Context(), sandbox.Name()))
	if lost := waitLoss(t, running); lost.Status != env.ContainerPaused || !strings.Contains(lost.Error(), "paused") {
		t.Errorf("%v, want ContainerPaused", lost)
	}
	if err := sandbox.Close(t.Context()); err != nil || !isRemoved(t, sandbox.Name()) {
		t.Errorf("close: %v, and the container is removed: %v", err, isRemoved(t, sandbox.Name()))
	}
}
