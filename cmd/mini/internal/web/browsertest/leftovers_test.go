//go:build browser

package browsertest

import (
	"os"
	"os/exec"
	"testing"
)

// TestLeftovers checks that a process of Chromium would be found.
func TestLeftovers(t *testing.T) {
	b := Browser{folder: t.TempDir()}
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	cmd.Env = append(os.Environ(), "TMPDIR="+b.folder)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if left := b.waitProcesses(0); len(left) != 1 {
		t.Errorf("processes %v, want one", left)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if left := b.processes(); len(left) != 0 {
		t.Errorf("processes %v, want none", left)
	}
}
