//go:build unix

package filetools_test

import "syscall"

func mkfifo(name string) error { return syscall.Mkfifo(name, 0o600) }
