//go:build kubernetes

package kubernetes

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/env/helper/pod"
)

// loadHelperImage makes an image that has only the helper, for the length of the test.
func loadHelperImage(t *testing.T) string {
	t.Helper()
	binary, _, err := binaries.Load(dockertest.HelperDir(t), runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	var tree bytes.Buffer
	w := tar.NewWriter(&tree)
	err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: pod.Binary, Mode: 0o755, Size: int64(len(binary))})
	if err == nil {
		_, err = w.Write(binary)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return importImage(t, &tree)
}

// importImage makes an image of a tar stream, for the length of the test.
func importImage(t *testing.T, tree *bytes.Buffer) string {
	t.Helper()
	d, name := dockertest.Client(t), "mini-test-"+strings.ToLower(t.Name())+":1"
	progress, err := d.ImageImport(t.Context(), image.ImportSource{Source: tree, SourceName: "-"}, name, image.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
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
	if _, err := d.ImageRemove(context.WithoutCancel(t.Context()), name, image.RemoveOptions{}); err != nil {
		t.Error(err)
	}
}

// TestHelperFromImage: an init container brings the helper, and the image needs nothing.
func TestHelperFromImage(t *testing.T) {
	t.Parallel()
	name := loadHelperImage(t)
	c, fake := newFake(t, func(s *Settings) { s.Helper, s.HelperImage = HelperImage, name })
	p := startPod(t, c, Config{Image: dockertest.Image(t)})
	if got := run(t, p, "ls -A /.mini; cat /proc/1/cmdline | tr '\\0' ' '"); got != "bin\nh\n/.mini/h pod " {
		t.Errorf("output %q", got)
	}
	if n := fake.RequestCount()["create configmaps"]; n != 1 {
		t.Errorf("%d ConfigMaps, want the owner only", n)
	}
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
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
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
