//go:build darwin

package family

func sweep(string) {}
