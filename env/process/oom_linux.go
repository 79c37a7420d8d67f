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

// oomCounter reads how many processes of this control group the kernel's OOM killer
// has killed. Finding the file takes as long as a small command, so it is opened once
// and stays open; each read returns the current count.
type oomCounter struct {
	mu     sync.Mutex
	opened bool
	file   *os.File // nil if there is no counter
}

// count returns the counter; -1 if unknown.
func (c *oomCounter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.opened {
		c.opened, c.file = true, openOOMFile()
	}
	if c.file == nil {
		return -1
	}
	return readOOMFile(c.file)
}

func (c *oomCounter) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != nil {
		c.file.Close() //nolint:errcheck // nothing was written
	}
	c.opened, c.file = true, nil
}

func openOOMFile() *os.File {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for _, file := range oomFiles(string(groups)) {
		f, err := os.Open(file) //nolint:gosec // a fixed path in the cgroup tree
		if err != nil {
			continue
		}
		if readOOMFile(f) >= 0 {
			return f
		}
		f.Close() //nolint:errcheck // nothing was written
	}
	return nil
}

// readOOMFile reads the file with one system call, which returns all of it. A second
// call, to find the end of the file, would make the kernel compute the counters again.
func readOOMFile(f *os.File) int {
	var buf [512]byte
	n, err := syscall.Pread(int(f.Fd()), buf[:], 0)
	if err != nil || n <= 0 {
		return -1
	}
	return parseOOMKills(buf[:n])
}

// oomFiles returns the possible paths of the counter, given the text of
// /proc/self/cgroup: below the group's own path, and at the root of the mount, which
// is the group itself inside a container.
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
			// In cgroup v1, only the hierarchy of the memory controller has the
			// counter.
			dir := path.Join(root, "memory")
			return []string{path.Join(dir, group, "memory.oom_control"), dir + "/memory.oom_control"}
		}
	}
	return files
}

// parseOOMKills finds the count in memory.events (cgroup v2) or memory.oom_control (cgroup
// v1); -1 if it is missing.
func parseOOMKills(text []byte) int {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			if n, err := strconv.Atoi(string(bytes.TrimSpace(value))); err == nil {
				return n
			}
		}
	}
	return -1
}
