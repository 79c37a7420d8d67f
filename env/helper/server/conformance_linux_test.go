package server_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/internal/require"
)

// sandbox is an environment that uses the helper through the real client.
type sandbox struct {
	*helper.Client
}

var (
	_ env.Environment = sandbox{}
	_ env.Files       = sandbox{}
)

func (s sandbox) Info() env.Info { return s.Hello().Info() }

func (s sandbox) Close(context.Context) error { return s.Client.Close() }

// stream joins the two pipes of a helper.
type stream struct{ *helperProcess }

func (s stream) Read(p []byte) (int, error)  { return s.out.Read(p) }
func (s stream) Write(p []byte) (int, error) { return s.in.Write(p) }
func (s stream) Close() error                { return s.in.Close() } // the helper then exits and closes its output

func dial(t *testing.T, b *helperProcess) env.Environment {
	t.Helper()
	c, err := helper.Dial(t.Context(), stream{b}, helper.ClientConfig{Setup: helper.Setup{Dir: t.TempDir(), ToolDir: toolDir(t)}})
	require.NoError(t, err)
	return sandbox{c}
}

// toolDir returns a directory with mini-tool.
func toolDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Symlink(binary, filepath.Join(dir, env.ToolProgram)))
	return dir
}

var unshare = []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}

// pid1 starts a helper as PID 1 of a new PID namespace.
func pid1(t *testing.T) *helperProcess {
	t.Helper()
	b := launch(t, append(slices.Clone(unshare), binary)...)
	b.setup(helper.Setup{Dir: t.TempDir()})
	return b
}

// requireNamespaces skips the test if PID namespaces cannot be created.
func requireNamespaces(t *testing.T) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "unshare", "--pid", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("cannot create a PID namespace: %v: %s", err, out)
	}
}
