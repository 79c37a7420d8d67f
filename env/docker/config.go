package docker

import (
	"maps"
	"slices"
	"time"
)

// Defaults of Config.
const (
	DefaultMemoryBytes = 4 << 30 // bytes
	DefaultPIDs        = 512
	DefaultShmBytes    = 64 << 20  // bytes
	DefaultTmpfsBytes  = 256 << 20 // bytes; of /tmp if the root file system is read-only
)

// Config describes one sandbox. Only Image is required.
type Config struct {
	// Image is a reference or an id. Start pulls it if the engine does not have it.
	Image string
	// Platform selects an image of a multi-platform index, for example
	// "linux/arm64"; empty means the daemon's choice.
	Platform string
	// Dir is the working directory of commands; empty means the image's WORKDIR.
	// If it does not exist, commands start in WORKDIR and Info has a warning.
	Dir string
	// Env is added to the image's variables and overrides them.
	Env map[string]string
	// User runs the commands, as "name", "uid" or "uid:gid"; empty means the
	// image's USER.
	User string
	// Interpreter is the shell and its flags; Start fails if the image lacks it.
	// Empty means bash -c, or sh -c in an image without bash.
	Interpreter []string
	// Timeout is the default timeout of a command; zero means one minute.
	Timeout time.Duration

	// Network is "none", "bridge", "host", the name of a network, or
	// "container:NAME" to share another container's network. Empty means "none".
	Network string
	// MemoryBytes limits memory, swap included; zero means DefaultMemoryBytes,
	// negative means no limit.
	MemoryBytes int64
	// CPUs limits the processor time, in processors (1.5 is one and a half);
	// zero means no limit.
	CPUs float64
	// PIDs limits processes and threads; zero means DefaultPIDs, negative means
	// no limit.
	PIDs int64
	// ShmBytes is the size of /dev/shm; zero means DefaultShmBytes, or a quarter of
	// MemoryBytes if that is less. Its pages count as memory and cannot be reclaimed,
	// so a full /dev/shm leaves that much less memory to commands.
	ShmBytes int64
	// Tmpfs maps directories of the container to the size, in bytes, of a tmpfs
	// mounted there. Its pages count as memory, like those of /dev/shm; the sum of
	// ShmBytes and all these sizes must be less than MemoryBytes.
	Tmpfs map[string]int64
	// ReadOnly makes the image's file system read-only. Commands can still write
	// to Tmpfs and to writable Mounts. Unless a tmpfs or mount contains /tmp, /tmp
	// becomes a tmpfs of DefaultTmpfsBytes bytes, or of a quarter of MemoryBytes if
	// that is less.
	ReadOnly bool
	// Ulimits limit each process, by name ("nofile"). The engine cannot grant
	// more than it has itself.
	Ulimits []Ulimit
	// Mounts are directories and files of the engine's machine. Commands can write
	// outside the sandbox through a writable mount.
	Mounts []Mount
	// Runtime is an OCI runtime known to the engine ("runsc"); empty means its default.
	Runtime string
	// CapDrop and CapAdd change the capabilities; nil means to drop all and to add
	// CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETUID, SETGID, SETFCAP and KILL.
	CapDrop, CapAdd []string
	// NewPrivileges lets set-uid programs gain privileges.
	NewPrivileges bool
	// AllowUnsafe permits capabilities with which commands can forge results or leave the
	// sandbox (see unsafeCapabilities), and mounts that give access to an engine
	// (see engineSockets), to another service of the machine or to its kernel.
	AllowUnsafe bool

	// Prepare is work to do once per image, before the first container; nil means
	// none. It is skipped without EngineConfig.Images, and for configurations that
	// usesPrepared excludes.
	Prepare *Preparation `json:"-"`
	// Run and Instance are written to the container's labels; both are optional.
	Run, Instance string
}

// Ulimit is a limit of setrlimit(2), by Docker's name; -1 means unlimited.
type Ulimit struct {
	Name       string
	Soft, Hard int64
}

// Mount is a directory or file of the engine's machine to mount in a container.
type Mount struct {
	Source, Target string // absolute paths: on the engine's machine, in the container
	ReadWrite      bool
}

// withDefaults fills in the unset fields.
func (c Config) withDefaults() Config {
	if c.MemoryBytes == 0 {
		c.MemoryBytes = DefaultMemoryBytes
	}
	if c.PIDs == 0 {
		c.PIDs = DefaultPIDs
	}
	if c.ShmBytes == 0 {
		c.ShmBytes = c.limitToMemory(DefaultShmBytes)
	}
	if c.ReadOnly && c.mountPoint("/tmp") == "" {
		c.Tmpfs = maps.Clone(c.Tmpfs)
		if c.Tmpfs == nil {
			c.Tmpfs = map[string]int64{}
		}
		c.Tmpfs["/tmp"] = c.limitToMemory(DefaultTmpfsBytes)
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

// limitToMemory returns size, but at most a quarter of the memory limit.
func (c Config) limitToMemory(size int64) int64 {
	if c.MemoryBytes > 0 {
		return min(size, c.MemoryBytes/4)
	}
	return size
}

// hasWritableMount reports whether commands can write files outside the sandbox.
func (c Config) hasWritableMount() bool {
	return c.canMount() && len(c.Mounts) > 0 || slices.ContainsFunc(c.Mounts, func(m Mount) bool { return m.ReadWrite })
}
