package docker

import (
	"maps"
	"slices"
	"time"
)

// Defaults of Config.
const (
	DefaultMemory = 4 << 30 // bytes
	DefaultPIDs   = 512
	DefaultShm    = 64 << 20  // bytes
	DefaultTmp    = 256 << 20 // bytes; of /tmp where the root is read-only
)

// Config describes one sandbox. Only Image is required.
type Config struct {
	// Image is a reference or an id. It is pulled when it is not there.
	Image string
	// Platform, as "linux/arm64", picks one of a multi-platform image; empty
	// means what the daemon picks.
	Platform string
	// Dir is where commands start; empty means the image's WORKDIR. Where it
	// does not exist commands start in the WORKDIR and Info warns.
	Dir string
	// Env is added to the image's variables and wins over them.
	Env map[string]string
	// User runs the commands, as "name", "uid" or "uid:gid"; empty means the
	// image's USER.
	User string
	// Interpreter is the shell and its flags. An image that lacks it is refused.
	// Empty means bash -c, or sh -c in an image without bash.
	Interpreter []string
	// Timeout bounds commands that name none; zero means one minute.
	Timeout time.Duration

	// Network is "none", "bridge", "host", a network's name, or
	// "container:NAME", whose network is shared. Empty means none: commands
	// reach nothing.
	Network string
	// MemoryBytes bounds the memory, swap included; zero means DefaultMemory,
	// negative no bound.
	MemoryBytes int64
	// CPUs bounds the processor time, 1.5 being one and a half; zero means no
	// bound.
	CPUs float64
	// PIDs bounds processes and threads; zero means DefaultPIDs, negative no
	// bound.
	PIDs int64
	// ShmBytes is the size of /dev/shm; zero means DefaultShm, or a quarter of
	// MemoryBytes where that is less. Its pages count as memory and cannot be
	// reclaimed: a full one takes that much from the commands.
	ShmBytes int64
	// Tmpfs maps directories of the container to the size, in bytes, of a file
	// system in memory there. Its pages count as memory, like those of ShmBytes;
	// together they must be less than MemoryBytes.
	Tmpfs map[string]int64
	// ReadOnly makes the image's own file system read-only. What is in Tmpfs and
	// in writable Mounts can be written to, and /tmp, which gets a file system in
	// memory of DefaultTmp, or of a quarter of MemoryBytes where that is less.
	ReadOnly bool
	// Ulimits bound single processes, by name ("nofile"). The engine cannot give
	// more than it has itself.
	Ulimits []Ulimit
	// Mounts are directories and files of the engine's machine. A writable one
	// is out of the sandbox: what commands leave there stays, with their rights.
	Mounts []Mount
	// Runtime is the engine's name of a runtime ("runsc"); empty means its default.
	Runtime string
	// CapDrop and CapAdd change the capabilities; nil means that all are
	// dropped and a short list is given back (CHOWN, DAC_OVERRIDE, FOWNER,
	// FSETID, SETUID, SETGID, SETFCAP, KILL).
	CapDrop, CapAdd []string
	// NewPrivileges lets set-uid programs gain rights.
	NewPrivileges bool
	// Force permits capabilities with which a command can read or write in
	// the helper's name, so that its results prove nothing, or reach out of the
	// sandbox (see forging), and mounts through which it can command the engine
	// (see sockets) or talk to another service of the machine.
	Force bool

	// Prepare is what is done once on the image for all its containers; nil means
	// nothing. It takes an Engine that looks after images.
	Prepare *Preparation `json:"-"`
	// Run and Instance name what the container is for, in its labels; neither
	// is required.
	Run, Instance string
}

// Ulimit is a limit of setrlimit(2), by Docker's name for it; -1 is none.
type Ulimit struct {
	Name       string
	Soft, Hard int64
}

// Mount is a directory or file of the engine's machine that a container sees.
type Mount struct {
	Source, Target string // absolute paths, there and in the container
	ReadWrite      bool
}

// withDefaults fills in what is not set.
func (c Config) withDefaults() Config {
	if c.MemoryBytes == 0 {
		c.MemoryBytes = DefaultMemory
	}
	if c.PIDs == 0 {
		c.PIDs = DefaultPIDs
	}
	if c.ShmBytes == 0 {
		c.ShmBytes = c.share(DefaultShm)
	}
	if c.ReadOnly && c.under("/tmp") == "" {
		c.Tmpfs = maps.Clone(c.Tmpfs)
		if c.Tmpfs == nil {
			c.Tmpfs = map[string]int64{}
		}
		c.Tmpfs["/tmp"] = c.share(DefaultTmp)
	}
	if c.Network == "" {
		c.Network = networkNone
	}
	if c.CapDrop == nil {
		c.CapDrop = []string{"ALL"}
	}
	if c.CapAdd == nil {
		c.CapAdd = slices.Clone(defaultCapAdd)
	}
	return c
}

// share is a size in memory that leaves most of a small bound to commands.
func (c Config) share(size int64) int64 {
	if c.MemoryBytes > 0 {
		return min(size, c.MemoryBytes/4)
	}
	return size
}

// writable says that commands can leave files outside of the sandbox.
func (c Config) writable() bool {
	return c.canMount() && len(c.Mounts) > 0 || slices.ContainsFunc(c.Mounts, func(m Mount) bool { return m.ReadWrite })
}
