//go:build !linux

package cli

// closeMemory does nothing here.
func closeMemory() error { return nil }

// clearEnviron does nothing here.
func clearEnviron(func(name string) bool) error { return nil }
