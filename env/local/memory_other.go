//go:build !linux

package local

// CloseMemory does nothing here.
func CloseMemory() error { return nil }

// ClearEnviron does nothing here.
func ClearEnviron(func(name string) bool) error { return nil }
