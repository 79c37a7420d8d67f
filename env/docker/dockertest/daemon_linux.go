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
	daemonStopTimeout  = 2 * time.Minute
)

// StartDaemon starts a daemon and stops it after the test. It skips the test if that is
// impossible: it requires root, dockerd and the right to create a network namespace.
func StartDaemon(t testing.TB) *Daemon { return StartDaemonWithDisk(t, 0) }

// StartDaemonWithDisk is StartDaemon with the data directory in a tmpfs of disk bytes;
// 0 means the machine's disk.
func StartDaemonWithDisk(t testing.TB, disk int64) *Daemon {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a second container engine takes root") // skip even with MINI_REQUIRE_DOCKER=1
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
	d := &Daemon{t: t, dir: dir}
	t.Cleanup(d.clean)
	// An empty configuration: dockerd rejects settings that are both in
	// /etc/docker/daemon.json and on the command line.
	if err := os.WriteFile(d.file("config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if disk > 0 {
		d.mountDisk(disk)
	}
	d.Start()
	d.loadImage()
	return d
}

func (d *Daemon) mountDisk(bytes int64) {
	d.t.Helper()
	if err := os.MkdirAll(d.data(), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := unix.Mount("mini-test", d.data(), "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		missing(d.t, "this user cannot mount a disk for a second engine: %v", err)
	}
}

// Engine connects to the daemon for the length of the test.
func (d *Daemon) Engine(cfg docker.EngineConfig) *docker.Engine {
	d.t.Helper()
	cfg.Host = d.Host()
	if cfg.HelperDir == "" {
		cfg.HelperDir = HelperDir(d.t)
	}
	e, err := docker.Open(d.t.Context(), cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			d.t.Error(err)
		}
	})
	return e
}

func (d *Daemon) file(name string) string { return filepath.Join(d.dir, name) }
func (d *Daemon) data() string            { return d.file("data") }

// Socket is the path of the daemon's socket.
func (d *Daemon) Socket() string { return d.file("sock") }

// Host is the daemon's address.
func (d *Daemon) Host() string { return "unix://" + d.Socket() }

// Start starts the daemon, or restarts it, and waits until it answers.
func (d *Daemon) Start() {
	d.t.Helper()
	log, err := os.OpenFile(d.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()                                            //nolint:errcheck // the process has its own descriptor
	ctx := context.WithoutCancel(d.t.Context())                  // clean stops the process after the test
	d.cmd = exec.CommandContext(ctx, "dockerd", "--config-file", //nolint:gosec // all paths are the test's
		d.file("config.json"), "--data-root", d.data(), "--exec-root", d.file("exec"),
		"--pidfile", d.file("pid"), "--host", d.Host(), "--bridge", "none", "--iptables=false")
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET, Setpgid: true}
	// Remove the pid files of a killed daemon. Its containerd exits with it, but may
	// be a zombie for a moment, which dockerd takes for a running process.
	_, _ = os.Remove(d.file("pid")), os.Remove(d.file("exec/containerd/containerd.pid"))
	if err := d.cmd.Start(); err != nil {
		missing(d.t, "a second container engine does not start: %v", err)
	}
	d.exited = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) { // Kill, Stop and clean wait for it
		defer close(ended)
		_ = cmd.Wait() // tests cause "signal: killed"
	}(d.cmd, d.exited)
	c := d.Client()
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
		case <-d.exited:
			missing(d.t, "a second container engine does not start here:\n%s", d.logTail())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("the second engine does not answer after %s: %v\n%s", daemonStartTimeout, err, d.logTail())
		}
	}
}

// logTail returns the end of the daemon's log.
func (d *Daemon) logTail() string {
	b, _ := os.ReadFile(d.file("log")) // there may be none
	return string(b[max(0, len(b)-2000):])
}

// Client returns a plain Docker client, which the caller closes.
func (d *Daemon) Client() *client.Client {
	d.t.Helper()
	c, err := client.NewClientWithOpts(client.WithHost(d.Host()), client.WithAPIVersionNegotiation())
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

// Kill sends SIGKILL. The containers keep running until the daemon is started again.
func (d *Daemon) Kill() { d.end(syscall.SIGKILL); d.killed = true }

// Stop stops the containers, then the daemon.
func (d *Daemon) Stop() { d.end(syscall.SIGTERM) }

// Freeze suspends the daemon: it accepts connections but does not answer until Thaw.
func (d *Daemon) Freeze() { d.signal(syscall.SIGSTOP); d.frozen = true }

// Thaw resumes the daemon.
func (d *Daemon) Thaw() { d.signal(syscall.SIGCONT); d.frozen = false }

func (d *Daemon) signal(sig syscall.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(sig); err != nil {
		d.t.Fatalf("signal the second engine: %v", err)
	}
}

func (d *Daemon) end(sig syscall.Signal) {
	d.t.Helper()
	d.signal(sig)
	select {
	case <-d.exited:
	case <-time.After(daemonStopTimeout):
		_ = d.cmd.Process.Kill() // the test fails below
		d.t.Fatalf("the second engine did not exit within %s of %s:\n%s", daemonStopTimeout, sig, d.logTail())
	}
}

func (d *Daemon) running() bool {
	if d.cmd == nil || d.cmd.Process == nil {
		return false
	}
	select {
	case <-d.exited:
		return false
	default:
		return true
	}
}

// clean stops the daemon and removes all its files.
func (d *Daemon) clean() {
	if d.frozen {
		d.Thaw()
	}
	if d.killed && !d.running() {
		d.Start() // a restarted daemon removes the containers of the killed one
	}
	if d.running() {
		d.removeContainers()
		d.end(syscall.SIGTERM)
	}
	for _, path := range d.mounts() {
		_ = unix.Unmount(path, unix.MNT_DETACH) // RemoveAll reports a mount that remains
	}
	if err := os.RemoveAll(d.dir); err != nil {
		d.t.Errorf("remove files of the second engine: %v", err)
	}
}

func (d *Daemon) removeContainers() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.t.Context()), daemonStopTimeout)
	defer cancel()
	c := d.Client()
	defer c.Close() //nolint:errcheck // nothing was written
	list, err := c.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		d.t.Errorf("list containers of the second engine: %v", err)
	}
	for _, ctr := range list {
		_ = c.ContainerRemove(ctx, ctr.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}) // may have removed itself
	}
}

// mounts returns the mount points below the daemon's directory, innermost first.
func (d *Daemon) mounts() []string {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Error(err)
	}
	var paths []string
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], d.dir+"/") {
			paths = append([]string{fields[1]}, paths...)
		}
	}
	return paths
}
