package cli

import (
	"github.com/minibench/mini/configs"
)

// shortfall is a setting that a class of this machine does not keep.
type shortfall struct {
	key               string
	set               bool
	local, bubblewrap bool // whose it is
}

// shortfalls are all of them. What a class does anyway is none: bubblewrap's
// root is read-only and its commands have no capabilities, and nothing keeps
// local commands from gaining rights.
func shortfalls(cfg *configs.Resolved) []shortfall {
	e := cfg.Environment
	return []shortfall{
		{"environment.network", e.Network != "" && e.Network != "host", true, false}, // bubblewrap judges its own
		{"environment.memory", e.Memory != "", true, true},
		{"environment.shm_size", e.ShmSize != "", true, false},
		{"environment.cpus", e.CPUs != 0, true, true},
		{"environment.pids_limit", e.PidsLimit != 0, true, true},
		{"environment.tmpfs", len(e.Tmpfs) > 0, true, false},
		{"environment.read_only", e.ReadOnly, true, false},
		{"environment.ulimits", len(e.Ulimits) > 0, true, true},
		{"environment.mounts", len(e.Mounts) > 0, true, false},
		{"environment.runtime", e.Runtime != "", true, true},
		{"environment.user", e.User != "", true, true},
		{"environment.image", e.Image != "", true, true},
		{"environment.platform", e.Platform != "", true, true},
		{"environment.cap_add", len(e.CapAdd) > 0, true, true},
		{"environment.cap_drop", len(e.CapDrop) > 0, true, false},
		{"environment.new_privileges", e.NewPrivileges, false, true},
		{"environment.unsafe", e.Unsafe, true, true},
		{"run.image_budget", cfg.Run.ImageBudget != "", true, true},
	}
}

// What the classes are instead.
const (
	localIs      = "commands run as this user, on this machine, with all of its network; leave it out, or use docker"
	bubblewrapIs = "it shares this machine's programs and user, and bounds no resources; leave it out, or use docker"
)

// kept refuses what somebody asked for and a class of this machine cannot keep:
// it is there to protect the machine, or the honesty of the results. The
// defaults are about containers, and ask for nothing here.
func kept(cfg *configs.Resolved, class string) error {
	for _, s := range shortfalls(cfg) {
		cannot, is := s.local, localIs
		if class == "bubblewrap" {
			cannot, is = s.bubblewrap, bubblewrapIs
		}
		o, ok := cfg.Origin(s.key)
		if ok && !o.Shipped() && s.set && cannot {
			return usagef("%s is set (%s), and %s cannot do that: %s", s.key, o, class, is)
		}
	}
	return nil
}
