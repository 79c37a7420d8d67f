package docker_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// imageWithoutBash builds an image from the small image without bash, and removes it
// after the test.
func imageWithoutBash(t *testing.T) string {
	t.Helper()
	cli := dockertest.Client(t)
	created, err := cli.ContainerCreate(t.Context(),
		&container.Config{Image: dockertest.Small(t), Cmd: []string{"rm", "-f", "/bin/bash"}},
		&container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cli.ContainerRemove(context.WithoutCancel(t.Context()), created.ID, container.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	ended, failed := cli.ContainerWait(t.Context(), created.ID, container.WaitConditionNextExit)
	if err := cli.ContainerStart(t.Context(), created.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-ended:
		if r.StatusCode != 0 {
			t.Fatalf("rm ended with %d", r.StatusCode)
		}
	case err := <-failed:
		t.Fatal(err)
	}
	const ref = "mini-test-sh"
	if _, err := cli.ContainerCommit(t.Context(), created.ID, container.CommitOptions{Reference: ref, Changes: []string{"CMD []"}}); err != nil {
		t.Fatal(err)
	}
	removeImageOnCleanup(t, ref)
	return ref
}

func TestImageWithoutBash(t *testing.T) {
	e, ref := dockertest.Engine(t), imageWithoutBash(t)
	for name, tt := range map[string]struct {
		interpreter   []string
		wantErr, hint string // empty if the start succeeds
		warning       string
	}{
		"bash is asked for": {[]string{"bash", "-c"}, "the image has no bash", "environment.interpreter: [sh, -c]", ""},
		"by its path":       {[]string{"/bin/bash", "-c"}, "the image has no /bin/bash", "environment.interpreter: [sh, -c]", ""},
		"another shell":     {[]string{"zsh", "-c"}, "the image has no zsh", "set environment.interpreter to one that it has", ""},
		"sh is asked for":   {[]string{"sh", "-c"}, "", "", ""},
		"with options":      {[]string{"/bin/sh", "-ec"}, "", "", ""},
		"nothing is":        {nil, "", "", "the image has no bash; commands run with "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := docker.Config{Image: ref, Interpreter: tt.interpreter, Instance: "mini-test-" + t.Name()}
			if tt.wantErr != "" {
				requireRefused(t, e, c, tt.wantErr, tt.hint)
				return
			}
			sandbox := start(t, e, c)
			if got := output(t, sandbox, `[ -n "$BASH_VERSION" ] || echo "$0" "$((6*7))"`); !strings.HasSuffix(got, " 42\n") {
				t.Errorf("commands print %q", got)
			}
			w := strings.Join(sandbox.Info().Warnings, "\n")
			if !strings.HasPrefix(w, tt.warning) || (w == "") != (tt.warning == "") {
				t.Errorf("warnings %q, want %q", w, tt.warning)
			}
		})
	}
}

// requireRefused checks that a start fails with a one-line error and a hint, and leaves
// no container.
func requireRefused(t *testing.T, e *docker.Engine, c docker.Config, text, hint string) {
	t.Helper()
	sandbox, err := e.Start(t.Context(), c)
	if err == nil {
		t.Error(sandbox.Close(t.Context()))
	}
	failure := asError(err)
	if failure.Status != env.StartFailed || !strings.Contains(err.Error(), text) || !strings.Contains(failure.Hint, hint) {
		t.Errorf("err = %v, hint %q; want StartFailed with %q and %q", err, failure.Hint, text, hint)
	}
	if strings.Contains(strings.TrimSpace(err.Error()), "\n") {
		t.Errorf("more than a line: %v", err)
	}
	if names := containers(t, c.Instance); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestStartRefused(t *testing.T) {
	e := dockertest.Engine(t)
	for name, tt := range map[string]struct {
		config     docker.Config
		text, hint string
	}{
		"a user that the image lacks":  {docker.Config{User: "nobody-of-that-name"}, "unable to find user nobody-of-that-name", "the image has no such user; change environment.user"},
		"a group that the image lacks": {docker.Config{User: "root:no-group-of-that-name"}, "unable to find group no-group-of-that-name", "the image has no such group; change environment.user"},
		"more than the engine may":     {docker.Config{Ulimits: []docker.Ulimit{{"nofile", 1 << 40, 1 << 40}}}, "rlimit", "the engine cannot grant this limit; lower environment.ulimits"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.config.Image, tt.config.Instance = dockertest.Image(t), "mini-test-refused"
			requireRefused(t, e, tt.config, tt.text, tt.hint)
		})
	}
}

// asError returns err as an *env.Error; an empty one for other errors.
func asError(err error) *env.Error {
	if e, ok := errors.AsType[*env.Error](err); ok {
		return e
	}
	return &env.Error{}
}
