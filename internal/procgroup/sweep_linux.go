package procgroup

import (
	"bytes"
	"io"
	"os"
	"strconv"
)

// Bounds of killTaggedProcesses. Processes that fork faster than maxRounds
// scans of /proc escape. maxEnviron is the number of bytes read of an
// environment.
const (
	maxRounds  = 8
	maxEnviron = 1 << 20
)

// killTaggedProcesses kills all processes that have a tag, until none is left or after
// maxRounds scans.
func killTaggedProcesses(tag string) {
	for range maxRounds {
		found := false
		names, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, n := range names {
			pid, err := strconv.Atoi(n.Name())
			if err == nil && pid != os.Getpid() && hasTag(n.Name(), tag) {
				found = killIfTagged(pid, tag) || found
			}
		}
		if !found {
			return
		}
	}
}

// killIfTagged kills a process that has the tag, and reports whether it did. It checks
// the tag after opening a pidfd (os.FindProcess), because the pid may have been reused
// since the caller's check.
func killIfTagged(pid int, tag string) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release() //nolint:errcheck // only closes the pidfd
	return hasTag(strconv.Itoa(pid), tag) && p.Kill() == nil
}

// hasTag reports whether the environment of a process contains the tag. It is
// false for zombies and for processes of other users, whose environment is
// unreadable.
func hasTag(pid, tag string) bool {
	f, err := os.Open("/proc/" + pid + "/environ") //nolint:gosec // a path in /proc
	if err != nil {
		return false
	}
	defer f.Close()                                      //nolint:errcheck // nothing was written
	data, _ := io.ReadAll(io.LimitReader(f, maxEnviron)) // a partial read may contain the tag
	for kv := range bytes.SplitSeq(data, []byte{0}) {
		if string(kv) == tag {
			return true
		}
	}
	return false
}
