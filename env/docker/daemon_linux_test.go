package docker_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// Each test has its own engine and is mostly idle, so the tests run in parallel.

// lossTimeout is how soon Execute must return after the sandbox is lost. With
// MINI_TEST_LONG=1 it is maxLossTime, the limit for users. Otherwise it is longer,
// because the machine may be busy with other tests.
var lossTimeout = longerUnlessLong(maxLossTime)

const maxLossTime = 5 * time.Second

func longerUnlessLong(d time.Duration) time.Duration {
	if os.Getenv("MINI_TEST_LONG") == "1" {
		return d
	}
	return 12 * d
}

// startSleep starts a command that does not end by itself. The channel receives the
// error of Execute.
func startSleep(t *testing.T, sandbox *docker.Container) <-chan error {
	t.Helper()
	if _, err := sandbox.Execute(t.Context(), env.Command{Script: "mkdir -p /tmp"}); err != nil {
		t.Fatal(err)
	}
	c := make(chan error, 1)
	go func() {
		_, err := sandbox.Execute(context.WithoutCancel(t.Context()), env.Command{Script: "sleep 600", Timeout: time.Hour})
		c <- err
	}()
	return c
}

// waitLoss returns the error from a channel of startSleep. It fails the test unless the
// error arrives within lossTimeout.
func waitLoss(t *testing.T, c <-chan error) *env.Error {
	t.Helper()
	started := time.Now()
	select {
	case err := <-c:
		e, ok := errors.AsType[*env.Error](err)
		if !ok {
			t.Fatalf("err = %v, want the loss of the sandbox", err)
		}
		t.Logf("after %s: %v (%s)", time.Since(started).Round(time.Millisecond), e, e.Hint)
		if strings.Contains(e.Error(), "\n") || e.Hint == "" {
			t.Errorf("%q, hint %q: want one line, and a hint", e, e.Hint)
		}
		return e
	case <-time.After(lossTimeout):
		t.Fatalf("Execute did not return within %s", lossTimeout)
		return nil
	}
}

// open starts a sandbox in the engine of a test. It ignores the error of Close.
func open(t *testing.T, e *docker.Engine, c docker.Config) *docker.Container {
	t.Helper()
	c.Image = dockertest.SmallImage
	sandbox, err := e.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sandbox.Close(context.WithoutCancel(t.Context())) }) // the engine may be gone
	return sandbox
}

func TestEngineEndsInMidCommand(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*dockertest.Daemon){
		"killed":    (*dockertest.Daemon).Kill,
		"stopped":   (*dockertest.Daemon).Stop,
		"frozen":    (*dockertest.Daemon).Freeze,
		"restarted": func(d *dockertest.Daemon) { d.Stop(); d.Start() },
		"killed and started again": func(d *dockertest.Daemon) {
			d.Kill()
			d.Start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dockertest.StartDaemon(t)
			e := d.Engine(docker.EngineConfig{})
			sandbox := open(t, e, docker.Config{})
			running := startSleep(t, sandbox)
			ended := make(chan struct{})
			go func() { // a restart may take longer than the loss of the sandbox
				defer close(ended)
				end(d)
			}()
			lost := waitLoss(t, running)
			<-ended
			want := []env.Status{env.DaemonUnavailable}
			if name == "stopped" || name == "restarted" { // on a busy machine, the engine still answers after it has killed the container
				want = append(want, env.ContainerDied)
			}
			if !slices.Contains(want, lost.Status) {
				t.Errorf("%v, want %v", lost, want)
			}
			// Later commands fail with the same status: the sandbox is lost.
			started := time.Now()
			if _, err := sandbox.Execute(t.Context(), env.Command{Script: "true"}); status(err) != lost.Status {
				t.Errorf("the next command: %v", err)
			}
			_ = sandbox.Close(t.Context()) // the container cannot be removed without its engine
			if took := time.Since(started); took > lossTimeout {
				t.Errorf("the next command and Close took %s", took)
			}
			switch name {
			case "frozen":
				d.Thaw()
			case "killed", "stopped":
				d.Start()
			}
			// The engine runs again, and removes the containers of the lost sandbox.
			next := open(t, e, docker.Config{})
			if got := output(t, next, "echo back"); got != "back\n" {
				t.Errorf("after the engine is back: %q", got)
			}
			if err := next.Close(t.Context()); err != nil {
				t.Error(err)
			}
			waitFor(t, time.Minute, "no container is left in any state", func() bool { return len(allContainers(t, d)) == 0 })
		})
	}
}

