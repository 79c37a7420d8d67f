package docker

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Defaults of Config.
const (
	DefaultMemory = 4 << 30 // bytes
	DefaultPIDs   = 512
	DefaultShm    = 64 << 20 // bytes
	DefaultLease  = 10 * time.Minute
)

// defaultCapAdd is what is left of root's powers: enough to install packages,
// change owners and users, and for the helper to kill processes of any user.
var defaultCapAdd = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETUID", "SETGID", "SETFCAP", "KILL"}

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
	// Interpreter is the shell and its flags; empty means bash -c, or sh -c
	// in an image without bash.
	Interpreter []string
	// Timeout bounds commands that name none; zero means one minute.
	Timeout time.Duration

	// Network is the network mode. Empty means none: commands reach nothing.
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
	// ShmBytes is the size of /dev/shm; zero means DefaultShm. Its pages count
	// as memory and cannot be reclaimed, so it must be well under MemoryBytes.
	ShmBytes int64
	// Tmpfs maps directories of the container to the size, in bytes, of a file
	// system in memory there. Its pages count as memory, like those of ShmBytes.
	Tmpfs map[string]int64
	// ReadOnly makes the image's own file system read-only.
	ReadOnly bool
	// Ulimits bound single processes, by name ("nofile").
	Ulimits []Ulimit
	// Mounts are directories and files of the engine's machine.
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
	// the helper's name (see forging): its results prove nothing then.
	Force bool

	// Lease is how long a container lives without a sign of its owner; zero
	// means DefaultLease. It is the last resort: normally a container ends
	// with its owner.
	Lease time.Duration
	// Run and Instance name what the container is for, in its labels; neither
	// is required.
	Run, Instance string
}

// Ulimit is a limit of setrlimit(2), by Docker's name for it.
type Ulimit struct {
	Name       string
	Soft, Hard int64
}

// Mount is a directory or file of the engine's machine that a container sees.
type Mount struct {
	Source, Target string // absolute paths, there and in the container
	ReadWrite      bool
}

// Validate reports what is wrong with the configuration, all of it.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Image == "" {
		bad("image is missing")
	}
	if c.Platform != "" && !platformPattern.MatchString(c.Platform) {
		bad("platform %q is not of the form linux/amd64", c.Platform)
	}
	if c.Dir != "" && !path.IsAbs(c.Dir) {
		bad("directory %q is not absolute", c.Dir)
	}
	for name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			bad("variable name %q is not usable", name)
		}
	}
	if c.MemoryBytes > 0 && c.MemoryBytes < 6<<20 {
		bad("memory of %d bytes is less than the 6 MiB an engine accepts", c.MemoryBytes)
	}
	if c.CPUs < 0 || c.ShmBytes < 0 || c.Timeout < 0 || c.Lease < 0 {
		bad("cpus, shm, timeout and lease cannot be negative")
	}
	if c.Lease > 0 && c.Lease < time.Second {
		bad("lease of %s is less than a second", c.Lease)
	}
	for _, name := range c.CapAdd {
		if !c.Force && slices.Contains(forging, capability(name)) {
			bad("capability %s lets commands forge their own results; set environment.unsafe to accept that", name)
		}
	}
	return errors.Join(errs...)
}

// forging are the capabilities that reach into another process in spite of its
// not being dumpable, or around it.
var forging = []string{"ALL", "SYS_PTRACE", "PERFMON", "SYS_ADMIN"}

var platformPattern = regexp.MustCompile(`^linux/[a-z0-9]+(/[a-z0-9]+)?$`)

// capability is the engine's plain form of a capability's name.
func capability(name string) string {
	return strings.TrimPrefix(strings.ToUpper(name), "CAP_")
}

func (c Config) withDefaults() Config {
	if c.MemoryBytes == 0 {
		c.MemoryBytes = DefaultMemory
	}
	if c.PIDs == 0 {
		c.PIDs = DefaultPIDs
	}
	if c.ShmBytes == 0 {
		c.ShmBytes = DefaultShm
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.Network == "" {
		c.Network = "none"
	}
	if len(c.Interpreter) == 0 {
		c.Interpreter = []string{"bash", "-c"}
	}
	if c.CapDrop == nil {
		c.CapDrop = []string{"ALL"}
	}
	if c.CapAdd == nil {
		c.CapAdd = slices.Clone(defaultCapAdd)
	}
	return c
}
