package bubblewrap_test

import (
	"os"
	"os/exec"
	"testing"
)

// requireBwrap skips where bubblewrap is not installed; MINI_REQUIRE_BWRAP=1
// makes that a failure.
func requireBwrap(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err == nil {
		return
	}
	if os.Getenv("MINI_REQUIRE_BWRAP") == "1" {
		t.Fatal("bwrap is missing (MINI_REQUIRE_BWRAP=1)")
	}
	t.Skip("bwrap is missing; scripts/setup.sh test installs it")
}
