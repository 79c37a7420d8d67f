//go:build !linux

package local_test

// owner does nothing where there is no helper.
func owner() {}
