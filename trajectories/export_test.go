package trajectories

import "testing"

// SetMaxPatch sets maxPatch for a test.
func SetMaxPatch(t *testing.T, bytes int) {
	old := maxPatch
	maxPatch = bytes
	t.Cleanup(func() { maxPatch = old })
}
