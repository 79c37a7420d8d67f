//go:build !unix

package undo

import "syscall"

func apart() *syscall.SysProcAttr { return nil }
