package bubblewrap

import (
	"cmp"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/minibench/mini/env/helper"
)

// systemDirs are the directories with the host's programs and their configuration.
// Those that exist are mounted, or recreated if they are symbolic links. Other
// directories of the host are missing in the sandbox unless Config names them.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu"}

// Files in /proc to protect. Root can write to them even without capabilities, because
// it owns them, and a write to /proc/sys can compromise the machine.
var (
	procReadOnly = []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "driver", "tty", "mtrr"}
	procHidden   = []string{
		"kcore", "kmsg", "keys", "key-users", "kpagecgroup", "kpagecount", "kpageflags", "slabinfo", "vmallocinfo", "pagetypeinfo",
		"timer_list", "timer_stats", "sched_debug", "latency_stats", "acpi", "asound", "scsi",
	}
)

// layout builds a command line for bwrap.
type layout struct{ args []string }

func (l *layout) add(args ...string) { l.args = append(l.args, args...) }

// toolDir is the mount point of the directory with mini-tool. All sandboxes share that
// directory.
const toolDir = "/.mini/bin"

// commandLine returns the bwrap command line for a sandbox with configuration c and
// work directory work, which runs program. home is the home directory to hide, and
// tools the host's directory with mini-tool. Later mounts cover earlier ones.
func commandLine(c Config, work, home, tools, program string) []string {
	l := &layout{}
	l.add("--unshare-all", "--unshare-user", "--disable-userns")
	if c.Network == NetworkHost {
		l.add("--share-net")
	}
	// As PID 1 the helper adopts every orphan, and no signal from inside kills it.
	// Without capabilities no process can trace it either.
	l.add("--as-pid-1", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
	l.mountPrograms()
	l.mountKernel(cmp.Or(c.ShmBytes, DefaultShmBytes))
	l.mountTmpfsDirs(c.Tmpfs, home)
	if c.Network == NetworkHost {
		l.mountResolver()
	}
	for _, m := range c.Mounts {
		l.add(map[bool]string{true: "--bind", false: "--ro-bind"}[m.ReadWrite], m.Source, m.Target)
	}
	cwd := "/tmp"
	if work != "" {
		cwd = cmp.Or(c.MountPath, work)
		l.add("--bind", work, cwd)
	}
	l.add("--ro-bind", tools, toolDir)
	l.add("--remount-ro", "/", "--chdir", cwd, "--", program, helper.ProgramArg)
	return l.args
}

// mountPrograms mounts the host's programs read-only.
func (l *layout) mountPrograms() {
	for _, dir := range systemDirs {
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
	l.hideUnreadable("/etc")
}

// hideUnreadable covers dir and the files and directories below it, if not everyone can
// read them: keys and password hashes, for example. The kernel denies them to other
// users, but not to root or members of the file's group.
func (l *layout) hideUnreadable(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // unreadable directories are covered too
		if d == nil {
			return nil
		}
		info, infoErr := d.Info()
		switch {
		case infoErr != nil: // deleted meanwhile
		case d.IsDir() && (err != nil || info.Mode().Perm()&0o005 != 0o005):
			l.add("--perms", "0555", "--tmpfs", path, "--remount-ro", path)
			return fs.SkipDir
		case info.Mode().IsRegular() && info.Mode().Perm()&0o004 == 0:
			l.add("--ro-bind", os.DevNull, path)
		}
		return nil //nolint:nilerr // unreadable directories were covered above
	})
}

// mountKernel mounts /proc and /dev.
func (l *layout) mountKernel(shm int64) {
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

// mountTmpfsDirs mounts the tmpfs directories.
func (l *layout) mountTmpfsDirs(sizes map[string]int64, home string) {
	for _, d := range []struct{ path, mode string }{{"/tmp", "1777"}, {"/var/tmp", "1777"}, {"/run", "0755"}, {home, "0700"}} {
		if d.path != "" {
			l.tmpfs(d.path, d.mode, cmp.Or(sizes[d.path], DefaultTmpfsBytes))
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

// mountResolver mounts the target of /etc/resolv.conf, often a link into /run, unless
// the target is in /etc.
func (l *layout) mountResolver() {
	if path, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && !isWithin(path, "/etc") {
		l.add("--ro-bind", path, path)
	}
}