// allContainers returns the names and states of all containers of an engine. It skips
// dead containers without a name: an engine that was killed may list a container that it
// has removed.
func allContainers(t *testing.T, d *dockertest.Daemon) []string {
	t.Helper()
	c := d.Client()
	defer c.Close()
	list, err := c.ContainerList(context.WithoutCancel(t.Context()), container.ListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range list {
		if len(l.Names) == 0 && l.State == container.StateDead {
			continue
		}
		names = append(names, strings.Join(l.Names, ",")+" "+l.State)
	}
	return names
}

// TestStartWithFrozenEngine: Start also returns within lossTimeout.
func TestStartWithFrozenEngine(t *testing.T) {
	t.Parallel()
	d := dockertest.StartDaemon(t)
	e := d.Engine(docker.EngineConfig{})
	open(t, e, docker.Config{}) // creates the helper volume
	d.Freeze()
	c := make(chan error, 1)
	go func() {
		_, err := e.Start(context.WithoutCancel(t.Context()), docker.Config{Image: dockertest.SmallImage})
		c <- err
	}()
	if lost := waitLoss(t, c); lost.Status != env.DaemonUnavailable {
		t.Errorf("%v, want DaemonUnavailable", lost)
	}
	d.Thaw()
}

// TestSocketRemoved: open connections work after the engine's socket was renamed.
func TestSocketRemoved(t *testing.T) {
	t.Parallel()
	d := dockertest.StartDaemon(t)
	e := d.Engine(docker.EngineConfig{})
	sandbox := open(t, e, docker.Config{})
	if err := os.Rename(d.Socket(), d.Socket()+"-away"); err != nil {
		t.Fatal(err)
	}
	// The command takes longer than heartbeatTimeout, but the engine is not silent.
	if got := output(t, sandbox, "sleep 6; echo on"); got != "on\n" {
		t.Errorf("a command without the socket: %q", got)
	}
	fresh, err := docker.Open(t.Context(), docker.EngineConfig{Host: d.Host()})
	if status(err) != env.DaemonUnavailable {
		t.Errorf("%v, %v; want DaemonUnavailable", fresh, err)
	}
	if err := os.Rename(d.Socket()+"-away", d.Socket()); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestContainerKilledFromTheHost(t *testing.T) {
	t.Parallel()
	d := dockertest.StartDaemon(t)
	sandbox := open(t, d.Engine(docker.EngineConfig{}), docker.Config{})
	c := d.Client()
	defer c.Close()
	found, err := c.ContainerInspect(t.Context(), sandbox.Name())
	if err != nil {
		t.Fatal(err)
	}
	running := startSleep(t, sandbox)
	if err := syscall.Kill(found.State.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	lost := waitLoss(t, running)
	if lost.Status != env.ContainerDied || !strings.Contains(lost.Error(), "137") || strings.Contains(lost.Hint, "memory") {
		t.Errorf("%v (%s)", lost, lost.Hint)
	}
}

// TestTmpfsFillsMemory: files in a tmpfs count as memory that cannot be reclaimed. If
// they fill the memory, the sandbox is lost.
func TestTmpfsFillsMemory(t *testing.T) {
	t.Parallel()
	e := dockertest.Engine(t)
	fill := env.Command{Script: "head -c 100M /dev/zero > /dev/shm/f", Timeout: time.Minute}
	sandbox := start(t, e, docker.Config{Image: dockertest.Image(t), MemoryBytes: 32 << 20, ShmBytes: 31 << 20})
	var err error
	commands := 0
	for ; commands < 20 && err == nil; commands++ { // the first shells may find memory
		_, err = sandbox.Execute(t.Context(), fill)
	}
	if lost, ok := errors.AsType[*env.Error](err); !ok || lost.Status != env.ContainerDied || !strings.Contains(lost.Error(), "memory") || lost.Hint == "" {
		t.Errorf("after %d commands: %v, want ContainerDied for want of memory", commands, err)
	}
	t.Logf("after %d commands: %v", commands, err)
	// If only the command's own process uses too much memory, the sandbox stays usable.
	sandbox = start(t, e, docker.Config{Image: dockertest.Image(t), MemoryBytes: 32 << 20})
	if res := run(t, sandbox, "x=$(head -c 100M /dev/zero | tr '\\0' x)"); res.OOMKilled == 0 || res.ExitCode == 0 {
		t.Errorf("%+v, want a command that was killed for want of memory", res)
	}
	if got := output(t, sandbox, "echo on"); got != "on\n" {
		t.Errorf("the next command: %q", got)
	}
}

func TestPauseWithinLimit(t *testing.T) {
	t.Parallel()
	d := dockertest.StartDaemon(t)
	sandbox := open(t, d.Engine(docker.EngineConfig{}), docker.Config{})
	c := d.Client()
	defer c.Close()
	if err := c.ContainerPause(t.Context(), sandbox.Name()); err != nil {
		t.Fatal(err)
	}
	var g errgroup.Group
	var res env.Result
	g.Go(func() (err error) {
		res, err = sandbox.Execute(t.Context(), env.Command{Script: "echo on", Timeout: time.Minute})
		return err
	})
	waitFor(t, time.Minute, "mini has noticed the pause", func() bool { return docker.WasPausedRecently(sandbox) })
	if err := c.ContainerUnpause(t.Context(), sandbox.Name()); err != nil {
		t.Fatal(err)
	}
	if err := g.Wait(); err != nil || string(res.Output) != "on\n" {
		t.Errorf("%q, %v", res.Output, err)
	}
}

func TestPauseExceedsLimit(t *testing.T) {
	t.Parallel()
	d := dockertest.StartDaemon(t)
	sandbox := open(t, d.Engine(docker.EngineConfig{PauseLimit: time.Second}), docker.Config{})
	c := d.Client()
	defer c.Close()
	running := startSleep(t, sandbox)
	if err := c.ContainerPause(t.Context(), sandbox.Name()); err != nil {
		t.Fatal(err)
	}
	if lost := waitLoss(t, running); lost.Status != env.ContainerPaused || !strings.Contains(lost.Error(), "paused") {
		t.Errorf("%v, want ContainerPaused", lost)
	}
	if err := sandbox.Close(t.Context()); err != nil || len(allContainers(t, d)) > 0 {
		t.Errorf("close: %v, and there are %v", err, allContainers(t, d))
	}
}

func TestEngineDiskFull(t *testing.T) {
	t.Parallel()
	d := dockertest.StartDaemonWithDisk(t, 64<<20)
	e := d.Engine(docker.EngineConfig{})
	sandbox := open(t, e, docker.Config{})
	// A full tmpfs of the container is no error.
	res := run(t, sandbox, "head -c 1G /dev/zero > /dev/shm/full")
	if res.ExitCode == 0 || !strings.Contains(string(res.Output), "No space left") {
		t.Errorf("full /dev/shm: %+v", res)
	}
	_, err := sandbox.Execute(t.Context(), env.Command{Script: "head -c 1G /dev/zero > /full"})
	lost, ok := errors.AsType[*env.Error](err)
	if !ok || lost.Status != env.HostDiskFull || lost.Hint == "" {
		t.Fatalf("err = %v, want HostDiskFull", err)
	}
	// The sandbox stays usable, so that the agent's work can be read.
	if got := output(t, sandbox, "echo still here"); got != "still here\n" {
		t.Errorf("%q", got)
	}
	if _, err := e.Start(t.Context(), docker.Config{Image: dockertest.SmallImage}); status(err) != env.HostDiskFull {
		t.Errorf("a start on a full disk: %v, want HostDiskFull", err)
	}
	if err := sandbox.Close(t.Context()); err != nil {
		t.Error(err)
	}
	// The file that filled the disk was removed with its container.
	if err := open(t, e, docker.Config{}).Close(t.Context()); err != nil {
		t.Error(err)
	}
}
