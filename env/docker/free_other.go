//go:build !unix

package docker

// freeBytes is not known here: engines run in a machine of their own.
func freeBytes(string) (int64, bool) { return 0, false }
