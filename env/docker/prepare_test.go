package docker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/docker/imagestore"
)

// newPreparingEngine returns an engine with an image store, and a function that returns
// its notices. It removes the prepared images with a note after the test.
func newPreparingEngine(t *testing.T, budget int64, note string) (*docker.Engine, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var notices []string
	e := dockertest.EngineWith(t, docker.EngineConfig{
		Images: &imagestore.Config{Dir: t.TempDir(), Budget: budget},
		Notify: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			notices = append(notices, text)
		},
	})
	t.Cleanup(func() {
		cli := dockertest.Client(t)
		for _, i := range listPrepared(t, note) {
			if _, err := cli.ImageRemove(context.WithoutCancel(t.Context()), i.ID, image.RemoveOptions{Force: true}); err != nil {
				t.Error(err)
			}
		}
	})
	return e, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return notices
	}
}

// listPrepared returns the prepared images with a note.
func listPrepared(t *testing.T, note string) []image.Summary {
	t.Helper()
	list, err := dockertest.Client(t).ImageList(context.WithoutCancel(t.Context()), image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "mini.prepared="+note))})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestPrepare(t *testing.T) {
	note := rand.Text()
	e, notices := newPreparingEngine(t, 0, note)
	name := dockertest.Small(t)
	var done, waiting atomic.Int32
	c := docker.Config{
		Image: name, Dir: "/tmp", Run: "r", Instance: "a__b-1", Env: map[string]string{"API_KEY": "hush-hush"},
		Prepare: &docker.Preparation{
			Key: rand.Text(),
			Do: func(ctx context.Context, sandbox env.Environment) (string, error) {
				done.Add(1)
				res, err := sandbox.Execute(ctx, env.Command{Script: "pwd > /made; export >> /made; rm /bin/dd"})
				return note, errors.Join(err, exitError(res))
			},
			OnWait: func() func() { waiting.Add(1); return func() { waiting.Add(-1) } },
		},
	}
	var starts errgroup.Group
	for range 3 {
		starts.Go(func() error {
			sandbox, err := e.Start(t.Context(), c)
			if err != nil {
				return err
			}
			defer sandbox.Close(t.Context())
			info := sandbox.Info()
			if info.Prepared == nil || info.Prepared.Note != note || info.Image != name || info.Dir != "/tmp" {
				t.Errorf("%+v", info)
			}
			res, err := sandbox.Execute(t.Context(), env.Command{Script: "head -1 /made; test -e /bin/dd && echo dd; [[ $(cat /made) == *hush* ]] && echo leaked; echo $API_KEY"})
			if string(res.Output) != "/tmp\nhush-hush\n" {
				t.Errorf("%v: %s", err, res.Output)
			}
			return err
		})
	}
	if err := starts.Wait(); err != nil {
		t.Fatal(err)
	}
	if done.Load() != 1 || waiting.Load() != 0 || len(listPrepared(t, note)) != 1 || len(notices()) > 0 {
		t.Errorf("done %d times, %d still wait, %d images, notices %q", done.Load(), waiting.Load(), len(listPrepared(t, note)), notices())
	}

	// Another name of the image uses the same prepared image.
	second := "mini-kept/prepared:" + strings.ToLower(rand.Text())
	if err := dockertest.Client(t).ImageTag(t.Context(), name, second); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := dockertest.Client(t).ImageRemove(context.WithoutCancel(t.Context()), second, image.RemoveOptions{}); err != nil {
			t.Error(err)
		}
	})
	named := c
	named.Image = second
	sandbox := start(t, e, named)
	if done.Load() != 1 || sandbox.Info().Prepared == nil || sandbox.Info().Image != second {
		t.Errorf("by another name: done %d times, %+v", done.Load(), sandbox.Info())
	}
	if err := sandbox.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	// The original image is unchanged, and a container with another user needs another
	// preparation.
	plain := c
	plain.Prepare = nil
	run(t, start(t, e, plain), "test ! -e /made")
	other := c
	other.User = "1234"
	if sandbox := start(t, e, other); done.Load() != 2 || sandbox.Info().Prepared != nil {
		t.Errorf("the prepared image was used for another user: %+v", sandbox.Info())
	}
}

// TestPrepareFails: without a prepared image, containers start from the original image,
// and the user gets at most one notice.
func TestPrepareFails(t *testing.T) {
	for name, tt := range map[string]failedPreparation{
		"the work fails":          {err: errors.New("no luck"), runs: 1, notice: "no luck"},
		"there is nothing to do":  {runs: 1},
		"a root that is readonly": {note: rand.Text(), change: func(c *docker.Config) { c.ReadOnly = true }},
	} {
		t.Run(name, tt.test)
	}
}

// failedPreparation is a preparation without a prepared image.
type failedPreparation struct {
	note   string
	err    error
	budget int64
	change func(*docker.Config)
	runs   int32
	notice string
}

func (tt failedPreparation) test(t *testing.T) {
	e, notices := newPreparingEngine(t, tt.budget, tt.note)
	var runs atomic.Int32
	c := docker.Config{Image: dockertest.Small(t), Prepare: &docker.Preparation{
		Key: rand.Text(),
		Do: func(ctx context.Context, sandbox env.Environment) (string, error) {
			runs.Add(1)
			res, err := sandbox.Execute(ctx, env.Command{Script: "echo x > /made"})
			return tt.note, errors.Join(err, exitError(res), tt.err)
		},
	}}
	if tt.change != nil {
		tt.change(&c)
	}
	for range 2 {
		sandbox := start(t, e, c)
		run(t, sandbox, "test ! -e /made")
		if sandbox.Info().Prepared != nil {
			t.Errorf("%+v", sandbox.Info())
		}
	}
	if runs.Load() != tt.runs {
		t.Errorf("the preparation ran %d times", runs.Load())
	}
	if tt.note != "" && len(listPrepared(t, tt.note)) != 0 {
		t.Error("a prepared image is left")
	}
	if text := strings.Join(notices(), "\n"); !strings.Contains(text, tt.notice) || (tt.notice == "") != (text == "") || len(notices()) > 1 {
		t.Errorf("notices %q", text)
	}
}

// exitError returns an error if a command failed.
func exitError(res env.Result) error {
	if res.ExitCode != 0 {
		return errors.New(string(res.Output))
	}
	return nil
}
