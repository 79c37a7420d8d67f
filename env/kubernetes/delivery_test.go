//go:build kubernetes

package kubernetes

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/env/helper/pod"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// loadHelperImage makes an image that has only the helper, for the length of the test.
func loadHelperImage(t *testing.T) string {
	t.Helper()
	binary, _, err := binaries.Load(dockertest.HelperDir(t), runtime.GOARCH)
	require.NoError(t, err)
	var tree bytes.Buffer
	w := tar.NewWriter(&tree)
	err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: pod.Binary, Mode: 0o755, Size: int64(len(binary))})
	if err == nil {
		_, err = w.Write(binary)
	}
	require.NoError(t, errors.Join(err, w.Close()))
	return importImage(t, &tree)
}

// importImage makes an image of a tar stream, for the length of the test.
func importImage(t *testing.T, tree *bytes.Buffer) string {
	t.Helper()
	d, name := dockertest.Client(t), "mini-test-"+strings.ToLower(t.Name())+":1"
	progress, err := d.ImageImport(t.Context(), image.ImportSource{Source: tree, SourceName: "-"}, name, image.ImportOptions{})
	require.NoError(t, err)
	var text bytes.Buffer
	_, err = text.ReadFrom(progress)
	if err := errors.Join(err, progress.Close()); err != nil || strings.Contains(text.String(), "error") {
		t.Fatal(err, text.String())
	}
	t.Cleanup(func() { removeImage(t, d, name) })
	return name
}

func removeImage(t *testing.T, d *client.Client, name string) {
	t.Helper()
	_, err := d.ImageRemove(context.WithoutCancel(t.Context()), name, image.RemoveOptions{})
	assert.NoError(t, err)
}

// TestHelperFromImage: an init container brings the helper, and the image needs nothing.
func TestHelperFromImage(t *testing.T) {
	t.Parallel()
	name := loadHelperImage(t)
	c, fake := newFake(t, func(s *Settings) { s.Helper, s.HelperImage = HelperImage, name })
	p := startPod(t, c, Config{Image: dockertest.Image(t)})
	assert.Equal(t, "bin\nh\n/.mini/h pod ", run(t, p, "ls -A /.mini; cat /proc/1/cmdline | tr '\\0' ' '"), "output")
	assert.Equal(t, 1, fake.RequestCount()["create configmaps"], "ConfigMaps, want the owner only")
	// The helper image itself has no shell: its pod starts, and commands say so.
	bare := startPod(t, c, Config{Image: name})
	res, err := bare.Execute(t.Context(), env.Command{Script: "true"})
	if err != nil || res.Failure == "" {
		t.Errorf("without a shell: %+v, %v", res, err)
	}
}

// TestNoShell: the default delivery needs a shell, and says so.
func TestNoShell(t *testing.T) {
	t.Parallel()
	name := loadHelperImage(t)
	c, _ := newFake(t, nil)
	_, err := c.Start(t.Context(), Config{Image: name})
	checkStatus(t, err, env.StartFailed, "environment.kubernetes.helper")
}

// TestOtherHelper: a helper of another version is not used.
func TestOtherHelper(t *testing.T) {
	t.Parallel()
	c, _ := newFake(t, nil)
	startPod(t, c, Config{Image: dockertest.Image(t)})
	c.current.helper.hash = strings.Repeat("0", 64)
	_, err := c.Start(t.Context(), Config{Image: dockertest.Image(t)})
	checkStatus(t, err, env.StartFailed, "mini clean")
}

// TestRestrictedPod: the profile without root works, with a read-only file system too.
func TestRestrictedPod(t *testing.T) {
	t.Parallel()
	c, _ := newFake(t, func(s *Settings) { s.Security = Restricted })
	p := startPod(t, c, Config{
		Image: dockertest.Image(t), User: "1000:1000", ReadOnly: true, Dir: "/tmp", Env: map[string]string{"A": "b c"},
		Tmpfs: map[string]int64{"/scratch": 1 << 20}, ShmBytes: 8 << 20, MemoryBytes: 128 << 20,
	})
	got := run(t, p, `id -u; id -g; pwd; echo "$A"; touch /tmp/x /scratch/x && touch /usr/x 2>/dev/null || echo read-only
		df -m /dev/shm | tail -1 | awk '{print $2}'; env | grep -c KUBERNETES; grep -E 'CapEff|NoNewPrivs' /proc/self/status | awk '{print $2}'`)
	if want := "1000\n1000\n/tmp\nb c\nread-only\n8\n0\n0000000000000000\n1\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}

// maxRequests is the limit of requests to the API server for one attempt.
const maxRequests = 15

// TestRequests: an attempt needs few requests, however many commands it runs.
func TestRequests(t *testing.T) {
	c, fake := newFake(t, nil)
	startPod(t, c, Config{Image: dockertest.Image(t)})
	before := fake.RequestCount()
	p := startPod(t, c, Config{Image: dockertest.Image(t)})
	for range 20 {
		run(t, p, "true")
	}
	require.NoError(t, p.Close(t.Context()))
	eventually(t, "the pod is gone", func() bool { return fake.Leftovers() == 1 })
	sum := 0
	requests := fake.RequestCount()
	for name, n := range before {
		if requests[name] -= n; requests[name] == 0 {
			delete(requests, name)
		}
	}
	for n := range maps.Values(requests) {
		sum += n
	}
	t.Logf("%d requests: %v", sum, requests)
	if sum >= maxRequests {
		t.Errorf("%d requests, want fewer than %d", sum, maxRequests)
	}
}

func TestHelperImage(t *testing.T) {
	dir, binary := t.TempDir(), []byte("a helper")
	require.NoError(t, os.WriteFile(filepath.Join(dir, binaries.Name("arm64")), binary, 0o600))
	var file, again bytes.Buffer
	tag, err := WriteHelperImage(&file, dir, "arm64")
	require.NoError(t, err)
	if _, err := WriteHelperImage(&again, dir, "arm64"); err != nil || !bytes.Equal(file.Bytes(), again.Bytes()) {
		t.Errorf("the second image differs, or %v", err)
	}
	ref, err := name.NewTag(tag)
	require.NoError(t, err)
	img, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil }, &ref)
	require.NoError(t, err)
	assert.NoError(t, validate.Image(img))
	config, err := img.ConfigFile()
	require.NoError(t, err)
	if config.OS != "linux" || config.Architecture != "arm64" || config.Config.Entrypoint[0] != "/h" {
		t.Errorf("%+v", config)
	}
	files := tar.NewReader(mutate.Extract(img))
	h, err := files.Next()
	require.NoError(t, err)
	content, err := io.ReadAll(files)
	require.NoError(t, err)
	if h.Name != "h" || h.Mode != 0o755 || !bytes.Equal(content, binary) {
		t.Errorf("%+v with %q", h, content)
	}
	if _, err := files.Next(); err != io.EOF {
		t.Errorf("another file: %v", err)
	}
}
