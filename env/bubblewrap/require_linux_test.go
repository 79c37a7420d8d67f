package bubblewrap_test

import (
	"os"
	"os/exec"
	"testing"
)

// requireBwrap skips the test if bubblewrap is not installed, or fails it if
// MINI_REQUIRE_BWRAP=1 is set.
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
