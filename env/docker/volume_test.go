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

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/helper/binaries"
)

// newHelperVersion returns a folder with a helper that no volume of the engine
// contains, and the name of its future volume.
func newHelperVersion(t *testing.T) (dir, volumeName string) {
	t.Helper()
	dir = dockertest.HelperDir(t)
	file := filepath.Join(dir, binaries.Name(runtime.GOARCH))
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, t.Name()+time.Now().String()...) // data after the end of an ELF file has no effect
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
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
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	v, err := cli.VolumeInspect(t.Context(), name)
	if err != nil || v.Labels["mini.helper"] == "" {
		t.Errorf("volume %+v, %v; want a labelled one", v, err)
	}
	if err := cli.VolumeRemove(t.Context(), name, false); err != nil {
		t.Error(err)
	}
}

func TestPrunedVolume(t *testing.T) {
	image, cli := dockertest.Image(t), dockertest.Client(t)
	dir, name := newHelperVersion(t)
	e := dockertest.EngineWith(t, docker.EngineConfig{HelperDir: dir})
	for range 2 {
		sandbox, err := e.Start(t.Context(), docker.Config{Image: image})
		if err != nil {
			t.Fatal(err)
		}
		if err := sandbox.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := cli.VolumeRemove(t.Context(), name, false); err != nil {
			t.Fatal(err)
		}
	}
}

// TestModifiedVolume: a volume with a modified helper is not used, because it would run
// as PID 1 of every sandbox.
func TestModifiedVolume(t *testing.T) {
	image, cli := dockertest.Image(t), dockertest.Client(t)
	dir, name := newHelperVersion(t)
	sandbox := start(t, dockertest.EngineWith(t, docker.EngineConfig{HelperDir: dir}), docker.Config{Image: image})
	t.Cleanup(func() {
		if err := cli.VolumeRemove(context.WithoutCancel(t.Context()), name, true); err != nil {
			t.Error(err)
		}
	})
	var tree bytes.Buffer
	w := tar.NewWriter(&tree)
	if err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "h", Mode: 0o555}), w.Close()); err != nil {
		t.Fatal(err)
	}
	created, err := cli.ContainerCreate(t.Context(), &container.Config{Image: image, Cmd: []string{"true"}},
		&container.HostConfig{NetworkMode: "none", Binds: []string{name + ":/v"}}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	err = cli.CopyToContainer(t.Context(), created.ID, "/v", &tree, container.CopyToContainerOptions{})
	if err := errors.Join(err, cli.ContainerRemove(t.Context(), created.ID, container.RemoveOptions{Force: true})); err != nil {
		t.Fatal(err)
	}
	_, err = dockertest.EngineWith(t, docker.EngineConfig{HelperDir: dir}).Start(t.Context(), docker.Config{Image: image})
	if e := asError(err); e == nil || e.Status != env.StartFailed || !strings.Contains(e.Hint, "mini clean --all") {
		t.Errorf("err = %v, want one with a hint to remove the volume", err)
	}
	if err := sandbox.Close(t.Context()); err != nil {
		t.Error(err)
	}
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
		if _, err := cli.VolumeCreate(t.Context(), volume.CreateOptions{Name: name}); err != nil {
			t.Fatal(err)
		}
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
	if err := sandbox.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if removed := clean(true); !slices.Contains(removed, own) || slices.Contains(removed, mine) {
		t.Errorf("Clean of everything removed %q; want %s, and not %s", removed, own, mine)
	}
	if err := cli.VolumeRemove(t.Context(), mine, false); err != nil {
		t.Error(err)
	}
	// Start fills the removed volume again.
	sandbox, err := e.Start(t.Context(), docker.Config{Image: image})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sandbox.Close(t.Context()), cli.VolumeRemove(t.Context(), own, false)); err != nil {
		t.Error(err)
	}
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
