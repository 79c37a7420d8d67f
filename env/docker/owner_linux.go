package docker

import (
	"fmt"
	"os"
	"strings"
)

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func pidSpace() string {
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return link
}

// processStart is when a process began, in clock ticks since the boot, and
// whether it is there; a zombie is not.
func processStart(pid int) (start string, running bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	// The second field is the name, in parentheses, and may hold anything.
	s := string(b)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	const state, startTime = 0, 19 // fields 3 and 22 of proc_pid_stat(5)
	if len(fields) <= startTime || fields[state] == "Z" || fields[state] == "X" {
		return "", false
	}
	return fields[startTime], true
}
