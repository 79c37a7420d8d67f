//go:build full

package cli_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/env/docker/dockertest"
)

// TestFullScripts runs the scripts about details of the command line.
func TestFullScripts(t *testing.T) {
	scripts(t, "testdata/full", nil)
}

// TestFullDockerScripts runs the scripts about details of containers. They need the
// image that scripts/base-image.sh builds.
func TestFullDockerScripts(t *testing.T) {
	tasks, err := filepath.Abs("../../../../datasets/harbor/testdata/tasks")
	if err != nil {
		t.Fatal(err)
	}
	scripts(t, "testdata/full/docker", map[string]string{
		"IMAGE":  dockertest.Image(t),
		"HELPER": dockertest.HelperDir(t),
		"TASKS":  tasks,
	})
}

// TestBubblewrapScripts runs the scripts that need bubblewrap. scripts/setup.sh
// installs it.
func TestBubblewrapScripts(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bwrap is missing; scripts/setup.sh test installs it")
	}
	scripts(t, "testdata/full/bubblewrap", map[string]string{"HELPER": dockertest.HelperDir(t)})
}
