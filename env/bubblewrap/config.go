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

// Sizes of what lies in memory, in bytes, where Config says nothing.
const (
	DefaultTmpfs = 1 << 30 // of each of /tmp, /var/tmp, /run and the home
	DefaultShm   = 64 << 20
)

// Network modes.
const (
	// None is a network of the sandbox's own, with nothing but a loopback.
	None = "none"
	// Host is the host's network as it is, loopback and abstract sockets
	// included: whatever listens there can be reached.
	Host = "host"
)

// Config describes one sandbox. The zero value is one without a folder of the
// host's; commands start in /tmp.
type Config struct {
	// Dir is the folder that commands may change, and start in. Commands do not
	// reach beyond it through links.
	Dir string
	// Inside is the path it has in the sandbox; empty means the one it has.
	Inside string
	// Disposable says that Dir was made for this sandbox: Close removes it.
	Disposable bool
	// Env is added to the variables that commands start with, and wins.
	Env map[string]string
	// Timeout bounds a command that names none; zero means a minute.
	Timeout time.Duration
	// Interpreter is the shell and its flags; empty means bash -c, or sh where
	// there is no bash.
	Interpreter []string
	// Network is None or Host; empty means None.
	Network string
	// ShmBytes is the size of /dev/shm; zero means DefaultShm.
	ShmBytes int64
	// Tmpfs maps directories to the size, in bytes, of a file system in memory
	// there. /tmp, /var/tmp, /run and the home have one of DefaultTmpfs anyway.
	Tmpfs map[string]int64
	// Mounts are more of the host's folders and files.
	Mounts []Mount
	// Warnings are what Info is to say of Dir, beside its own.
	Warnings []string
}

// Mount is a folder or file of the host's that the sandbox sees.
type Mount struct {
	Source, Target string // absolute paths, on the host and in the sandbox
	ReadWrite      bool
}

// Validate reports what is wrong with c, all of it.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !slices.Contains([]string{"", None, Host}, c.Network) {
		bad("network %.60q: bubblewrap knows %q, and %q, which is this machine's own with all that listens on it", c.Network, None, Host)
	}
	errs = append(errs, child.Validate(c.Timeout, c.Interpreter, c.Env))
	if c.ShmBytes < 0 {
		bad("shm size must not be negative, is %d", c.ShmBytes)
	}
	if c.Inside != "" {
		errs = append(errs, mountPoint(c.Inside))
	}
	for dir, size := range c.Tmpfs {
		if size <= 0 {
			bad("tmpfs %s: the size must be positive, is %d", dir, size)
		}
		errs = append(errs, mountPoint(dir))
	}
	for _, m := range c.Mounts {
		if !filepath.IsAbs(m.Source) {
			bad("mount %s: not an absolute path", m.Source)
		} else if _, err := os.Stat(m.Source); err != nil {
			bad("mount %w", err)
		}
		errs = append(errs, mountPoint(m.Target))
	}
	return errors.Join(errs...)
}

// mountPoint refuses places without which, or before which, nothing works.
func mountPoint(dir string) error {
	switch {
	case !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || strings.Contains(dir, "\x00"):
		return fmt.Errorf("%q is not an absolute path in its plain form", dir)
	case dir == "/", within(dir, "/proc"), within(dir, "/dev"), slices.Contains(system, dir):
		return fmt.Errorf("nothing can be put in the place of %s", dir)
	}
	return nil
}

// within reports whether path is dir or lies below it; both are clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// folder is the real path of the work folder. It refuses one that would open
// what the sandbox is there to hide.
func folder(dir, home string) (string, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("work folder: %w", err)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", fmt.Errorf("work folder %s is not a directory", path)
	}
	for _, secret := range slices.Concat([]string{home, "/home", "/root", "/tmp", "/var", "/run", "/boot"}, system) {
		if within(secret, path) {
			what := "it is " + secret
			if secret != path {
				what = "it holds " + secret
			}
			return "", fmt.Errorf("commands must not work in %s: %s; start in a folder further down", path, what)
		}
	}
	for _, kernel := range []string{"/proc", "/sys", "/dev"} {
		if within(path, kernel) {
			return "", fmt.Errorf("commands must not work in %s: it is the kernel's", path)
		}
	}
	return path, nil
}
