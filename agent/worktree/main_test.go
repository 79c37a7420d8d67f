package worktree_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/internal/require"
)

func TestMain(m *testing.M) {
	var err error
	if templates, err = os.MkdirTemp("", "worktree-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(templates)
		os.Exit(code)
	}))
}

// templates is the folder of the repositories that repository copies, made holds them by their
// scripts.
var (
	templates string
	made      sync.Map
)

// repository returns a new folder with the repository that the script seed makes, after the script
// more was run in it. Each seed is run once.
func repository(t *testing.T, seed, more string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "repo")
	makeOnce, _ := made.LoadOrStore(seed, sync.OnceValues(func() (string, error) {
		template, err := os.MkdirTemp(templates, "") //nolint:usetesting // later tests copy it
		if err != nil {
			return "", err
		}
		cmd := exec.Command("bash", "-ec", seed)
		cmd.Dir, cmd.Env = template, environ()
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", seed, err, out)
		}
		return template, nil
	}))
	template, err := makeOnce.(func() (string, error))() //nolint:errcheck // the only type in the map
	require.NoError(t, err)
	sh(t, ".", "cp -a "+template+" "+dir+"; chmod 755 "+dir+"; cd "+dir+"; git update-index -q --refresh >/dev/null || :; "+more)
	return dir
}
