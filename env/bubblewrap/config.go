package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/env/helper/child"
)

// Default sizes of tmpfs mounts, in bytes.
const (
	DefaultTmpfsBytes = 1 << 30  // for each of /tmp, /var/tmp, /run and the home directory
	DefaultShmBytes   = 64 << 20 // for /dev/shm
)

// Network modes.
const (
	// NetworkNone is a network namespace with only a loopback interface.
	NetworkNone = "none"
	// NetworkHost is the host's network, including loopback and abstract sockets:
	// commands can connect to every service on the host.
	NetworkHost = "host"
)

// Config configures one sandbox. The zero value has no directory of the host; commands
// start in /tmp.
type Config struct {
	// Dir is the directory on the host in which commands start, and which they may
	// change. Symbolic links out of Dir refer to the sandbox's files, not the host's.
	Dir string
	// MountPath is the path of Dir in the sandbox; empty means its path on the host.
	MountPath string
	// Disposable means that Dir was created for this sandbox: Close removes Dir.
	Disposable bool
	// Env is added to the environment variables of commands and overrides them.
	Env map[string]string
	// Timeout is the timeout of commands that set none; zero means a minute.
	Timeout time.Duration
	// Interpreter is the shell with its flags; empty means bash -c, or sh if bash is
	// missing.
	Interpreter []string
	// Network is NetworkNone or NetworkHost; empty means NetworkNone.
	Network string
	// ShmBytes is the size of /dev/shm; zero means DefaultShmBytes.
	ShmBytes int64
	// Tmpfs maps directories to the sizes of tmpfs mounts, in bytes. /tmp, /var/tmp,
	// /run and the home directory always are tmpfs mounts; their default size is
	// DefaultTmpfsBytes.
	Tmpfs map[string]int64
	// Mounts are further directories and files of the host to mount.
	Mounts []Mount
	// Warnings are added to Info.Warnings.
	Warnings []string
}

// Mount is a bind mount of a directory or file of the host.
type Mount struct {
	Source, Target string // absolute paths, on the host and in the sandbox
	ReadWrite      bool
}

// Validate returns the joined errors of all invalid settings.
func (c Config) Validate() error {
	var errs []error
	addErr := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !slices.Contains([]string{"", NetworkNone, NetworkHost}, c.Network) {
		addErr("network %.60q: use %q, or %q, which gives access to all services on this machine", c.Network, NetworkNone, NetworkHost)
	}
	errs = append(errs, child.Validate(c.Timeout, c.Interpreter, c.Env))
	if c.ShmBytes < 0 {
		addErr("shm size is negative: %d", c.ShmBytes)
	}
	if c.MountPath != "" {
		errs = append(errs, checkMountPoint(c.MountPath))
	}
	for dir, size := range c.Tmpfs {
		if size <= 0 {
			addErr("tmpfs %s: size is not positive: %d", dir, size)
		}
		errs = append(errs, checkMountPoint(dir))
	}
	for _, m := range c.Mounts {
		if !filepath.IsAbs(m.Source) {
			addErr("mount %s: path is not absolute", m.Source)
		} else if _, err := os.Stat(m.Source); err != nil {
			addErr("mount %w", err)
		}
		errs = append(errs, checkMountPoint(m.Target))
	}
	return errors.Join(errs...)
}

// checkMountPoint returns an error for paths that are not absolute and clean, or that
// must not be covered by a mount.
func checkMountPoint(dir string) error {
	switch {
	case !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || strings.Contains(dir, "\x00"):
		return fmt.Errorf("%q is not a clean absolute path", dir)
	case dir == "/", isWithin(dir, "/proc"), isWithin(dir, "/dev"), slices.Contains(systemDirs, dir):
		return fmt.Errorf("cannot mount over %s", dir)
	}
	return nil
}

// isWithin reports whether path is dir or lies below it; both are clean.
func isWithin(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// resolveWorkDir returns the work directory with symbolic links resolved. It refuses
// directories that contain what the sandbox must hide or protect, and those of the
// kernel.
func resolveWorkDir(dir, home string) (string, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("work directory: %w", err)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", fmt.Errorf("work directory %s is not a directory", path)
	}
	for _, hidden := range slices.Concat([]string{home, "/home", "/root", "/tmp", "/var", "/run", "/boot"}, systemDirs) {
		if isWithin(hidden, path) {
			reason := "it is " + hidden
			if hidden != path {
				reason = "it contains " + hidden
			}
			return "", fmt.Errorf("commands must not work in %s: %s; use a subdirectory", path, reason)
		}
	}
	for _, kernelDir := range []string{"/proc", "/sys", "/dev"} {
		if isWithin(path, kernelDir) {
			return "", fmt.Errorf("commands must not work in %s: it is a kernel file system", path)
		}
	}
	return path, nil
}
