package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// newHelperVersion returns a folder with a helper that no volume of the engine
// contains, and the name of its future volume.
func newHelperVersion(t *testing.T) (dir, volumeName string) {
	t.Helper()
	dir = dockertest.HelperDir(t)
	file := filepath.Join(dir, binaries.Name(runtime.GOARCH))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	b = append(b, t.Name()+time.Now().String()...) // data after the end of an ELF file has no effect
	require.NoError(t, os.WriteFile(file, b, 0o600))
	sum := sha256.Sum256(b)
	return dir, "mini-helper-" + hex.EncodeToString(sum[:])[:16] + "-" + runtime.GOARCH
}

// TestConcurrentFills uses engines instead of processes: they share only the daemon.
func TestConcurrentFills(t *testing.T) {
	image, cli := dockertest.Image(t), dockertest.Client(t)
	dir, name := newHelperVersion(t)
	var g errgroup.Group
	for range 4 {
		e := dockertest.EngineWith(t, docker.EngineConfig{HelperDir: dir})
		g.Go(func() error {
			sandbox, err := e.Start(t.Context(), docker.Config{Image: image})
			if err != nil {
				return err
			}
			_, err = sandbox.Execute(t.Context(), env.Command{Script: "true"})
			return errors.Join(err, sandbox.Close(t.Context()))
		})
	}
	assert.NoError(t, g.Wait())
	v, err := cli.VolumeInspect(t.Context(), name)
	if err != nil || v.Labels["mini.helper"] == "" {
		t.Errorf("volume %+v, %v; want a labelled one", v, err)
	}
	assert.NoError(t, cli.VolumeRemove(t.Context(), name, false))
}

func TestPrunedVolume(t *testing.T) {
	image, cli := dockertest.Image(t), dockertest.Client(t)
	dir, name := newHelperVersion(t)
	e := dockertest.EngineWith(t, docker.EngineConfig{HelperDir: dir})
	for range 2 {
		sandbox, err := e.Start(t.Context(), docker.Config{Image: image})
		require.NoError(t, err)
		require.NoError(t, sandbox.Close(t.Context()))
		require.NoError(t, cli.VolumeRemove(t.Context(), name, false))
	}
}

// TestModifiedVolume: a volume with a modified helper is not used, because it would run
// as PID 1 of every sandbox.
func TestModifiedVolume(t *testing.T) {
	image, cli := dockertest.Image(t), dockertest.Client(t)
	dir, name := newHelperVersion(t)
	sandbox := start(t, dockertest.EngineWith(t, docker.EngineConfig{HelperDir: dir}), docker.Config{Image: image})
	t.Cleanup(func() { assert.NoError(t, cli.VolumeRemove(context.WithoutCancel(t.Context()), name, true)) })
	var tree bytes.Buffer
	w := tar.NewWriter(&tree)
	require.NoError(t, errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "h", Mode: 0o555}), w.Close()))
	created, err := cli.ContainerCreate(t.Context(), &container.Config{Image: image, Cmd: []string{"true"}},
		&container.HostConfig{NetworkMode: "none", Binds: []string{name + ":/v"}}, nil, nil, "")
	require.NoError(t, err)
	err = cli.CopyToContainer(t.Context(), created.ID, "/v", &tree, container.CopyToContainerOptions{})
	require.NoError(t, errors.Join(err, cli.ContainerRemove(t.Context(), created.ID, container.RemoveOptions{Force: true})))
	_, err = dockertest.EngineWith(t, docker.EngineConfig{HelperDir: dir}).Start(t.Context(), docker.Config{Image: image})
	if e := asError(err); e == nil || e.Status != env.StartFailed || !strings.Contains(e.Hint, "mini clean --all") {
		t.Errorf("err = %v, want one with a hint to remove the volume", err)
	}
	assert.NoError(t, sandbox.Close(t.Context()))
}

func TestHelperVolumeReadOnly(t *testing.T) {
	sandbox := start(t, dockertest.Engine(t), docker.Config{Image: dockertest.Image(t)})
	if res := run(t, sandbox, "echo > /.mini/x || mount -o remount,rw /.mini || rm -f /.mini/h"); res.ExitCode == 0 {
		t.Errorf("the helper's volume can be written: %q", res.Output)
	}
}

func TestClean(t *testing.T) {
	image, cli := dockertest.Image(t), dockertest.Client(t)
	dir, own := newHelperVersion(t)
	e := dockertest.EngineWith(t, docker.EngineConfig{HelperDir: dir})
	sandbox := start(t, e, docker.Config{Image: image})
	const old, mine = "mini-helper-0123456789abcdef-amd64", "mini-helper-of-my-own"
	for _, name := range []string{old, mine} {
		_, err := cli.VolumeCreate(t.Context(), volume.CreateOptions{Name: name})
		require.NoError(t, err)
	}
	clean := func(all bool) []string {
		removed, err := e.Clean(t.Context(), docker.CleanOptions{IncludeHelpers: all})
		if err != nil {
			t.Error(err)
		}
		var names []string
		for _, l := range removed {
			names = append(names, l.Name)
		}
		return names
	}
	if removed := clean(false); slices.Contains(removed, old) || slices.Contains(removed, own) || slices.Contains(removed, mine) {
		t.Errorf("Clean removed %q; want neither %s nor %s nor %s", removed, old, own, mine)
	}
	if removed := clean(true); !slices.Contains(removed, old) || slices.Contains(removed, own) || slices.Contains(removed, mine) {
		t.Errorf("Clean of everything removed %q; want %s, and neither %s, which is in use, nor %s", removed, old, own, mine)
	}
	require.NoError(t, sandbox.Close(t.Context()))
	if removed := clean(true); !slices.Contains(removed, own) || slices.Contains(removed, mine) {
		t.Errorf("Clean of everything removed %q; want %s, and not %s", removed, own, mine)
	}
	assert.NoError(t, cli.VolumeRemove(t.Context(), mine, false))
	// Start fills the removed volume again.
	sandbox, err := e.Start(t.Context(), docker.Config{Image: image})
	require.NoError(t, err)
	assert.NoError(t, errors.Join(sandbox.Close(t.Context()), cli.VolumeRemove(t.Context(), own, false)))
}

