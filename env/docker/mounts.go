package docker

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// reserved are places in a container that are the kernel's or mini's own.
var reserved = []string{"/proc", "/sys", "/dev", helperDir, meetingDir}

// sockets of engines: who reaches one is root on the engine's machine, or the
// user whose engine it is. A part of a path that is * stands for any.
var sockets = []string{
	"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/var/run/containerd/containerd.sock",
	"/run/podman/podman.sock", "/var/run/podman/podman.sock", "/run/crio/crio.sock", "/var/run/crio/crio.sock",
	"/run/user/*/docker.sock", "/var/run/user/*/docker.sock", "/run/user/*/podman/podman.sock", "/var/run/user/*/podman/podman.sock",
}

// leadsTo says that a socket is what is at name, or below it.
func leadsTo(name, socket string) bool {
	if name == "/" {
		return true
	}
	parts, of := strings.Split(name, "/"), strings.Split(socket, "/")
	if len(parts) > len(of) {
		return false
	}
	for i, part := range parts {
		if of[i] != part && of[i] != "*" {
			return false
		}
	}
	return true
}

// kernel are folders of the machine through which it can be changed.
var kernel = []string{"/proc", "/sys", "/dev"}

// within says that a path is dir or below it. Both are absolute and clean.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// validateMounts is about file systems in memory too: they take their places
// alike.
func (c Config) validateMounts(m *mistakes) {
	taken := map[string]bool{}
	place := func(key, target string) {
		switch {
		case !path.IsAbs(target) || path.Clean(target) != target || strings.ContainsAny(target, ":\x00"):
			m.add(key, "%.80q is not a place in a container; write an absolute path without . and .. in it", target)
		case target == "/" || slices.ContainsFunc(reserved, func(dir string) bool { return within(target, dir) }):
			if within(target, "/dev/shm") {
				m.add(key, "%.80q is there already; set shm_size", target)
				return
			}
			m.add(key, "%.80q cannot be replaced; /, /proc, /sys, /dev and %s are what a sandbox runs on", target, helperDir)
		case taken[target]:
			m.add(key, "%.80q is used twice; one place holds one thing", target)
		}
		taken[target] = true
	}
	for _, target := range slices.Sorted(maps.Keys(c.Tmpfs)) {
		place("tmpfs", target)
		if c.Tmpfs[target] <= 0 {
			m.add("tmpfs", `%.80q has no size; write {%s: 64m}`, target, target)
		}
	}
	for _, mount := range c.Mounts {
		place("mounts", mount.Target)
		switch {
		case !path.IsAbs(mount.Source) && !windowsPath(mount.Source) || strings.Contains(mount.Source, "\x00"):
			m.add("mounts", "%.80q is not an absolute path on the engine's machine", mount.Source)
		case !c.Force:
			mount.distrust(m, mount.Source, sockets)
		}
	}
}

// distrust refuses a mount through which commands could command an engine or
// the machine's kernel, be it read-only: a socket does not mind. Source is the
// mount's own, or what it leads to.
func (t Mount) distrust(m *mistakes, source string, sockets []string) {
	source = path.Clean(source)
	for _, socket := range sockets {
		if leadsTo(source, socket) {
			m.add("mounts", "%.80q gives commands the engine's socket, and so the machine; set environment.unsafe to accept that", t.Source)
			return
		}
	}
	for _, dir := range kernel {
		if within(source, dir) {
			m.add("mounts", "%.80q gives commands a hold on the machine's kernel; set environment.unsafe to accept that", t.Source)
			return
		}
	}
}

// windowsPath recognises C:\x, which an engine on Windows takes.
func windowsPath(s string) bool {
	return len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
}

// under is the tmpfs or mount that a path of the container is in; empty for
// what is the image's own.
func (c Config) under(name string) string {
	best := ""
	try := func(target string) {
		if within(name, target) && len(target) > len(best) {
			best = target
		}
	}
	for target := range c.Tmpfs {
		try(target)
	}
	for _, m := range c.Mounts {
		try(m.Target)
	}
	return best
}
