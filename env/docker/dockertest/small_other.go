//go:build !linux

package dockertest

import "testing"

// Small skips the test: the small image is made of the programs of a Linux machine.
func Small(t testing.TB) string {
	t.Helper()
	t.Skip("the small image takes the programs of a Linux machine")
	return ""
}
