package process

import (
	"syscall"

	"github.com/minibench/mini/env"
)

// System fills the fields of uname. Dir and the others are left to the caller.
func System() env.Info {
	var u syscall.Utsname
	if err := syscall.Uname(&u); err != nil {
		return env.Info{System: "Linux"}
	}
	return env.Info{
		System:  text(u.Sysname[:]),
		Node:    text(u.Nodename[:]),
		Release: text(u.Release[:]),
		Version: text(u.Version[:]),
		Machine: text(u.Machine[:]),
	}
}

// text reads a C string, whose characters are signed on some machines.
func text[C int8 | uint8](field []C) string {
	var b []byte
	for _, c := range field {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}
