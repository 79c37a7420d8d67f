package bubblewrap

import (
	"cmp"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// system are the places of the host's programs and their settings, as far as
// they exist. Everything else of the host is not in the sandbox at all.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu"}

// What there is in /proc beside processes. As root, without any capability, one
// still owns these files: a write to sys can take over the machine.
var (
	procReadOnly = []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "driver", "tty", "mtrr"}
	procHidden   = []string{
		"kcore", "kmsg", "keys", "key-users", "kpagecgroup", "kpagecount", "kpageflags", "slabinfo", "vmallocinfo", "pagetypeinfo",
		"timer_list", "timer_stats", "sched_debug", "latency_stats", "acpi", "asound", "scsi",
	}
)

// layout is a command line for bwrap in the making.
type layout struct{ args []string }

func (l *layout) add(args ...string) { l.args = append(l.args, args...) }

// toolDir is where a sandbox sees the folder with mini-tool, which other
// sandboxes see too.
const toolDir = "/.mini/bin"

// commandLine builds the sandbox of c, with its work folder, and runs program
// in it; tools is the folder with mini-tool. Later mounts cover earlier ones.
func commandLine(c Config, work, home, tools, program string) []string {
	l := &layout{}
	l.add("--unshare-all", "--unshare-user", "--disable-userns")
	if c.Network == Host {
		l.add("--share-net")
	}
	// As PID 1 the helper is told of every orphan, and no signal from inside ends
	// it. Without capabilities nobody reaches into it either.
	l.add("--as-pid-1", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
	l.programs()
	l.kernel(cmp.Or(c.ShmBytes, DefaultShm))
	l.memory(c.Tmpfs, home)
	if c.Network == Host {
		l.resolver()
	}
	for _, m := range c.Mounts {
		l.add(map[bool]string{true: "--bind", false: "--ro-bind"}[m.ReadWrite], m.Source, m.Target)
	}
	inside := "/tmp"
	if work != "" {
		inside = cmp.Or(c.Inside, work)
		l.add("--bind", work, inside)
	}
	l.add("--ro-bind", tools, toolDir)
	l.add("--remount-ro", "/", "--chdir", inside, "--", program)
	return l.args
}

// programs shows the host's for reading.
func (l *layout) programs() {
	for _, dir := range system {
		info, err := os.Lstat(dir)
		if err != nil {
			continue
		}
		if target, err := os.Readlink(dir); err == nil {
			l.add("--symlink", target, dir)
			continue
		}
		if info.IsDir() {
			l.add("--ro-bind", dir, dir)
		}
	}
	l.hide("/etc")
}

// hide covers what below a folder is not for everybody to read: keys and hashes
// of passwords. The kernel would refuse other users, but not root, nor the
// members of a group.
func (l *layout) hide(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // what cannot be read here is covered too
		if d == nil {
			return nil
		}
		info, gone := d.Info()
		switch {
		case gone != nil:
		case d.IsDir() && (err != nil || info.Mode().Perm()&0o005 != 0o005):
			l.add("--perms", "0555", "--tmpfs", path, "--remount-ro", path)
			return fs.SkipDir
		case info.Mode().IsRegular() && info.Mode().Perm()&0o004 == 0:
			l.add("--ro-bind", os.DevNull, path)
		}
		return nil //nolint:nilerr // what cannot be read was covered above
	})
}

// kernel is /proc and /dev.
func (l *layout) kernel(shm int64) {
	l.add("--proc", "/proc")
	for _, name := range procReadOnly {
		path := "/proc/" + name
		l.add("--ro-bind-try", path, path)
	}
	for _, name := range procHidden {
		path := "/proc/" + name
		switch info, err := os.Stat(path); {
		case err != nil:
		case info.IsDir():
			l.add("--perms", "0555", "--tmpfs", path, "--remount-ro", path)
		default:
			l.add("--ro-bind", os.DevNull, path)
		}
	}
	l.add("--dev", "/dev")
	l.tmpfs("/dev/shm", "1777", shm)
}

// memory are the folders that live in it.
func (l *layout) memory(sizes map[string]int64, home string) {
	for _, d := range []struct{ path, mode string }{{"/tmp", "1777"}, {"/var/tmp", "1777"}, {"/run", "0755"}, {home, "0700"}} {
		if d.path != "" {
			l.tmpfs(d.path, d.mode, cmp.Or(sizes[d.path], DefaultTmpfs))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(sizes)) {
		if !slices.Contains([]string{"/tmp", "/var/tmp", "/run", home}, path) {
			l.tmpfs(path, "0755", sizes[path])
		}
	}
}

func (l *layout) tmpfs(path, mode string, size int64) {
	l.add("--perms", mode, "--size", strconv.FormatInt(size, 10), "--tmpfs", path)
}

// resolver shows where names are asked for, which is often a link into /run.
func (l *layout) resolver() {
	if path, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && !within(path, "/etc") {
		l.add("--ro-bind", path, path)
	}
}
