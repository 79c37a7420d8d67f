//go:build unix && !linux

package host

func sweep(string) {}
