package trajectories

import "testing"

// SetMaxPatch lets a test meet the bound with less.
func SetMaxPatch(t *testing.T, bytes int) {
	old := maxPatch
	maxPatch = bytes
	t.Cleanup(func() { maxPatch = old })
}
