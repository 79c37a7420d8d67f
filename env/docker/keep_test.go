package docker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// keep keeps a sandbox as an image and removes the image after the test.
func keep(t *testing.T, e *docker.Engine, sandbox *docker.Container, attempt string) docker.KeptImage {
	t.Helper()
	name, err := sandbox.Keep(t.Context(), attempt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := dockertest.Client(t).ImageRemove(context.WithoutCancel(t.Context()), name, image.RemoveOptions{})
		if err != nil && !errdefs.IsNotFound(err) {
			t.Error(err)
		}
	})
	all, err := e.KeptImages(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := sandbox.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	// A container of the image has no owner label and starts in the working directory.
	found, err := dockertest.Client(t).ImageInspect(t.Context(), k.Image)
	if err != nil {
		t.Fatal(err)
	}
	c := found.Config
	if c.Labels["mini.owner"] != "" || c.WorkingDir != "/tmp" || len(c.Entrypoint) != 0 || !slices.Equal(c.Cmd, []string{"/bin/bash"}) && !slices.Equal(c.Cmd, []string{"/usr/bin/bash"}) {
		t.Errorf("the image starts %q %q in %q, owner %q", c.Entrypoint, c.Cmd, c.WorkingDir, c.Labels["mini.owner"])
	}
	if strings.Contains(strings.Join(c.Env, "\n"), "hush-hush") {
		t.Error("a variable of the configuration is in the image")
	}
	again := start(t, e, docker.Config{Image: k.Image})
	if got := output(t, again, "cat /note; pwd; test -d made && echo made"); got != "left\n/tmp\nmade\n" {
		t.Errorf("in the kept sandbox: %q", got)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	create := func(instance, uid string) string {
		labels := maps.Clone(found.Config.Labels)
		delete(labels, "mini.uid")
		if uid != "" {
			labels["mini.uid"] = uid
		}
		name := "mini-kept/users:" + instance
		if _, err := cli.ContainerCommit(t.Context(), leftover(t, nil), container.CommitOptions{Reference: name, Config: &container.Config{Labels: labels}}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := cli.ImageRemove(context.WithoutCancel(t.Context()), name, image.RemoveOptions{}); err != nil {
				t.Error(err)
			}
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
		if err != nil {
			t.Fatal(err)
		}
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
	if err := sandbox.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
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
		if _, err := sandbox.Shell(ctx, docker.ShellOptions{Command: []string{"sh", "-c", "echo on; exec cat"}, Stdin: in, Stdout: out, Stderr: out}); !errors.Is(err, stop) {
			t.Errorf("error %v, want the cause", err)
		}
	})
	t.Run("dead sandbox", func(t *testing.T) {
		in, stdin := io.Pipe()
		defer stdin.Close()
		out := writer(func([]byte) {
			cli := dockertest.Client(t)
			if err := cli.ContainerKill(context.WithoutCancel(t.Context()), sandbox.Name(), "KILL"); err != nil {
				t.Error(err)
			}
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
