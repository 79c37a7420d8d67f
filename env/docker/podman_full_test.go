//go:build full && linux

package docker_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/envtest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// TestPodman tests podman with its Docker-compatible socket: the conformance suite,
// isolation, errors and removal.
func TestPodman(t *testing.T) {
	t.Parallel()
	cli := podman(t)
	e := dockertest.EngineWith(t, docker.EngineConfig{Host: cli.DaemonHost()})
	base := docker.Config{Image: dockertest.BaseImage, Instance: "podman"}

	t.Run("Conformance", func(t *testing.T) {
		envtest.Run(t, func(t *testing.T) env.Environment {
			t.Helper()
			return start(t, e, base)
		})
	})
	t.Run("Isolation", func(t *testing.T) {
		c := base
		c.User, c.ReadOnly, c.MemoryBytes, c.ShmBytes, c.PIDs = "1234", true, 256<<20, 16<<20, 100
		c.Tmpfs = map[string]int64{"/scratch": 8 << 20}
		// Ulimits are not set: with one set, podman ignores its configured defaults for
		// the others, and requests more than root may have without CAP_SYS_RESOURCE.
		//
		// CapEff is not compared: podman gives added capabilities to every user, Docker
		// only to root.
		sandbox := start(t, e, c)
		got := output(t, sandbox, `id -u; touch /usr/a 2>/dev/null || echo read-only; touch /tmp/a; df -k --output=size /scratch /dev/shm | tail -2 | tr -d ' '
			`+memoryLimit+`; grep -E '^(CapBnd|NoNewPrivs)' /proc/self/status; tail -n +2 /proc/net/route`)
		want := "1234\nread-only\n8192\n16384\n268435456\nCapBnd:\t00000000800000fb\nNoNewPrivs:\t1\n"
		if got != want || sandbox.Info().Network {
			t.Errorf("commands see %q, want %q; network %v", got, want, sandbox.Info().Network)
		}
	})
	t.Run("Network", func(t *testing.T) { // podman puts no container without a network into another one
		sandbox := start(t, e, base)
		if err := sandbox.ChangeNetwork(t.Context(), "bridge"); err == nil {
			t.Error("no error")
		} else {
			t.Log(err)
		}
		assert.Equal(t, "lo\n", output(t, sandbox, "ls /sys/class/net"), "interfaces")
	})
	t.Run("Can mount", func(t *testing.T) {
		c := base
		c.User, c.CapDrop, c.CapAdd, c.NewPrivileges, c.AllowUnsafe = "root", []string{}, []string{"SYS_ADMIN"}, true, true
		sandbox := start(t, e, c)
		if got := output(t, sandbox, remountScript+"; cat /proc/self/mountinfo"); strings.Contains(got, "/mini-helper-") || strings.Contains(got, "/.mini-meeting") {
			t.Errorf("the sandbox has shared mounts:\n%s", got)
		}
		later := dockertest.EngineWith(t, docker.EngineConfig{Host: cli.DaemonHost()}) // checks the volume again
		if got := output(t, start(t, later, base), "ls -A /.mini"); strings.Contains(got, "planted") {
			t.Errorf("another sandbox has %q", got)
		}
		require.NoError(t, sandbox.Close(t.Context()))
		if list, err := cli.VolumeList(t.Context(), volume.ListOptions{}); err != nil || len(list.Volumes) != 1 {
			t.Errorf("left behind: %d volumes, %v; want only that of the helper", len(list.Volumes), err)
		}
	})
	t.Run("Refused", func(t *testing.T) {
		c := base
		c.User = "nobody-of-that-name"
		sandbox, err := e.Start(t.Context(), c)
		if err == nil {
			t.Fatal(sandbox.Close(t.Context()))
		}
		if failure := asError(err); failure.Status != env.StartFailed || !strings.Contains(failure.Hint, "environment.user") {
			t.Errorf("err = %v, hint %q", err, failure.Hint)
		}
	})
	t.Run("Killed", func(t *testing.T) {
		sandbox := start(t, e, base)
		killed := make(chan error, 1)
		go func() { killed <- cli.ContainerKill(context.WithoutCancel(t.Context()), sandbox.Name(), "KILL") }()
		_, err := sandbox.Execute(t.Context(), env.Command{Script: "sleep 1000", Timeout: time.Hour})
		assert.Equal(t, env.ContainerDied, status(err), "err = %v, want ContainerDied", err)
		assert.NoError(t, <-killed)
	})
	t.Run("Close", func(t *testing.T) {
		for range 3 {
			sandbox := start(t, e, base)
			output(t, sandbox, "sleep 1000 & true")
			require.NoError(t, sandbox.Close(t.Context()))
			if _, err := cli.ContainerInspect(t.Context(), sandbox.Name()); !errdefs.IsNotFound(err) {
				t.Errorf("after Close: %v", err)
			}
		}
	})
	list, err := cli.ContainerList(t.Context(), container.ListOptions{All: true})
	if err != nil || len(list) > 0 {
		t.Errorf("left behind: %d containers, %v", len(list), err)
	}
}

