package process

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// procID identifies a process uniquely: the kernel reuses PIDs, but not with the same
// start time.
type procID struct {
	pid   int
	start uint64 // clock ticks since boot
}

// proc is the parsed content of /proc/PID/stat.
type proc struct {
	procID
	name    string
	state   byte
	parent  int
	group   int
	session int
	threads int
}

// isAlive reports whether p is not a zombie. A process whose first thread has exited
// looks like a zombie while its other threads run.
func (p proc) isAlive() bool {
	return p.threads > 1 || (p.state != 'Z' && p.state != 'X' && p.state != 'x')
}

// isDying reports whether p has a pending SIGKILL and only waits for a CPU to exit, or
// has exited.
func (p proc) isDying() bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/status")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		if name != "SigPnd" && name != "ShdPnd" {
			continue
		}
		if pending, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64); err == nil && pending&(1<<(syscall.SIGKILL-1)) != 0 {
			return true
		}
	}
	return false
}

// table is a snapshot of all visible processes, by PID.
type table map[int]proc

// scanProcs reads the process table. Processes that exit during the scan may be
// missing. Without /proc the table is nil.
func scanProcs() table {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close() //nolint:errcheck // nothing was written
	t := table{}
	buf := make([]byte, 1024)
	for {
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			pid, err := strconv.Atoi(name)
			if err != nil {
				continue
			}
			if p, ok := readProc(pid, buf); ok {
				t[pid] = p
			}
		}
		if err != nil {
			return t
		}
	}
}

// readProc reads /proc/PID/stat. It uses plain system calls, because a scan opens
// hundreds of files, and os.Open would try to register each with the runtime's poller.
func readProc(pid int, buf []byte) (proc, bool) {
	fd, err := syscall.Open("/proc/"+strconv.Itoa(pid)+"/stat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return proc{}, false
	}
	defer syscall.Close(fd) //nolint:errcheck // nothing was written
	n, err := syscall.Read(fd, buf)
	if err != nil || n <= 0 {
		return proc{}, false
	}
	return parseStat(buf[:n])
}

// parseStat parses a line of /proc/PID/stat. The name is between the first and the
// last parenthesis; the process chooses it, and it may contain spaces, parentheses and
// line ends.
func parseStat(line []byte) (proc, bool) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 2 || end < open {
		return proc{}, false
	}
	pid, err := strconv.Atoi(string(line[:open-1]))
	if err != nil {
		return proc{}, false
	}
	// Indices into f, which begins with the third field of proc(5), the state.
	const parent, group, session, threads, start = 1, 2, 3, 17, 19
	f := bytes.Fields(line[end+1:])
	if len(f) <= start || len(f[0]) != 1 {
		return proc{}, false
	}
	p := proc{name: string(line[open+1 : end]), state: f[0][0]}
	p.pid = pid
	for _, field := range []struct {
		index int
		dest  *int
	}{{parent, &p.parent}, {group, &p.group}, {session, &p.session}, {threads, &p.threads}} {
		if *field.dest, err = strconv.Atoi(string(f[field.index])); err != nil {
			return proc{}, false
		}
	}
	p.start, err = strconv.ParseUint(string(f[start]), 10, 64)
	return p, err == nil
}

// walkUp calls visit with p, its parent and so on, up to the last process below top,
// or until visit returns false.
func (t table) walkUp(p proc, top int, visit func(proc) bool) {
	for range len(t) + 1 { // a table read while processes start and exit may have a cycle
		if !visit(p) || p.parent == top {
			return
		}
		next, ok := t[p.parent]
		if !ok {
			return
		}
		p = next
	}
}

// descendantsOf returns the descendants of top, oldest first. It walks down instead of
// up, because commands can create chains of thousands of processes.
func (t table) descendantsOf(top int) []proc {
	children := make(map[int][]proc, len(t))
	for _, p := range t {
		if p.pid != top {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	found := slices.Clone(children[top])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	slices.SortFunc(found, compareAge)
	return found
}

func compareAge(a, b proc) int {
	switch {
	case a.start < b.start:
		return -1
	case a.start > b.start:
		return 1
	default:
		return a.pid - b.pid
	}
}
