package docker

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/minibench/mini/env"
)

// reservedDirs are directories of a container that the kernel or mini uses.
var reservedDirs = []string{"/proc", "/sys", "/dev", helperDir, socketDir}

// engineSockets are the sockets of container engines. Access to one gives root on
// the engine's machine, or the rights of the engine's user. A path element *
// matches any name.
var engineSockets = []string{
	"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/var/run/containerd/containerd.sock",
	"/run/podman/podman.sock", "/var/run/podman/podman.sock", "/run/crio/crio.sock", "/var/run/crio/crio.sock",
	"/run/user/*/docker.sock", "/var/run/user/*/docker.sock", "/run/user/*/podman/podman.sock", "/var/run/user/*/podman/podman.sock",
}

// exposesSocket reports whether name is the path of the socket or a directory
// above it.
func exposesSocket(name, socket string) bool {
	if name == "/" {
		return true
	}
	parts, socketParts := strings.Split(name, "/"), strings.Split(socket, "/")
	if len(parts) > len(socketParts) {
		return false
	}
	for i, part := range parts {
		if socketParts[i] != part && socketParts[i] != "*" {
			return false
		}
	}
	return true
}

// kernelDirs give access to the machine's kernel.
var kernelDirs = []string{"/proc", "/sys", "/dev"}

// isWithin reports whether a path is dir or below it. Both are absolute and clean.
func isWithin(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// validateMounts checks mounts and tmpfs together: their targets must differ.
func (c Config) validateMounts(errs *env.ConfigErrorList) {
	taken := map[string]bool{}
	checkTarget := func(key, target string) {
		switch {
		case !path.IsAbs(target) || path.Clean(target) != target || strings.ContainsAny(target, ":\x00"):
			errs.Add(key, "%.80q is not a valid target; use an absolute path without . and ..", target)
		case target == "/" || slices.ContainsFunc(reservedDirs, func(dir string) bool { return isWithin(target, dir) }):
			if isWithin(target, "/dev/shm") {
				errs.Add(key, "%.80q is always mounted; set shm_size instead", target)
				return
			}
			errs.Add(key, "%.80q cannot be replaced: the sandbox needs /, /proc, /sys, /dev and %s", target, helperDir)
		case taken[target]:
			errs.Add(key, "%.80q is used twice", target)
		}
		taken[target] = true
	}
	for _, target := range slices.Sorted(maps.Keys(c.Tmpfs)) {
		checkTarget("tmpfs", target)
		if c.Tmpfs[target] <= 0 {
			errs.Add("tmpfs", `%.80q has no size; write {%s: 64m}`, target, target)
		}
	}
	for _, mount := range c.Mounts {
		checkTarget("mounts", mount.Target)
		switch {
		case !path.IsAbs(mount.Source) && !isWindowsPath(mount.Source) || strings.Contains(mount.Source, "\x00"):
			errs.Add("mounts", "%.80q is not an absolute path on the engine's machine", mount.Source)
		case !c.AllowUnsafe:
			mount.refuseUnsafe(errs, mount.Source, engineSockets)
		}
	}
}

// refuseUnsafe refuses a mount that gives commands access to a container engine or to
// the machine's kernel. A read-only mount does not protect a socket. source is the
// mount's source, possibly with symbolic links resolved.
func (m Mount) refuseUnsafe(errs *env.ConfigErrorList, source string, sockets []string) {
	source = path.Clean(source)
	for _, socket := range sockets {
		if exposesSocket(source, socket) {
			errs.Add("mounts", "%.80q gives commands access to the engine's socket, and so to the machine; set environment.unsafe to accept that", m.Source)
			return
		}
	}
	for _, dir := range kernelDirs {
		if isWithin(source, dir) {
			errs.Add("mounts", "%.80q gives commands access to the machine's kernel; set environment.unsafe to accept that", m.Source)
			return
		}
	}
}

// isWindowsPath reports whether s is a path like C:\x, for an engine on Windows.
func isWindowsPath(s string) bool {
	return len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
}

// mountPoint returns the target of the innermost tmpfs or mount that contains the path;
// empty if the path is in the image's file system.
func (c Config) mountPoint(name string) string {
	best := ""
	consider := func(target string) {
		if isWithin(name, target) && len(target) > len(best) {
			best = target
		}
	}
	for target := range c.Tmpfs {
		consider(target)
	}
	for _, errs := range c.Mounts {
		consider(errs.Target)
	}
	return best
}
