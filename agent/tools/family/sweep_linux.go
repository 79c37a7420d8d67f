package family

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"syscall"
)

// Bounds of a sweep: whoever forks faster than this gets away.
const (
	maxRounds  = 8
	maxEnviron = 1 << 20
)

// sweep kills every process that carries a tag, until there is none.
func sweep(tag string) {
	for range maxRounds {
		found := false
		names, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, n := range names {
			pid, err := strconv.Atoi(n.Name())
			if err == nil && pid != os.Getpid() && carries(n.Name(), tag) {
				found = syscall.Kill(pid, syscall.SIGKILL) == nil || found
			}
		}
		if !found {
			return
		}
	}
}

// carries looks into the environment of a process; that of one that is dead, or of
// another user, is empty.
func carries(pid, tag string) bool {
	f, err := os.Open("/proc/" + pid + "/environ") //nolint:gosec // a place in /proc
	if err != nil {
		return false
	}
	defer f.Close()                                      //nolint:errcheck // nothing was written
	data, _ := io.ReadAll(io.LimitReader(f, maxEnviron)) // what could be read counts
	for kv := range bytes.SplitSeq(data, []byte{0}) {
		if string(kv) == tag {
			return true
		}
	}
	return false
}
