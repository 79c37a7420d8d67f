//go:build !linux

package local_test

// owner does nothing on systems without a helper.
func owner() {}
