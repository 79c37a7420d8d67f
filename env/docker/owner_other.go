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

// pidNamespace returns a constant: these systems have no PID namespaces.
func pidNamespace() string { return "all" }
