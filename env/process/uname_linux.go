package process

import (
	"syscall"

	"github.com/minibench/mini/env"
)

// Uname returns an Info with the fields of uname(2). The caller sets the others.
func Uname() env.Info {
	var u syscall.Utsname
	if err := syscall.Uname(&u); err != nil {
		return env.Info{System: "Linux"}
	}
	return env.Info{
		System:  cString(u.Sysname[:]),
		Node:    cString(u.Nodename[:]),
		Release: cString(u.Release[:]),
		Version: cString(u.Version[:]),
		Machine: cString(u.Machine[:]),
	}
}

// cString converts a C string. Its characters are signed on some architectures.
func cString[C int8 | uint8](field []C) string {
	var b []byte
	for _, c := range field {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}
