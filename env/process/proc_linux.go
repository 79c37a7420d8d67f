package process

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ident names a process for good: the kernel reuses pids, but not together
// with the start time.
type ident struct {
	pid   int
	start uint64 // clock ticks since boot
}

// proc is one line of /proc/PID/stat.
type proc struct {
	ident
	name    string
	state   byte
	parent  int
	group   int
	session int
	threads int
}

// alive is false for what only waits to be reaped. A process whose first
// thread has ended looks like a zombie while its other threads run on.
func (p proc) alive() bool {
	return p.threads > 1 || (p.state != 'Z' && p.state != 'X' && p.state != 'x')
}

// dying reports that p has its SIGKILL and only needs a processor to end.
func (p proc) dying() bool {
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

// table is a look at every visible process, by pid.
type table map[int]proc

// scan reads the process table. Processes that end meanwhile are left out.
func scan() table {
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

// readProc uses plain system calls: a scan opens hundreds of files, and the
// runtime's poller has no use for any of them.
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

// parseStat finds the name between the first and the last parenthesis: it is
// chosen by the process and may hold spaces, parentheses and line ends.
func parseStat(line []byte) (proc, bool) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 2 || end < open {
		return proc{}, false
	}
	pid, err := strconv.Atoi(string(line[:open-1]))
	if err != nil {
		return proc{}, false
	}
	// Positions as in proc(5), less the three fields up to the state.
	const parent, group, session, threads, start = 1, 2, 3, 17, 19
	f := bytes.Fields(line[end+1:])
	if len(f) <= start || len(f[0]) != 1 {
		return proc{}, false
	}
	p := proc{name: string(line[open+1 : end]), state: f[0][0]}
	p.pid = pid
	for _, field := range []struct {
		at int
		to *int
	}{{parent, &p.parent}, {group, &p.group}, {session, &p.session}, {threads, &p.threads}} {
		if *field.to, err = strconv.Atoi(string(f[field.at])); err != nil {
			return proc{}, false
		}
	}
	p.start, err = strconv.ParseUint(string(f[start]), 10, 64)
	return p, err == nil
}

// above calls visit with p, its parent, and so on up to the last one below top,
// until visit returns false.
func (t table) above(p proc, top int, visit func(proc) bool) {
	for range len(t) + 1 { // a table read while processes come and go may have a loop
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

// below lists the descendants of top, oldest first. It goes down instead of up,
// because a chain of thousands of processes is within what commands do.
func (t table) below(top int) []proc {
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
	slices.SortFunc(found, older)
	return found
}

func older(a, b proc) int {
	switch {
	case a.start < b.start:
		return -1
	case a.start > b.start:
		return 1
	default:
		return a.pid - b.pid
	}
}
