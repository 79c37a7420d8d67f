//go:build unix && !linux

package family

func sweep(string) {}
