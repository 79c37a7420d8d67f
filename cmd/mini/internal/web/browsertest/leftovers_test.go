//go:build full

package browsertest

import (
	"os"
	"os/exec"
	"testing"
)

// TestLeftovers checks that a process of Chromium would be found.
func TestLeftovers(t *testing.T) {
	b := Browser{folder: t.TempDir()}
	cmd := exec.CommandContext(t.Context(), "cat")
	cmd.Env = append(os.Environ(), "TMPDIR="+b.folder)
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Its environment may appear in /proc a moment after Start, so wait for an answer.
	if _, err := input.Write([]byte{'x'}); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 1)); err != nil {
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
