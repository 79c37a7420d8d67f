package docker

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Warnings returns messages for the user about valid settings that may have
// unintended effects. The configuration must be valid (see Validate).
func (c Config) Warnings() []string {
	var warnings []string
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	d := c.withDefaults()
	switch {
	case c.Network == networkHost:
		warn("network: with host, commands reach every service of the engine's machine, even those that listen only on loopback")
	case strings.HasPrefix(c.Network, networkContainer):
		warn("network: commands share the network of %s and reach the services in it", c.Network)
	}
	if n := d.tmpfsBytes(); d.MemoryBytes > 0 && n > d.MemoryBytes/2 {
		warn("tmpfs and shm_size: files there may use %s of the %s memory of the sandbox", size(n), size(d.MemoryBytes))
	}
	if c.Dir != "" {
		target := d.mountPoint(path.Clean(c.Dir))
		_, isTmpfs := d.Tmpfs[target]
		switch {
		case isTmpfs:
			warn("tmpfs: %s starts empty and hides the image's files in %s", target, c.Dir)
		case c.ReadOnly && !slices.ContainsFunc(c.Mounts, func(m Mount) bool { return m.Target == target && m.ReadWrite }):
			warn("read_only: commands cannot change files in %s; only tmpfs and mounts with :rw are writable", c.Dir)
		}
	}
	if strings.Contains(c.Runtime, "runsc") {
		warn("runtime: some releases of %s let a command write to the helper's connection; results may be forged", c.Runtime)
	}
	if d.canMount() && slices.ContainsFunc(c.Mounts, func(m Mount) bool { return !m.ReadWrite }) {
		warn("cap_add: with SYS_ADMIN, commands can make read-only mounts writable")
	}
	if !d.canKill() {
		warn("cap_add: without KILL, processes of other users outlive the timeout of their command")
	}
	return warnings
}
