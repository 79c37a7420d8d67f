package docker_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// imageWithoutBash builds an image from the small image without bash, and removes it
// after the test.
func imageWithoutBash(t *testing.T) string {
	t.Helper()
	cli := dockertest.Client(t)
	created, err := cli.ContainerCreate(t.Context(),
		&container.Config{Image: dockertest.Small(t), Cmd: []string{"rm", "-f", "/bin/bash"}},
		&container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, cli.ContainerRemove(context.WithoutCancel(t.Context()), created.ID, container.RemoveOptions{Force: true}))
	})
	ended, failed := cli.ContainerWait(t.Context(), created.ID, container.WaitConditionNextExit)
	require.NoError(t, cli.ContainerStart(t.Context(), created.ID, container.StartOptions{}))
	select {
	case r := <-ended:
		require.Equal(t, 0, r.StatusCode, "rm ended")
	case err := <-failed:
		t.Fatal(err)
	}
	const ref = "mini-test-sh"
	_, err = cli.ContainerCommit(t.Context(), created.ID, container.CommitOptions{Reference: ref, Changes: []string{"CMD []"}})
	require.NoError(t, err)
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
	assert.Equal(t, "", strings.Join(containers(t, c.Instance), " "), "left behind")
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

// TestHelperConnections: the helper connects to the host socket, or uses the attached
// stream if no socket can be created.
func TestHelperConnections(t *testing.T) {
	image := dockertest.Image(t)
	local := strings.HasPrefix(dockertest.Client(t).DaemonHost(), "unix://")
	for name, tt := range map[string]struct {
		noSocket   bool
		wantSocket bool
	}{
		"the shortcut":   {wantSocket: local},
		"none to be had": {noSocket: true},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := docker.Open(t.Context(), docker.EngineConfig{HelperDir: dockertest.HelperDir(t)})
			require.NoError(t, err)
			defer e.Close()
			if tt.noSocket {
				e.SetSocketDir(filepath.Join(t.TempDir(), "none"))
			}
			sandbox, err := e.Start(t.Context(), docker.Config{Image: image})
			require.NoError(t, err)
			defer sandbox.Close(t.Context())
			assert.Equal(t, tt.wantSocket, sandbox.UsesSocket(), "the helper uses the socket")
			res, err := sandbox.Execute(t.Context(), env.Command{Script: "ls -A /.mini-meeting; echo x >/.mini-meeting/s && echo written"})
			require.NoError(t, err)
			if text := string(res.Output); strings.Contains(text, "written") || tt.wantSocket && !strings.Contains(text, "bash: line 1: ") {
				t.Errorf("a command in the socket's directory prints %q", text)
			}
		})
	}
}

// A container of root runs commands as other users, also with set-uid programs disabled.
func TestCommandUser(t *testing.T) {
	e := dockertest.Engine(t)
	sandbox, err := e.Start(t.Context(), docker.Config{Image: dockertest.Image(t), User: "0:0", Env: map[string]string{"SHARED": "yes"}})
	require.NoError(t, err)
	defer sandbox.Close(t.Context())
	run := func(user, script string) env.Result {
		t.Helper()
		res, err := sandbox.Execute(t.Context(), env.Command{Script: script, User: user})
		require.NoError(t, err)
		return res
	}
	if res := run("", "groupadd -g 77 team && useradd -m -u 1234 -G team app && id -u"); res.ExitCode != 0 || string(res.Output) != "0\n" {
		t.Fatalf("%s", res.Output)
	}
	for _, tt := range []struct{ user, want string }{
		{"", "0 0 0 /root yes"},
		{"app", "1234 1234 1234 77 /home/app yes"},
		{"1234", "1234 1234 1234 77 /home/app yes"},
		{"app:team", "1234 77 77 /home/app yes"},
		{"app:5", "1234 5 5 /home/app yes"},
		{"4321", "4321 0 0 /root yes"},
	} {
		if res := run(tt.user, `echo $(id -u) $(id -g) $(id -G) $HOME $SHARED > /dev/stdout`); strings.TrimSpace(string(res.Output)) != tt.want {
			t.Errorf("%q: %q, want %q", tt.user, res.Output, tt.want)
		}
	}
	if res := run("app", "touch /root/x || cat /etc/shadow || kill -KILL 1"); res.ExitCode == 0 {
		t.Errorf("a user has the rights of root: %s", res.Output)
	}
	for _, unknown := range []string{"unknown-user", "app:nothing", "0x1"} {
		assert.Contains(t, run(unknown, "true").Failure, unknown)
	}
	// A command may replace the file by a pipe, which must not block the helper.
	if res := run("", "mv /etc/passwd /etc/old && mkfifo /etc/passwd"); res.ExitCode != 0 {
		t.Fatalf("%s", res.Output)
	}
	if res := run("app", "true"); res.Failure == "" {
		t.Error("a user was found in a pipe")
	}
}
