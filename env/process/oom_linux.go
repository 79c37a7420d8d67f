package process

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// oomCounter is how many processes the kernel has killed for want of memory in
// the control group of this process. Finding the file takes as long as a small
// command, so it is found once and stays open; each read makes the kernel count
// anew.
type oomCounter struct {
	mu     sync.Mutex
	looked bool
	file   *os.File // nil where there is no counter
}

// now reads the counter; -1 where it cannot be known.
func (c *oomCounter) now() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.looked {
		c.looked, c.file = true, openOOM()
	}
	if c.file == nil {
		return -1
	}
	return readOOM(c.file)
}

func (c *oomCounter) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != nil {
		c.file.Close() //nolint:errcheck // nothing was written
	}
	c.looked, c.file = true, nil
}

func openOOM() *os.File {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for _, name := range oomFiles(string(groups)) {
		f, err := os.Open(name) //nolint:gosec // a fixed place in the control group tree
		if err != nil {
			continue
		}
		if readOOM(f) >= 0 {
			return f
		}
		f.Close() //nolint:errcheck // nothing was written
	}
	return nil
}

// readOOM reads once: a short read is the whole file, and to ask for its end
// would make the kernel count again.
func readOOM(f *os.File) int {
	var buf [512]byte
	n, err := syscall.Pread(int(f.Fd()), buf[:], 0)
	if err != nil || n <= 0 {
		return -1
	}
	return oomKills(buf[:n])
}

// oomFiles lists where the counter may be, by the text of /proc/self/cgroup:
// below the group's own path, and at the root of the mount, which is the group
// itself within a container.
func oomFiles(groups string) []string {
	const root = "/sys/fs/cgroup"
	var files []string
	for line := range strings.Lines(groups) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		switch {
		case controllers == "":
			files = append(files, path.Join(root, group, "memory.events"), root+"/memory.events")
		case strings.Contains(","+controllers+",", ",memory,"):
			// The older layout, which has the say about memory where it exists.
			dir := path.Join(root, "memory")
			return []string{path.Join(dir, group, "memory.oom_control"), dir + "/memory.oom_control"}
		}
	}
	return files
}

// oomKills finds the count in memory.events (the newer layout) or in
// memory.oom_control; -1 when it is not there.
func oomKills(text []byte) int {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			if n, err := strconv.Atoi(string(bytes.TrimSpace(value))); err == nil {
				return n
			}
		}
	}
	return -1
}
