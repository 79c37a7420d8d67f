//go:build full

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
	"time"

	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/datasets/harbor"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/harborrun"
)

// TestInstallation runs a script once for all attempts, as root and without a network, in an
// image of another user.
func TestInstallation(t *testing.T) {
	client := dockertest.Client(t)
	run, folder := t.TempDir(), t.TempDir()
	root, err := rootdir.Open(run)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	images := &harborrun.Images{
		Engine: dockertest.EngineWith(t, docker.EngineConfig{Images: &imagestore.Config{Dir: t.TempDir()}}),
		Root:   root, Dir: filepath.Join(run, "builds"),
	}
	base := "mini-install-test-" + strings.ToLower(rand.Text())
	built := []string{base}
	t.Cleanup(func() {
		for _, name := range built {
			if _, err := client.ImageRemove(context.WithoutCancel(t.Context()), name, image.RemoveOptions{Force: true, PruneChildren: true}); err != nil {
				t.Error(err)
			}
		}
	})
	if err := os.WriteFile(filepath.Join(folder, "Dockerfile"), []byte("FROM "+dockertest.Image(t)+"\nUSER nobody\nENTRYPOINT [\"env\"]\nLABEL x="+base+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := images.Ensure(t.Context(), base, folder, harbor.Environment{}); err != nil {
		t.Fatal(err)
	}
	installation := &harborrun.Installation{Images: images, Network: "none", Script: `
test "$(id -u)" = 0
test "$(ls /sys/class/net)" = lo
cat /proc/sys/kernel/random/uuid >/installed
echo "it's \"\$done\" \\"
`}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, release, err := installation.Container(t.Context(), docker.Config{Image: base}); err != nil {
				t.Error(err)
			} else {
				release()
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	// Another run uses the same image.
	var outputs []string
	for _, n := range []*harborrun.Installation{installation, {Images: images, Script: installation.Script}} {
		c, release, err := n.Container(t.Context(), docker.Config{Image: base})
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		built = append(built[:1], c.Image)
		if found, err := images.Engine.Inspect(t.Context(), c.Image); err != nil || strings.Join(found.Entrypoint, " ") != "env" {
			t.Errorf("%+v, %v", found, err)
		}
		sandbox, err := images.Engine.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		res, err := sandbox.Execute(t.Context(), env.Command{Script: "id -un; cat /installed", Timeout: time.Minute})
		if err = errors.Join(err, sandbox.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, string(res.Output))
	}
	if !strings.HasPrefix(outputs[0], "nobody\n") || len(outputs[0]) < 36 || outputs[0] != outputs[1] {
		t.Errorf("outputs %q", outputs)
	}
	if log, err := os.ReadFile(filepath.Join(run, "builds", built[1]+".log")); err != nil || !strings.Contains(string(log), `it's "$done" \`) {
		t.Errorf("%v: %s", err, log)
	}

	// A script that fails is not run again for the next attempt.
	broken := &harborrun.Installation{Images: images, Script: "cat /proc/sys/kernel/random/uuid; false; true #" + strings.Repeat("x", 10000)}
	logs := map[string]bool{}
	for range 2 {
		_, _, err := broken.Container(t.Context(), docker.Config{Image: base})
		e, ok := errors.AsType[*env.Error](err)
		if !ok || e.Status != env.ImageBuildFailed || !strings.HasPrefix(e.Hint, "see ") || len(err.Error()) > 1000 {
			t.Fatalf("%v", err)
		}
		log, err := os.ReadFile(strings.TrimPrefix(e.Hint, "see "))
		if err != nil {
			t.Fatal(err)
		}
		logs[string(log)] = true
	}
	if len(logs) != 1 {
		t.Errorf("the script ran again: %v", logs)
	}
}
