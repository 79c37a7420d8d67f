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

// preparing is an engine that prepares images, and what it tells.
func preparing(t *testing.T, budget int64) (*docker.Engine, func() []string) {
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
	t.Cleanup(func() { // the images that the test left behind
		if _, err := e.Images().Prune(context.WithoutCancel(t.Context()), nil, false); err != nil {
			t.Error(err)
		}
	})
	return e, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return notices
	}
}

// preparedOf counts the prepared images with a note.
func preparedOf(t *testing.T, note string) int {
	t.Helper()
	list, err := dockertest.Client(t).ImageList(t.Context(), image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "mini.prepared="+note))})
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestAnImageIsPreparedOnceForAll(t *testing.T) {
	e, notices := preparing(t, 0)
	name := dockertest.Image(t)
	note := rand.Text()
	var done, begun atomic.Int32
	c := docker.Config{
		Image: name, Dir: "/usr/lib", Run: "r", Instance: "a__b-1", Env: map[string]string{"API_KEY": "hush-hush"},
		Prepare: &docker.Preparation{
			Key: rand.Text(),
			Do: func(ctx context.Context, box env.Environment) (string, error) {
				done.Add(1)
				res, err := box.Execute(ctx, env.Command{Script: "pwd > /made; env >> /made; rm /usr/share/base-files/motd"})
				return note, errors.Join(err, fails(res))
			},
			OnWait: func() func() { begun.Add(1); return func() { begun.Add(-1) } },
		},
	}
	var starts errgroup.Group
	for range 4 {
		starts.Go(func() error {
			box, err := e.Start(t.Context(), c)
			if err != nil {
				return err
			}
			defer box.Close(t.Context())
			info := box.Info()
			if info.Prepared == nil || info.Prepared.Note != note || info.Image != name || info.Dir != "/usr/lib" {
				t.Errorf("%+v", info)
			}
			res, err := box.Execute(t.Context(), env.Command{Script: "head -1 /made; test ! -e /usr/share/base-files/motd; grep -c hush /made; echo $API_KEY"})
			if string(res.Output) != "/usr/lib\n0\nhush-hush\n" {
				t.Errorf("%v: %s", err, res.Output)
			}
			return err
		})
	}
	if err := starts.Wait(); err != nil {
		t.Fatal(err)
	}
	if done.Load() != 1 || begun.Load() != 0 || preparedOf(t, note) != 1 || len(notices()) > 0 {
		t.Errorf("done %d times, %d still wait, %d images, notices %q", done.Load(), begun.Load(), preparedOf(t, note), notices())
	}

	// Another name of the image is no other image.
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
	box := start(t, e, named)
	if done.Load() != 1 || box.Info().Prepared == nil || box.Info().Image != second {
		t.Errorf("by another name: done %d times, %+v", done.Load(), box.Info())
	}
	if err := box.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	// The image itself is what it was, and another user's result would be another.
	plain := c
	plain.Prepare = nil
	run(t, start(t, e, plain), "test ! -e /made")
	other := c
	other.User = "nobody"
	if box := start(t, e, other); done.Load() != 2 || box.Info().Prepared != nil {
		t.Errorf("for another user it is the same: %+v", box.Info())
	}

	// It goes as those that were pulled do, and is made again. It stays for who
	// needs the image it was made from.
	p, err := e.Images().Prune(t.Context(), []imagestore.Request{{Ref: name}}, false)
	if err != nil || len(p.Images) != 1 || p.Images[0].Removed || p.Images[0].Base != name {
		t.Errorf("%v, %+v", err, p)
	}
	p, err = e.Images().Prune(t.Context(), nil, false)
	if err != nil || len(p.Images) != 1 || !p.Images[0].Removed || preparedOf(t, note) != 0 {
		t.Errorf("%v, %+v", err, p)
	}
	if box := start(t, e, c); done.Load() != 3 || box.Info().Prepared == nil {
		t.Errorf("it was not made again: %+v", box.Info())
	}
}

// Where no prepared image can be made the image itself is used, which is said
// once.
func TestImagesThatCannotBePrepared(t *testing.T) {
	for name, tt := range map[string]struct {
		note   string
		err    error
		budget int64
		change func(*docker.Config)
		did    int32
		notice string
	}{
		"the work fails":          {err: errors.New("no luck"), did: 1, notice: "no luck"},
		"there is nothing to do":  {did: 1},
		"over the budget":         {note: rand.Text(), budget: 1, did: 1, notice: "more than the budget"},
		"a root that is readonly": {note: rand.Text(), change: func(c *docker.Config) { c.ReadOnly = true }},
	} {
		t.Run(name, func(t *testing.T) {
			e, notices := preparing(t, tt.budget)
			var did atomic.Int32
			c := docker.Config{Image: dockertest.Image(t), Prepare: &docker.Preparation{
				Key: rand.Text(),
				Do: func(ctx context.Context, box env.Environment) (string, error) {
					did.Add(1)
					res, err := box.Execute(ctx, env.Command{Script: "echo x > /made"})
					return tt.note, errors.Join(err, fails(res), tt.err)
				},
			}}
			if tt.change != nil {
				tt.change(&c)
			}
			for range 2 {
				box := start(t, e, c)
				run(t, box, "test ! -e /made")
				if box.Info().Prepared != nil {
					t.Errorf("%+v", box.Info())
				}
			}
			if did.Load() != tt.did {
				t.Errorf("it was tried %d times", did.Load())
			}
			if tt.note != "" && preparedOf(t, tt.note) != 0 {
				t.Error("an image stayed")
			}
			if said := strings.Join(notices(), "\n"); !strings.Contains(said, tt.notice) || (tt.notice == "") != (said == "") || len(notices()) > 1 {
				t.Errorf("said %q", said)
			}
		})
	}
}

// fails is an error where a command was not well.
func fails(res env.Result) error {
	if res.ExitCode != 0 {
		return errors.New(string(res.Output))
	}
	return nil
}
