package docker_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/docker/imagestore"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// keep keeps a sandbox as an image and removes the image after the test.
func keep(t *testing.T, e *docker.Engine, sandbox *docker.Container, attempt string) docker.KeptImage {
	t.Helper()
	name, err := sandbox.Keep(t.Context(), attempt)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := dockertest.Client(t).ImageRemove(context.WithoutCancel(t.Context()), name, image.RemoveOptions{})
		if err != nil && !errdefs.IsNotFound(err) {
			t.Error(err)
		}
	})
	all, err := e.KeptImages(t.Context(), "", "")
	require.NoError(t, err)
	i := slices.IndexFunc(all, func(k docker.KeptImage) bool { return k.Image == name })
	if i < 0 {
		t.Fatalf("%s is not among the kept images: %+v", name, all)
	}
	return all[i]
}

func TestKeep(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Small(t)
	sandbox := start(t, e, docker.Config{
		Image: image, Dir: "/tmp", Run: "My__Run!--._x-1a", Instance: "a__b-1", Env: map[string]string{"API_KEY": "hush-hush"},
	})
	run(t, sandbox, "echo left > /note; mkdir -p /tmp/made")
	k := keep(t, e, sandbox, "2")
	if k.Image != "mini-kept/my-run-x-1a:a__b-1.2" || k.Instance != "a__b-1" || k.Run != "My__Run!--._x-1a" || k.Attempt != "2" || time.Since(k.Created) > time.Minute {
		t.Errorf("kept %+v", k)
	}
	run(t, sandbox, "echo the sandbox itself goes on")
	require.NoError(t, sandbox.Close(t.Context()))

	// A container of the image has no owner label and starts in the working directory.
	found, err := dockertest.Client(t).ImageInspect(t.Context(), k.Image)
	require.NoError(t, err)
	c := found.Config
	if c.Labels["mini.owner"] != "" || c.WorkingDir != "/tmp" || len(c.Entrypoint) != 0 || !slices.Equal(c.Cmd, []string{"/bin/bash"}) && !slices.Equal(c.Cmd, []string{"/usr/bin/bash"}) {
		t.Errorf("the image starts %q %q in %q, owner %q", c.Entrypoint, c.Cmd, c.WorkingDir, c.Labels["mini.owner"])
	}
	if strings.Contains(strings.Join(c.Env, "\n"), "hush-hush") {
		t.Error("a variable of the configuration is in the image")
	}
	again := start(t, e, docker.Config{Image: k.Image})
	assert.Equal(t, "left\n/tmp\nmade\n", output(t, again, "cat /note; pwd; test -d made && echo made"), "in the kept sandbox")
	left, err := e.ListLeftovers(t.Context(), docker.CleanOptions{IncludeKept: true})
	if err != nil || !slices.ContainsFunc(left, func(l docker.Leftover) bool {
		return l.Kind == docker.KindImage && l.Name == k.Image && l.Instance == "a__b-1"
	}) {
		t.Errorf("the leftovers are %v, %v, without the kept sandbox", left, err)
	}
	if left, err = e.ListLeftovers(t.Context(), docker.CleanOptions{}); err != nil || slices.ContainsFunc(left, func(l docker.Leftover) bool { return l.Name == k.Image }) {
		t.Errorf("without CleanOptions.IncludeKept, the leftovers are %v, %v", left, err)
	}
}

// TestKeepOfUsers: users who share an engine do not remove each other's kept sandboxes.
// Images kept by an older version of mini have no user label, and are removed only with
// CleanOptions.IncludeUnknown.
func TestKeepOfUsers(t *testing.T) {
	e, cli := dockertest.Engine(t), dockertest.Client(t)
	sandbox := start(t, e, docker.Config{Image: dockertest.Small(t), Instance: "own"})
	own := keep(t, e, sandbox, "1").Image
	found, err := cli.ImageInspect(t.Context(), own)
	require.NoError(t, err)
	create := func(instance, uid string) string {
		labels := maps.Clone(found.Config.Labels)
		delete(labels, "mini.uid")
		if uid != "" {
			labels["mini.uid"] = uid
		}
		name := "mini-kept/users:" + instance
		_, err := cli.ContainerCommit(t.Context(), leftover(t, nil), container.CommitOptions{Reference: name, Config: &container.Config{Labels: labels}})
		require.NoError(t, err)
		t.Cleanup(func() {
			_, err := cli.ImageRemove(context.WithoutCancel(t.Context()), name, image.RemoveOptions{})
			assert.NoError(t, err)
		})
		return name
	}
	others, old := create("another", strconv.Itoa(os.Getuid()+1)), create("old", "")
	for _, tt := range []struct {
		options docker.CleanOptions
		want    []string
	}{
		{docker.CleanOptions{IncludeKept: true}, []string{own}},
		{docker.CleanOptions{IncludeKept: true, IncludeUnknown: true}, []string{own, old}},
		{docker.CleanOptions{IncludeUnknown: true}, nil},
	} {
		left, err := e.ListLeftovers(t.Context(), tt.options)
		require.NoError(t, err)
		for _, name := range []string{own, others, old} {
			i := slices.IndexFunc(left, func(l docker.Leftover) bool { return l.Name == name })
			if got, want := i >= 0, slices.Contains(tt.want, name); got != want {
				t.Errorf("%+v: %s would be removed: %t, want %t", tt.options, name, got, want)
			} else if got && left[i].OwnerUnknown != (name == old) {
				t.Errorf("%+v: %s", tt.options, left[i])
			}
		}
	}
}

