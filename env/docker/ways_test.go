package docker_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

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
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if tt.noSocket {
				e.SetSocketDir(filepath.Join(t.TempDir(), "none"))
			}
			sandbox, err := e.Start(t.Context(), docker.Config{Image: image})
			if err != nil {
				t.Fatal(err)
			}
			defer sandbox.Close(t.Context())
			if got := sandbox.UsesSocket(); got != tt.wantSocket {
				t.Errorf("the helper uses the socket: %v, want %v", got, tt.wantSocket)
			}
			res, err := sandbox.Execute(t.Context(), env.Command{Script: "ls -A /.mini-meeting; echo x >/.mini-meeting/s && echo written"})
			if err != nil {
				t.Fatal(err)
			}
			if text := string(res.Output); strings.Contains(text, "written") || tt.wantSocket && !strings.Contains(text, "bash: line 1: ") {
				t.Errorf("a command in the socket's directory prints %q", text)
			}
		})
	}
}
