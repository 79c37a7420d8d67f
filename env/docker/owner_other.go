//go:build !linux

package docker

import "syscall"

func bootID() string {
	id, err := syscall.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// pidSpace is a constant: there is one PID namespace.
func pidSpace() string { return "all" }
