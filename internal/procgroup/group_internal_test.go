//go:build linux

package procgroup

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// However a program ends, its group is killed before the leader is reaped.
func TestGroupIsKilledBeforeItsLeaderIsReaped(t *testing.T) {
	kill := killGroup
	defer func() { killGroup = kill }()
	var kills, late atomic.Int64
	killGroup = func(leader int) error {
		kills.Add(1)
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", leader)); err != nil {
			late.Add(1)
		}
		return kill(leader)
	}
	tests := map[string]struct {
		script string
		output string
		kill   bool
	}{
		"it ends":                        {script: "echo out", output: "out\n"},
		"something is left":              {script: "echo out; sleep 1000 > /dev/null 2>&1 & echo $! >&2", output: "out\n"},
		"something is left, with output": {script: "sleep 1000 2> /dev/null & echo $! >&2"},
		"it is killed":                   {script: "sleep 1000 & echo $! >&2; wait", kill: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kills.Store(0)
			var out, left bytes.Buffer
			cmd := exec.CommandContext(t.Context(), "sh", "-c", test.script)
			cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &left, 3*time.Second
			g := New(cmd, os.Environ())
			require.NoError(t, g.Start())
			if test.kill {
				assert.NoError(t, g.Kill())
			}
			_ = g.Wait()
			if kills.Load() == 0 {
				t.Error("the group was not killed")
			}
			assert.Equal(t, test.output, out.String(), "output")
			if pid := strings.TrimSpace(left.String()); pid != "" {
				waitForExit(t, "/proc/"+pid+"/stat")
			}
			_ = g.Kill() // callers may kill a program that has exited
		})
	}
	if n := late.Load(); n > 0 {
		t.Errorf("%d kills came after the leader was reaped", n)
	}
}

// waitForExit waits until a killed process has exited.
func waitForExit(t *testing.T, stat string) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(10 * time.Second); ; <-poll.C {
		state, err := os.ReadFile(stat)
		if err != nil || bytes.Contains(state, []byte(") Z ")) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the process is still running: %s", state)
		}
	}
}
