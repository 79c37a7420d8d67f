package family

import (
	"bytes"
	"io"
	"os"
	"strconv"
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
				found = killTagged(pid, tag) || found
			}
		}
		if !found {
			return
		}
	}
}

// killTagged looks at the tag again once the process cannot be taken for another:
// os.Process holds it by a pidfd.
func killTagged(pid int, tag string) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release() //nolint:errcheck // only closes the pidfd
	return carries(strconv.Itoa(pid), tag) && p.Kill() == nil
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
