package envopen

import (
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/usage"
)

// unsupportedSetting is a container setting that a host class does not support.
type unsupportedSetting struct {
	key               string
	set               bool // it is not zero, and for the network also not "host"
	local, bubblewrap bool // the class of this name does not support it
}

// unsupportedSettings lists the settings that at least one host class does not
// support. A class supports what it implies: bubblewrap has a read-only root and no
// capabilities, and local commands may gain privileges.
func unsupportedSettings(cfg *configs.Resolved) []unsupportedSetting {
	e := cfg.Environment
	return []unsupportedSetting{
		{"environment.network", e.Network != "" && e.Network != "host", true, false}, // package bubblewrap validates its network
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

// Hints for errors about unsupported settings.
const (
	localHint      = "commands run as this user on this machine, with its network; leave it out, or use docker"
	bubblewrapHint = "it shares this machine's programs and user, and limits no resources; leave it out, or use docker"
)

// CheckHostSettings returns an error if the user set a setting that the class
// cannot enforce. It ignores mini's defaults, which are meant for containers.
func CheckHostSettings(cfg *configs.Resolved, class string) error {
	for _, s := range unsupportedSettings(cfg) {
		unsupported, hint := s.local, localHint
		if class == "bubblewrap" {
			unsupported, hint = s.bubblewrap, bubblewrapHint
		}
		o, ok := cfg.Origin(s.key)
		if ok && !o.IsBuiltin() && s.set && unsupported {
			return usage.Errorf("%s is set (%s), but %s does not support it: %s", s.key, o, class, hint)
		}
	}
	return nil
}
