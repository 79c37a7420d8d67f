package process

import (
	"slices"
	"testing"
)

func TestOOMKills(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"cgroup v1":        {"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3},
		"cgroup v2":        {"low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n", 1},
		"none yet":         {"oom_kill 0\n", 0},
		"no counter":       {"oom_kill_disable 0\nunder_oom 0\n", -1},
		"nothing":          {"", -1},
		"not a number":     {"oom_kill many\n", -1},
		"without line end": {"oom_kill 7", 7},
	} {
		if got := parseOOMKills([]byte(c.text)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestOOMFiles(t *testing.T) {
	for name, c := range map[string]struct {
		groups string
		want   []string
	}{
		"cgroup v1": {
			"4:cpu,cpuacct:/a\n3:memory:/docker/x\n0::/b\n",
			[]string{"/sys/fs/cgroup/memory/docker/x/memory.oom_control", "/sys/fs/cgroup/memory/memory.oom_control"},
		},
		"cgroup v2":                {"0::/a/b\n", []string{"/sys/fs/cgroup/a/b/memory.events", "/sys/fs/cgroup/memory.events"}},
		"cgroup v2 in a container": {"0::/\n", []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory.events"}},
		"none":                     {"", nil},
	} {
		if got := oomFiles(c.groups); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
