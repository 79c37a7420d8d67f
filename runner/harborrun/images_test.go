package harborrun_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/datasets/harbor"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/harborrun"
)

func TestImagesAreBuiltOnce(t *testing.T) {
	client, base := dockertest.Client(t), dockertest.Image(t)
	run := t.TempDir()
	root, err := rootdir.Open(run)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	images := &harborrun.Images{
		Engine: dockertest.Engine(t), Bases: map[string]string{"no-such-image:1": base}, Root: root, Dir: filepath.Join(run, "builds"),
	}
	name := strings.ToLower(rand.Text())
	write := func(file, text string) string {
		dir := filepath.Join(t.TempDir(), "environment")
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dir := write("Dockerfile", "FROM no-such-image:1\nLABEL mini.test="+name+"\nRUN cat /proc/sys/kernel/random/uuid > /id\n")
	tag := "mini-harbor-test-" + name
	t.Cleanup(func() {
		if _, err := client.ImageRemove(context.WithoutCancel(t.Context()), tag, image.RemoveOptions{Force: true, PruneChildren: true}); err != nil {
			t.Error(err)
		}
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := images.Ensure(t.Context(), tag, dir, harbor.Environment{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := client.ImageList(t.Context(), image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "mini.test="+name))})
	if err != nil || len(list) != 1 {
		t.Errorf("%d images, %v", len(list), err)
	}

	// A build that fails names its log.
	dir = write("Dockerfile", "FROM no-such-image:1\nRUN echo broken && false\n")
	err = images.Ensure(t.Context(), tag+"-broken", dir, harbor.Environment{})
	e, ok := errors.AsType[*env.Error](err)
	if !ok || e.Status != env.ImageBuildFailed || !strings.Contains(e.Hint, "builds") {
		t.Fatalf("%v", err)
	}
	log, err := os.ReadFile(filepath.Join(run, "builds", tag+"-broken.log"))
	if err != nil || !strings.Contains(string(log), "broken\n") {
		t.Errorf("%v: %s", err, log)
	}
}
