package docker_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/docker/registrytest"
)

func TestMissingImageIsPulledOnce(t *testing.T) {
	r := registrytest.Start(t)
	var mu sync.Mutex
	var last docker.PullProgress
	finished := 0
	e := dockertest.EngineWith(t, docker.EngineConfig{PullProgress: func(p docker.PullProgress) {
		mu.Lock()
		defer mu.Unlock()
		last = p
		if p.Done {
			finished++
		}
	}})
	ref := r.Push(t, "mini-test/pulled", registrytest.Image(t, "", registrytest.Layer(t, 1<<10)))
	removeImageOnCleanup(t, ref)
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			sandbox, err := e.Start(t.Context(), docker.Config{Image: ref})
			if err != nil {
				return err
			}
			if i := sandbox.Info(); !strings.Contains(i.ImageDigest, "mini-test/pulled@sha256:") {
				return fmt.Errorf("digest is %q", i.ImageDigest)
			}
			return sandbox.Close(t.Context())
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if finished != 1 || last.Image != ref || last.Failed || last.Layers != 1 || last.LayersDone != 1 || last.Bytes != last.Total {
		t.Errorf("%d pulls, at the end %+v; want one, complete", finished, last)
	}
}

func TestPullFails(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	faults := map[string]registrytest.Fault{
		"broken": {Status: http.StatusBadGateway}, "limited": {Status: http.StatusTooManyRequests},
	}
	r.Inject(func(q *http.Request) *registrytest.Fault {
		if parts := strings.Split(q.URL.Path, "/"); len(parts) > 3 {
			if f, ok := faults[parts[3]]; ok {
				return &f
			}
		}
		return nil
	})
	for name, want := range map[string]env.Status{
		r.Host + "/mini-test/missing": env.ImageNotFound,
		r.Host + "/mini-test/broken":  env.PullFailed,
		r.Host + "/mini-test/limited": env.PullFailed,
		"Not An Image":                env.ImageNotFound,
		"127.0.0.1:1/nobody/there":    env.PullFailed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last docker.PullProgress
			e := dockertest.EngineWith(t, docker.EngineConfig{
				PullTimeout: time.Minute, PullProgress: func(p docker.PullProgress) { last = p },
			})
			_, err := e.Start(t.Context(), docker.Config{Image: name})
			if last.Done && !last.Failed {
				t.Errorf("the progress reports success: %+v", last)
			}
			if status(err) != want {
				t.Errorf("err = %v, want %s", err, want)
			}
			t.Log(err)
		})
	}
}
