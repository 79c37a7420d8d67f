package docker

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Warnings are sentences for the user about settings that work, but may not do
// what was meant. The configuration is one that Validate accepts.
func (c Config) Warnings() []string {
	var w []string
	say := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	d := c.withDefaults()
	switch {
	case c.Network == networkHost:
		say("network: with host, commands reach every service of the engine's machine, also those that listen on the loopback alone")
	case strings.HasPrefix(c.Network, networkContainer):
		say("network: commands share the network of %s, and what listens there", c.Network)
	}
	if n := d.inMemory(); d.MemoryBytes > 0 && n > d.MemoryBytes/2 {
		say("tmpfs and shm_size: files there may take %s of %s memory, and leave commands the rest", size(n), size(d.MemoryBytes))
	}
	if c.Dir != "" {
		inside := d.under(path.Clean(c.Dir))
		_, hidden := d.Tmpfs[inside]
		switch {
		case hidden:
			say("tmpfs: %s begins empty, and hides what the image has in %s", inside, c.Dir)
		case c.ReadOnly && !slices.ContainsFunc(c.Mounts, func(m Mount) bool { return m.Target == inside && m.ReadWrite }):
			say("read_only: commands cannot change anything in %s; only tmpfs and mounts with :rw can be written to", c.Dir)
		}
	}
	if strings.Contains(c.Runtime, "runsc") {
		say("runtime: some releases of %s let a command write in the helper's name; its results are then not proof", c.Runtime)
	}
	if d.canMount() && slices.ContainsFunc(c.Mounts, func(m Mount) bool { return !m.ReadWrite }) {
		say("cap_add: with SYS_ADMIN, commands can make mounts writable that are read-only")
	}
	if !d.canKill() {
		say("cap_add: without KILL, what a command starts as another user outlives its timeout")
	}
	return w
}
