package docker_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/dockertest"
)

// With a shortcut and without, and where none can be made.
func TestEveryWayToTheHelper(t *testing.T) {
	image := dockertest.Image(t)
	local := strings.HasPrefix(dockertest.Client(t).DaemonHost(), "unix://")
	for name, tt := range map[string]struct {
		spoil      bool
		hostSocket bool
	}{
		"the shortcut":   {hostSocket: local},
		"none to be had": {spoil: true},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := docker.Open(t.Context(), docker.EngineConfig{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if tt.spoil {
				e.SpoilShortcuts(filepath.Join(t.TempDir(), "none"))
			}
			box, err := e.Start(t.Context(), docker.Config{Image: image})
			if err != nil {
				t.Fatal(err)
			}
			defer box.Close(t.Context())
			if got := box.TookShortcut(); got != tt.hostSocket {
				t.Errorf("the helper came by the shortcut: %v, want %v", got, tt.hostSocket)
			}
			res, err := box.Execute(t.Context(), env.Command{Script: "ls -A /.mini-meeting; echo x >/.mini-meeting/s && echo written"})
			if err != nil {
				t.Fatal(err)
			}
			if text := string(res.Output); strings.Contains(text, "written") || tt.hostSocket && !strings.Contains(text, "bash: line 1: ") {
				t.Errorf("a command finds %q there", text)
			}
		})
	}
}
