//go:build !linux

package hub_test

func diskChild() int { return 1 }