func TestKeepClosed(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	sandbox := start(t, e, docker.Config{Image: image, Instance: "gone"})
	require.NoError(t, sandbox.Close(t.Context()))
	if _, err := sandbox.Keep(t.Context(), "1"); status(err) != env.ContainerDied {
		t.Errorf("keep a closed sandbox: %v", err)
	}
}

func TestShell(t *testing.T) {
	e, image := dockertest.Engine(t), dockertest.Image(t)
	sandbox := start(t, e, docker.Config{Image: image, Dir: "/usr/lib"})
	for _, tt := range []struct {
		name  string
		shell docker.ShellOptions
		in    string
		out   string
		err   string
		code  int
	}{
		{"typed into", docker.ShellOptions{Env: map[string]string{"A": "1"}}, "pwd\necho $A\necho e >&2\nexit 5\n", "/usr/lib\n1\n", "e\n", 5},
		{"a command", docker.ShellOptions{Command: []string{"sh", "-c", "pwd; exit 3"}, Dir: "/tmp"}, "", "/tmp\n", "", 3},
		{"much", docker.ShellOptions{Command: []string{"wc", "-c"}}, strings.Repeat("x", 1<<20), "1048576\n", "", 0},
		{"a terminal", docker.ShellOptions{TTY: true, Command: []string{"sh", "-c", "until [ \"$(stty size)\" = '21 83' ]; do sleep 0.01; done; test -t 0 && test -t 1 && test -t 2 && echo yes"}}, "", "yes\r\n", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			sizes := make(chan docker.Size, 1)
			sizes <- docker.Size{Width: 83, Height: 21}
			s := tt.shell
			s.Stdin, s.Stdout, s.Stderr, s.Resize = strings.NewReader(tt.in), &out, &errs, sizes
			if s.TTY { // a terminal hangs up at the end of its input
				in, stdin := io.Pipe()
				defer stdin.Close()
				s.Stdin = in
			}
			code, err := sandbox.Shell(t.Context(), s)
			if err != nil || code != tt.code || out.String() != tt.out || errs.String() != tt.err {
				t.Errorf("code %d, error %v, output %q, errors %q; want %d, %q, %q", code, err, &out, &errs, tt.code, tt.out, tt.err)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stop")
		in, stdin := io.Pipe()
		defer stdin.Close()
		out := writer(func([]byte) { cancel(stop) })
		_, err := sandbox.Shell(ctx, docker.ShellOptions{Command: []string{"sh", "-c", "echo on; exec cat"}, Stdin: in, Stdout: out, Stderr: out})
		assert.ErrorIs(t, err, stop)
	})
	t.Run("dead sandbox", func(t *testing.T) {
		in, stdin := io.Pipe()
		defer stdin.Close()
		out := writer(func([]byte) {
			cli := dockertest.Client(t)
			assert.NoError(t, cli.ContainerKill(context.WithoutCancel(t.Context()), sandbox.Name(), "KILL"))
		})
		code, err := sandbox.Shell(t.Context(), docker.ShellOptions{Command: []string{"sh", "-c", "echo on; exec cat"}, Stdin: in, Stdout: out, Stderr: out})
		if status(err) != env.ContainerDied && code != 137 { // the engine may still report the exit code of the shell
			t.Errorf("code %d, error %v", code, err)
		}
	})
}

// writer is an io.Writer that calls a function with the written data.
type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

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
			_, err := cli.ImageRemove(context.WithoutCancel(t.Context()), i.ID, image.RemoveOptions{Force: true})
			assert.NoError(t, err)
		}
	})
	return e, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return notices
	}
}

// listPrepared returns the prepared images with a note. Kept images of others have an empty one.
func listPrepared(t *testing.T, note string) []image.Summary {
	t.Helper()
	if note == "" {
		return nil
	}
	list, err := dockertest.Client(t).ImageList(context.WithoutCancel(t.Context()), image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "mini.prepared="+note))})
	require.NoError(t, err)
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
			assert.Equal(t, "/tmp\nhush-hush\n", string(res.Output), "%v", err)
			return err
		})
	}
	require.NoError(t, starts.Wait())
	if done.Load() != 1 || waiting.Load() != 0 || len(listPrepared(t, note)) != 1 || len(notices()) > 0 {
		t.Errorf("done %d times, %d still wait, %d images, notices %q", done.Load(), waiting.Load(), len(listPrepared(t, note)), notices())
	}

	// Another name of the image uses the same prepared image.
	second := "mini-kept/prepared:" + strings.ToLower(rand.Text())
	require.NoError(t, dockertest.Client(t).ImageTag(t.Context(), name, second))
	t.Cleanup(func() {
		_, err := dockertest.Client(t).ImageRemove(context.WithoutCancel(t.Context()), second, image.RemoveOptions{})
		assert.NoError(t, err)
	})
	named := c
	named.Image = second
	sandbox := start(t, e, named)
	if done.Load() != 1 || sandbox.Info().Prepared == nil || sandbox.Info().Image != second {
		t.Errorf("by another name: done %d times, %+v", done.Load(), sandbox.Info())
	}
	require.NoError(t, sandbox.Close(t.Context()))

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
	assert.Equal(t, tt.runs, runs.Load(), "runs of the preparation")
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