// podman starts podman's service with its own store, loads the base image into it, and
// removes both after the test.
func podman(t *testing.T) *client.Client {
	t.Helper()
	docker := dockertest.Client(t)
	dockertest.Image(t)
	for _, program := range []string{"podman", "conmon", "runc"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, "%s is not installed; scripts/podman.sh installs it", program)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("the tests run podman as root only: other users cannot set limits with cgroup v1")
	}
	dir := t.TempDir()
	settings := podmanSettings(t, dir)
	t.Cleanup(func() {
		waitFor(t, 2*time.Minute, "all podman processes have exited", func() bool { return !hasProcesses(t, dir) })
		unmount(t, dir)
	})
	socket := "unix://" + filepath.Join(dir, "s")

	var log bytes.Buffer
	service := exec.Command("podman", "system", "service", "--time=0", socket) // stopped by a cleanup function below
	service.Env = append(os.Environ(), settings...)
	service.Stdout, service.Stderr = &log, &log
	service.Dir = dir // conmon writes a file here when a container runs out of memory
	service.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, service.Start())
	t.Cleanup(func() {
		_ = service.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = service.Wait()
		if t.Failed() {
			t.Logf("podman's log:\n%s", noSystemd.ReplaceAllString(log.String(), ""))
		}
	})
	cli, err := client.NewClientWithOpts(client.WithHost(socket), client.WithAPIVersionNegotiation())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cli.Close()) })
	waitFor(t, 2*time.Minute, "podman answers", func() bool {
		_, err := cli.Ping(t.Context())
		return err == nil
	})
	copyImage(t, docker, cli)
	return cli
}

// podmanSettings writes configuration files that keep podman's data in dir and that
// work without systemd and without the right to raise limits. It returns environment
// variables for podman.
func podmanSettings(t *testing.T, dir string) []string {
	t.Helper()
	// Podman's Docker API swaps the soft and the hard limit, so they must be equal.
	conf := fmt.Sprintf(`[containers]
default_ulimits = ["nofile=4096:4096", "nproc=32768:32768"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = %[1]q
static_dir = %[2]q
volume_path = %[3]q
[network]
network_config_dir = %[4]q
`, dir+"/tmp", dir+"/static", dir+"/volumes", dir+"/net")
	storage := fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = %q\n"+
		"[storage.options.overlay]\nskip_mount_home = \"true\"\n", dir+"/root", dir+"/run")
	for name, text := range map[string]string{"containers.conf": conf, "storage.conf": storage} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, name := range []string{"tmp", "net"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	return []string{
		"CONTAINERS_CONF=" + dir + "/containers.conf", "CONTAINERS_STORAGE_CONF=" + dir + "/storage.conf",
	}
}

// copyImage copies the base image from one engine to another.
func copyImage(t *testing.T, from, to *client.Client) {
	t.Helper()
	image, err := from.ImageSave(t.Context(), []string{dockertest.BaseImage})
	require.NoError(t, err)
	defer image.Close()
	loaded, err := to.ImageLoad(t.Context(), image)
	require.NoError(t, err)
	defer loaded.Body.Close()
	_, err = io.Copy(io.Discard, loaded.Body)
	require.NoError(t, err)
}

// noSystemd matches a line that podman logs for every container on a machine without
// systemd.
var noSystemd = regexp.MustCompile(`(?m)^.*unable to get systemd connection.*\n`)

// hasProcesses reports whether a process has the folder in its arguments: podman cleans
// up in background processes.
func hasProcesses(t *testing.T, dir string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	return slices.ContainsFunc(files, func(file string) bool {
		args, err := os.ReadFile(file)
		return err == nil && bytes.Contains(args, []byte(dir+"/"))
	})
}

// unmount unmounts all mounts below a folder, newest first.
func unmount(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open("/proc/self/mountinfo")
	require.NoError(t, err)
	defer f.Close()
	var targets []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			targets = append(targets, fields[4])
		}
	}
	for _, target := range slices.Backward(targets) {
		if err := syscall.Unmount(target, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", target, err)
		}
	}
}

// missing skips the test, or fails it with MINI_REQUIRE_DOCKER=1.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("MINI_REQUIRE_DOCKER") == "1" {
		t.Fatalf(format+" (MINI_REQUIRE_DOCKER=1)", args...)
	}
	t.Skipf(format, args...)
}