func TestMissingHelper(t *testing.T) {
	e := dockertest.EngineWith(t, docker.EngineConfig{HelperDir: t.TempDir()})
	for what, image := range map[string]string{"local image": dockertest.Image(t), "image to be pulled": "127.0.0.1:1/x"} {
		_, err := e.Start(t.Context(), docker.Config{Image: image})
		if status(err) != env.StartFailed || !errors.Is(err, binaries.ErrNotBuilt) {
			t.Errorf("%s: err = %v, want ErrNotBuilt", what, err)
		}
	}
}

// remountScript remounts all read-only mounts as writable, if the engine permits that,
// and creates a file "planted" in each and replaces the helper.
const remountScript = `
while read -r _ _ _ _ at _; do
	case $at in /|/proc*|/sys*|/dev*) continue;; esac
	mount -o remount,rw,bind "$at" || mount -o remount,rw "$at"
	test -d "$at" && echo planted >"$at/planted"
done </proc/self/mountinfo 2>/dev/null
mount --bind /bin/true /.mini/h 2>/dev/null
rm -f /.mini/h && cp /bin/true /.mini/h
true`

// TestMountingSandboxSharesNothing: a sandbox whose commands can mount shares no volume
// with other sandboxes and no directory with this machine, not even read-only.
func TestMountingSandboxSharesNothing(t *testing.T) {
	image, cli := dockertest.Image(t), dockertest.Client(t)
	dir, volume := newHelperVersion(t) // a volume that no other test uses
	e := dockertest.EngineWith(t, docker.EngineConfig{HelperDir: dir})
	t.Cleanup(func() { assert.NoError(t, cli.VolumeRemove(context.WithoutCancel(t.Context()), volume, true)) })
	admin := docker.Config{
		Image: image, User: "root", CapDrop: []string{}, CapAdd: []string{"SYS_ADMIN"}, NewPrivileges: true, AllowUnsafe: true,
	}
	readOnly := admin
	readOnly.ReadOnly = true
	for name, c := range map[string]docker.Config{"SYS_ADMIN": admin, "read-only": readOnly} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := start(t, e, docker.Config{Image: image})
			sandbox := start(t, e, c)
			if mounts := output(t, sandbox, "cat /proc/self/mountinfo"); strings.Contains(mounts, "/mini-helper-") || strings.Contains(mounts, "/.mini-meeting") {
				t.Errorf("the sandbox has shared mounts:\n%s", mounts)
			}
			for _, one := range []*docker.Container{before, sandbox} {
				assert.Equal(t, "bin\ndr-xr-xr-x\n", output(t, one, "cd /.mini; ls -d [!h]*; cmp bin/mini-tool h && ls -ld bin | cut -c 1-10"), "the helper's directory")
			}
			output(t, sandbox, remountScript)
			assert.Equal(t, "well\n", output(t, sandbox, "echo well"), "after the script, a command prints")
			for when, other := range map[string]func() *docker.Container{
				"before": func() *docker.Container { return before },
				"after":  func() *docker.Container { return start(t, e, docker.Config{Image: image}) },
			} {
				if got := output(t, other(), "ls -A /.mini; cmp -s /.mini/h /bin/true || echo a helper"); strings.Contains(got, "planted") || !strings.Contains(got, "a helper") {
					t.Errorf("a sandbox that was started %s has %q", when, got)
				}
			}
			made, err := cli.ContainerInspect(t.Context(), sandbox.Name())
			if err != nil || len(made.Mounts) != 1 || made.Mounts[0].Name == "" {
				t.Fatalf("mounts %+v, %v; want one volume", made.Mounts, err)
			}
			require.NoError(t, sandbox.Close(t.Context()))
			if _, err := cli.VolumeInspect(t.Context(), made.Mounts[0].Name); !errdefs.IsNotFound(err) {
				t.Errorf("its volume is left: %v", err)
			}
		})
	}
}

// TestConfinedEngine: an engine is not confined exactly if a container with SYS_ADMIN can
// mount as root of the machine.
func TestConfinedEngine(t *testing.T) {
	e := dockertest.Engine(t)
	c := docker.Config{Image: dockertest.Image(t), User: "root", CapDrop: []string{}, CapAdd: []string{"SYS_ADMIN"}, NewPrivileges: true, AllowUnsafe: true}
	engine, err := e.Describe(t.Context())
	require.NoError(t, err)
	sandbox := start(t, e, c)
	mounts := run(t, sandbox, "mkdir /p && mount -t proc proc /p").ExitCode == 0
	isHostRoot := output(t, sandbox, "cat /proc/self/uid_map | tr -s ' '") == " 0 0 4294967295\n"
	if exposed := mounts && isHostRoot; exposed == engine.Confined {
		t.Errorf("can mount: %v, as root of the machine: %v; confined: %v", mounts, isHostRoot, engine.Confined)
	}
}
