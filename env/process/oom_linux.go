package process

import (
	"bufio"
	"os"
	"path"
	"strconv"
	"strings"
)

// oomKills reads how many processes the kernel has killed for want of memory in
// the control group of this process; -1 where that cannot be known.
func oomKills() int {
	for _, file := range oomFiles() {
		if n, ok := oomCount(file); ok {
			return n
		}
	}
	return -1
}

// oomFiles lists where the counter may be: below the group's own path, and at
// the root of the mount, which is the group itself within a container.
func oomFiles() []string {
	const root = "/sys/fs/cgroup"
	var files []string
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(groups)) {
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

func oomCount(file string) (int, bool) {
	f, err := os.Open(file) //nolint:gosec // a fixed place in the control group tree
	if err != nil {
		return 0, false
	}
	defer f.Close() //nolint:errcheck // nothing was written
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "oom_kill "); ok {
			n, err := strconv.Atoi(value)
			return n, err == nil
		}
	}
	return 0, false
}
