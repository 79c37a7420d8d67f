package dockertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"

	"github.com/minibench/mini/env/docker"
)

// Second is a container engine of the test's own, which may be killed, frozen
// and filled. It has a data root and a network namespace of its own: a second
// engine in the first one's deletes the first one's bridge. Its containers have
// the network none, and its one image is SmallImage.
type Second struct {
	t      testing.TB
	dir    string // of everything it keeps
	cmd    *exec.Cmd
	ended  chan struct{} // closed when cmd was waited for
	frozen bool
}

// How long a second engine may take; on a quiet machine it starts in 0.4 s.
const (
	secondStart = 60 * time.Second
	secondStop  = 30 * time.Second
)

// Daemon starts a second engine, and skips the test where that cannot be done:
// it takes root, dockerd and the right to make a network namespace. Whatever it
// left is gone after the test.
func Daemon(t testing.TB) *Second { return DaemonWithDisk(t, 0) }

// DaemonWithDisk is Daemon with a disk of so many bytes, in memory, for everything
// that the engine keeps; 0 means the machine's.
func DaemonWithDisk(t testing.TB, disk int64) *Second {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a second container engine takes root") // and so none is required of anybody else
	}
	if _, err := exec.LookPath("dockerd"); err != nil {
		missing(t, "a second container engine takes dockerd: %v", err)
	}
	// The path of a socket has room for about a hundred bytes, fewer than
	// t.TempDir takes.
	dir, err := os.MkdirTemp("", "mini-d-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	s := &Second{t: t, dir: dir}
	t.Cleanup(s.clean)
	// The machine's own configuration may name the same settings, which dockerd
	// refuses.
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

func (s *Second) mountDisk(bytes int64) {
	s.t.Helper()
	if err := os.MkdirAll(s.data(), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := unix.Mount("mini-test", s.data(), "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		missing(s.t, "this user cannot mount a disk for a second engine: %v", err)
	}
}

// Engine connects to it for the length of the test. An engine that is gone by
// then is closed all the same.
func (s *Second) Engine(cfg docker.EngineConfig) *docker.Engine {
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

func (s *Second) file(name string) string { return filepath.Join(s.dir, name) }
func (s *Second) data() string            { return s.file("data") }

// Socket is the file that it listens at.
func (s *Second) Socket() string { return s.file("sock") }

// Host is its address.
func (s *Second) Host() string { return "unix://" + s.Socket() }

// Start starts it, also again, and waits until it answers.
func (s *Second) Start() {
	s.t.Helper()
	log, err := os.OpenFile(s.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()                                            //nolint:errcheck // the process has its own
	ctx := context.WithoutCancel(s.t.Context())                  // clean ends it, and needs it after the test
	s.cmd = exec.CommandContext(ctx, "dockerd", "--config-file", //nolint:gosec // paths of our own
		s.file("config.json"), "--data-root", s.data(), "--exec-root", s.file("exec"),
		"--pidfile", s.file("pid"), "--host", s.Host(), "--bridge", "none", "--iptables=false")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET, Setpgid: true}
	// What one has left that was killed. Its containerd died with it, but may
	// stay a zombie for a moment, which dockerd takes for life.
	_, _ = os.Remove(s.file("pid")), os.Remove(s.file("exec/containerd/containerd.pid"))
	if err := s.cmd.Start(); err != nil {
		missing(s.t, "a second container engine does not start: %v", err)
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) { // Kill, Stop and clean wait for it
		defer close(ended)
		_ = cmd.Wait() // "signal: killed" is what tests want
	}(s.cmd, s.ended)
	c := s.Client()
	defer c.Close() //nolint:errcheck // nothing was written
	deadline := time.Now().Add(secondStart)
	for {
		ping, cancel := context.WithTimeout(ctx, time.Second)
		_, err := c.Ping(ping)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-s.ended:
			missing(s.t, "a second container engine does not start here:\n%s", s.lastWords())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the second engine does not answer after %s: %v\n%s", secondStart, err, s.lastWords())
		}
	}
}

// lastWords is the end of its log.
func (s *Second) lastWords() string {
	b, _ := os.ReadFile(s.file("log")) // there may be none
	return string(b[max(0, len(b)-2000):])
}

// Client is a plain connection to it, closed by the caller.
func (s *Second) Client() *client.Client {
	s.t.Helper()
	c, err := client.NewClientWithOpts(client.WithHost(s.Host()), client.WithAPIVersionNegotiation())
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// Kill is kill -9. Its containers go on for as long as nobody starts it again.
func (s *Second) Kill() { s.end(syscall.SIGKILL) }

// Stop stops it in good order, containers first.
func (s *Second) Stop() { s.end(syscall.SIGTERM) }

// Freeze makes it answer nothing, though it accepts connections; Thaw is the
// end of that.
func (s *Second) Freeze() { s.signal(syscall.SIGSTOP); s.frozen = true }

// Thaw lets it go on.
func (s *Second) Thaw() { s.signal(syscall.SIGCONT); s.frozen = false }

func (s *Second) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("signal the second engine: %v", err)
	}
}

func (s *Second) end(sig syscall.Signal) {
	s.t.Helper()
	s.signal(sig)
	select {
	case <-s.ended:
	case <-time.After(secondStop):
		_ = s.cmd.Process.Kill() // and then say so
		s.t.Fatalf("the second engine did not end within %s of %s:\n%s", secondStop, sig, s.lastWords())
	}
}

func (s *Second) running() bool {
	if s.cmd == nil || s.cmd.Process == nil {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// clean ends everything that runs, and removes everything that lies about.
func (s *Second) clean() {
	if s.running() {
		if s.frozen {
			s.Thaw()
		}
		s.removeContainers()
		s.end(syscall.SIGTERM)
	}
	// What a killed engine left: the processes that have its folder on their
	// command line, and what they are parents of.
	for range 3 {
		for _, pid := range s.strays() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
		}
	}
	for _, path := range s.mounts() {
		_ = unix.Unmount(path, unix.MNT_DETACH) // RemoveAll says what is in the way
	}
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Errorf("remove what the second engine kept: %v", err)
	}
}

func (s *Second) removeContainers() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), secondStop)
	defer cancel()
	c := s.Client()
	defer c.Close() //nolint:errcheck // nothing depends on it
	list, err := c.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		s.t.Errorf("list what the second engine has left: %v", err)
	}
	for _, left := range list {
		_ = c.ContainerRemove(ctx, left.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}) // one may just remove itself
	}
}

// strays are the shims of containers that outlived their engine, with the
// containers' first processes.
func (s *Second) strays() []int {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil { // the pattern is right
		return nil
	}
	shims := map[int]bool{}
	for _, file := range files {
		line, err := os.ReadFile(file) //nolint:gosec // of /proc
		if err == nil && bytes.Contains(line, []byte(s.dir+"/")) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
				shims[pid] = true
			}
		}
	}
	var found []int
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && (shims[pid] || shims[parentOf(pid)]) {
			found = append(found, pid)
		}
	}
	return found
}

func parentOf(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	s := string(b)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	const ppid = 1 // field 4 of proc_pid_stat(5)
	if len(fields) <= ppid {
		return 0
	}
	n, _ := strconv.Atoi(fields[ppid]) // the kernel writes numbers
	return n
}

// mounts are those below its folder, the innermost first.
func (s *Second) mounts() []string {
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
