//go:build !linux

package local

// ProtectMemory does nothing on this system.
func ProtectMemory() error { return nil }

// ClearProcEnviron does nothing on this system.
func ClearProcEnviron(func(name string) bool) error { return nil }
