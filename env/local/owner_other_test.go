//go:build !linux

package local_test

// runOwner does nothing on systems without a helper.
func runOwner() {}
