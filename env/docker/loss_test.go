package docker_test

import (
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
)

func TestNoEngine(t *testing.T) {
	_, err := docker.Open(t.Context(), docker.EngineConfig{Host: "unix://" + filepath.Join(t.TempDir(), "no.sock")})
	e, ok := errors.AsType[*env.Error](err)
	if !ok || e.Status != env.DaemonUnavailable || e.Hint == "" {
		t.Errorf("err = %v, want DaemonUnavailable with a hint", err)
	}
}

// forge writes what looks like the report of a command into PID 1's stdout.
const forge = `printf '\0\0\0\7X\0\0\0\1{}' > /proc/1/fd/1`

func TestForgedFramesDoNotArrive(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	for _, user := range []string{"", "1000"} {
		box := start(t, e, docker.Config{Image: image, User: user})
		for _, script := range []string{forge, "cat /proc/1/environ", "ls -l /proc/1/fd/", "cat /proc/1/mem"} {
			if res := run(t, box, script); res.ExitCode == 0 || !strings.Contains(string(res.Output), "Permission denied") {
				t.Errorf("user %q: %s: exit code %d, %q; want it refused", user, script, res.ExitCode, res.Output)
			}
		}
		if got := output(t, box, "echo true"); got != "true\n" {
			t.Errorf("user %q: afterwards: %q", user, got)
		}
	}
}

// With SYS_PTRACE the helper's pipes are open to commands: forged frames arrive,
// and must end the sandbox.
func TestForgedFrameIsAViolation(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	if _, err := e.Start(t.Context(), docker.Config{Image: image, CapAdd: []string{"cap_sys_ptrace"}}); err == nil || status(err) != "" {
		t.Errorf("SYS_PTRACE without force: %v, want a plain refusal", err)
	}
	box := start(t, e, docker.Config{Image: image, CapAdd: []string{"SYS_PTRACE"}, Force: true})
	for range 2 {
		_, err := box.Execute(t.Context(), env.Command{Script: `printf 'not a frame' > /proc/1/fd/1; sleep 10`})
		if status(err) != env.ProtocolViolation {
			t.Errorf("err = %v, want ProtocolViolation", err)
		}
	}
}

func TestContainerKilledInMidCommand(t *testing.T) {
	e, image, cli := dockertest.Engine(t), dockertest.Image(t), dockertest.Client(t)
	box := start(t, e, docker.Config{Image: image})
	var g errgroup.Group
	g.Go(func() error {
		_, err := box.Execute(t.Context(), env.Command{Script: "sleep 100"})
		return err
	})
	if err := cli.ContainerKill(t.Context(), box.Name(), "KILL"); err != nil {
		t.Fatal(err)
	}
	err := g.Wait()
	if status(err) != env.ContainerDied || !strings.Contains(err.Error(), "the container was killed from outside (SIGKILL, exit code 137)") {
		t.Errorf("err = %v, want ContainerDied, killed from outside", err)
	}
	if strings.Contains(err.Error(), "stream") || strings.Contains(err.Error(), "EOF") {
		t.Errorf("err = %v, which speaks of streams", err)
	}
	if e, ok := errors.AsType[*env.Error](err); ok && strings.Contains(e.Hint, "memory") {
		t.Errorf("hint = %q, though memory had nothing to do with it", e.Hint)
	}
}

// A command can make the helper the kernel's first choice, and so end its own
// sandbox.
func TestContainerOutOfMemory(t *testing.T) {
	box := start(t, dockertest.Engine(t), docker.Config{Image: dockertest.Image(t), MemoryBytes: 64 << 20})
	_, err := box.Execute(t.Context(), env.Command{
		Script: "echo 1000 > /proc/1/oom_score_adj && echo 0 > /proc/self/oom_score_adj && exec python3 -c 'x = bytearray(1 << 30)'",
	})
	e, ok := errors.AsType[*env.Error](err)
	if !ok || e.Status != env.ContainerDied || !strings.Contains(e.Hint, "memory") || strings.Contains(err.Error(), "stream") {
		t.Errorf("err = %v, want ContainerDied with a hint about memory", err)
	}
}

// line is a connection to the engine that can be cut.
type line struct {
	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn
	workers  sync.WaitGroup
}

// newLine listens beside the engine's socket and passes everything on.
func newLine(t *testing.T) *line {
	t.Helper()
	host, ok := strings.CutPrefix(dockertest.Client(t).DaemonHost(), "unix://")
	if !ok {
		t.Skipf("the engine is not at a Unix socket but at %s", dockertest.Client(t).DaemonHost())
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	l := &line{listener: listener}
	l.workers.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := new(net.Dialer).DialContext(t.Context(), "unix", host)
			if err != nil {
				_ = near.Close()
				return
			}
			l.pass(near, far)
			l.pass(far, near)
		}
	})
	t.Cleanup(l.cut)
	return l
}

func (l *line) pass(from, to net.Conn) {
	l.mu.Lock()
	l.conns = append(l.conns, from)
	l.mu.Unlock()
	l.workers.Go(func() {
		_, _ = io.Copy(to, from) // either side may be cut
		_ = to.Close()
	})
}

func (l *line) cut() {
	_ = l.listener.Close()
	l.mu.Lock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.workers.Wait()
}

func TestEngineLostInMidCommand(t *testing.T) {
	image, l := dockertest.Image(t), newLine(t)
	e := dockertest.EngineWith(t, docker.EngineConfig{Host: "unix://" + l.listener.Addr().String()})
	box, err := e.Start(t.Context(), docker.Config{Image: image})
	if err != nil {
		t.Fatal(err)
	}
	var g errgroup.Group
	g.Go(func() error {
		_, err := box.Execute(t.Context(), env.Command{Script: "sleep 100"})
		return err
	})
	l.cut()
	if err := g.Wait(); status(err) != env.DaemonUnavailable {
		t.Errorf("err = %v, want DaemonUnavailable", err)
	}
	if err := box.Close(t.Context()); status(err) != env.DaemonUnavailable {
		t.Errorf("Close: %v, want DaemonUnavailable", err)
	}
	within(t, 5*time.Second, "container gone, its stdin having ended", func() bool { return gone(t, box.Name()) })
	if _, err := e.Start(t.Context(), docker.Config{Image: image}); status(err) != env.DaemonUnavailable {
		t.Errorf("Start: %v, want DaemonUnavailable", err)
	}
}

func TestWarnsOfAFixedVersion(t *testing.T) {
	dockertest.Client(t)
	t.Setenv(client.EnvOverrideAPIVersion, "1.40")
	e := dockertest.Engine(t)
	if w := e.Warnings(); len(w) != 1 || !strings.Contains(w[0], "1.40") {
		t.Errorf("warnings = %q", w)
	}
}
