//go:build full && linux

package bubblewrap_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/bubblewrap"
	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/envtest"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/internal/require"
)

func TestConformance(t *testing.T) {
	host := openHost(t)
	envtest.Run(t, func(t *testing.T) env.Environment {
		t.Helper()
		return start(t, host, bubblewrap.Config{Dir: t.TempDir()})
	},
		envtest.WithoutCapability(envtest.ProcessLimit, "bubblewrap bounds no resources"),
		envtest.WithoutCapability(envtest.OtherUsers, "a sandbox of bubblewrap's has one user"))
}

// TestAsAnotherUser runs most of these tests as an unprivileged user.
func TestAsAnotherUser(t *testing.T) {
	requireBwrap(t)
	if os.Getuid() != 0 {
		t.Skip("only root can become another user; these tests run as one already")
	}
	dir, err := os.MkdirTemp("/var/tmp", "mini-user-") //nolint:usetesting // the parents of t.TempDir() are closed to others
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	for name, from := range map[string]string{"tests": os.Args[0], "helper": childtest.File(t)} {
		data, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o755))
	}
	require.NoError(t, errors.Join(os.Chmod(dir, 0o755), os.Mkdir(dir+"/tmp", 0o700), os.Chown(dir+"/tmp", 65534, 65534)))
	cmd := exec.CommandContext(t.Context(), dir+"/tests", "-test.v", "-test.run", "Conformance/(ExitCodes|Settings|Timeouts|Background|Close)|Hidden|Available|Config|Killed|Close|KilledOwner")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = dir + "/tmp"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir + "/tmp", "HOME=" + dir + "/tmp/home", "MINI_REQUIRE_BWRAP=1", dockertest.HelperVariable + "=" + dir + "/helper"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as another user: %v\n%s", err, failures(out))
	}
	if n := strings.Count(string(out), "--- PASS"); n < 70 {
		t.Errorf("only %d tests have run", n)
	}
}

// failures returns the relevant lines of a verbose test run.
func failures(out []byte) string {
	var s strings.Builder
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "=== ") && !strings.Contains(line, "--- PASS") {
			s.WriteString(line)
		}
	}
	return s.String()
}
