package dockertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"

	"github.com/minibench/mini/env/docker"
)

// Daemon is a separate dockerd for one test, which the test may kill, freeze or fill.
// It has its own data directory and network namespace: a second dockerd in the same
// namespace deletes the bridge of the first. Its containers have network none, and its
// only image is SmallImage.
type Daemon struct {
	t      testing.TB
	dir    string // contains all its files
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has exited
	frozen bool
	killed bool
}

// Timeouts of a daemon; on an idle machine it starts in 0.4 s.
const (
	daemonStartTimeout = 60 * time.Second
	daemonStopTimeout  = 30 * time.Second
)

// StartDaemon starts a daemon and stops it after the test. It skips the test if that
// is impossible: it takes root, dockerd and the right to create a network namespace.
func StartDaemon(t testing.TB) *Daemon { return StartDaemonWithDisk(t, 0) }

// StartDaemonWithDisk is StartDaemon with a data directory of so many bytes, in a
// tmpfs; 0 means the machine's disk.
func StartDaemonWithDisk(t testing.TB, disk int64) *Daemon {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a second container engine takes root") // never required, see missing
	}
	if _, err := exec.LookPath("dockerd"); err != nil {
		missing(t, "a second container engine takes dockerd: %v", err)
	}
	// The path of a Unix socket is limited to about a hundred bytes; t.TempDir is too
	// long.
	dir, err := os.MkdirTemp("", "mini-d-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	s := &Daemon{t: t, dir: dir}
	t.Cleanup(s.clean)
	// An empty configuration: dockerd rejects settings that are both in
	// /etc/docker/daemon.json and on the command line.
	if err := os.WriteFile(s.file("config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if disk > 0 {
		s.mountDisk(disk)
	}
	s.Start()
	s.loadImage()
	return s
}

func (s *Daemon) mountDisk(bytes int64) {
	s.t.Helper()
	if err := os.MkdirAll(s.data(), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := unix.Mount("mini-test", s.data(), "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		missing(s.t, "this user cannot mount a disk for a second engine: %v", err)
	}
}

// Engine connects to the daemon for the length of the test.
func (s *Daemon) Engine(cfg docker.EngineConfig) *docker.Engine {
	s.t.Helper()
	cfg.Host = s.Host()
	if cfg.HelperDir == "" {
		cfg.HelperDir = HelperDir(s.t)
	}
	e, err := docker.Open(s.t.Context(), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return e
}

func (s *Daemon) file(name string) string { return filepath.Join(s.dir, name) }
func (s *Daemon) data() string            { return s.file("data") }

// Socket is the path of the daemon's socket.
func (s *Daemon) Socket() string { return s.file("sock") }

// Host is the daemon's address.
func (s *Daemon) Host() string { return "unix://" + s.Socket() }

// Start starts the daemon, or restarts it, and waits until it answers.
func (s *Daemon) Start() {
	s.t.Helper()
	log, err := os.OpenFile(s.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()                                            //nolint:errcheck // the process has its own descriptor
	ctx := context.WithoutCancel(s.t.Context())                  // clean stops the process after the test
	s.cmd = exec.CommandContext(ctx, "dockerd", "--config-file", //nolint:gosec // all paths are ours
		s.file("config.json"), "--data-root", s.data(), "--exec-root", s.file("exec"),
		"--pidfile", s.file("pid"), "--host", s.Host(), "--bridge", "none", "--iptables=false")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET, Setpgid: true}
	// Remove the pid files of a killed daemon. Its containerd exits with it, but may
	// be a zombie for a moment, which dockerd takes for a running process.
	_, _ = os.Remove(s.file("pid")), os.Remove(s.file("exec/containerd/containerd.pid"))
	if err := s.cmd.Start(); err != nil {
		missing(s.t, "a second container engine does not start: %v", err)
	}
	s.exited = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) { // Kill, Stop and clean wait for it
		defer close(ended)
		_ = cmd.Wait() // tests cause "signal: killed"
	}(s.cmd, s.exited)
	c := s.Client()
	defer c.Close() //nolint:errcheck // nothing was written
	deadline := time.Now().Add(daemonStartTimeout)
	for {
		ping, cancel := context.WithTimeout(ctx, time.Second)
		_, err := c.Ping(ping)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-s.exited:
			missing(s.t, "a second container engine does not start here:\n%s", s.logTail())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the second engine does not answer after %s: %v\n%s", daemonStartTimeout, err, s.logTail())
		}
	}
}

// logTail returns the end of the daemon's log.
func (s *Daemon) logTail() string {
	b, _ := os.ReadFile(s.file("log")) // there may be none
	return string(b[max(0, len(b)-2000):])
}

// Client returns a plain Docker client, which the caller closes.
func (s *Daemon) Client() *client.Client {
	s.t.Helper()
	c, err := client.NewClientWithOpts(client.WithHost(s.Host()), client.WithAPIVersionNegotiation())
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// Kill sends SIGKILL. The containers keep running until the daemon is started again.
func (s *Daemon) Kill() { s.end(syscall.SIGKILL); s.killed = true }

// Stop stops the containers, then the daemon.
func (s *Daemon) Stop() { s.end(syscall.SIGTERM) }

// Freeze suspends the daemon: it accepts connections but does not answer until Thaw.
func (s *Daemon) Freeze() { s.signal(syscall.SIGSTOP); s.frozen = true }

// Thaw resumes the daemon.
func (s *Daemon) Thaw() { s.signal(syscall.SIGCONT); s.frozen = false }

func (s *Daemon) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("signal the second engine: %v", err)
	}
}

func (s *Daemon) end(sig syscall.Signal) {
	s.t.Helper()
	s.signal(sig)
	select {
	case <-s.exited:
	case <-time.After(daemonStopTimeout):
		_ = s.cmd.Process.Kill() // the test fails below
		s.t.Fatalf("the second engine did not exit within %s of %s:\n%s", daemonStopTimeout, sig, s.logTail())
	}
}

func (s *Daemon) running() bool {
	if s.cmd == nil || s.cmd.Process == nil {
		return false
	}
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// clean stops the daemon and removes all its files.
func (s *Daemon) clean() {
	if s.frozen {
		s.Thaw()
	}
	if s.killed && !s.running() {
		s.Start() // a restarted daemon removes the containers of the killed one
	}
	if s.running() {
		s.removeContainers()
		s.end(syscall.SIGTERM)
	}
	for _, path := range s.mounts() {
		_ = unix.Unmount(path, unix.MNT_DETACH) // RemoveAll reports a mount that remains
	}
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Errorf("remove files of the second engine: %v", err)
	}
}

func (s *Daemon) removeContainers() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), daemonStopTimeout)
	defer cancel()
	c := s.Client()
	defer c.Close() //nolint:errcheck // nothing was written
	list, err := c.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		s.t.Errorf("list containers of the second engine: %v", err)
	}
	for _, ctr := range list {
		_ = c.ContainerRemove(ctx, ctr.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}) // may have removed itself
	}
}

// mounts returns the mount points below the daemon's directory, innermost first.
func (s *Daemon) mounts() []string {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Error(err)
	}
	var paths []string
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], s.dir+"/") {
			paths = append([]string{fields[1]}, paths...)
		}
	}
	return paths
}
