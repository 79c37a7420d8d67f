package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// memoryGuard kills a process shortly before the memory limit of the control group is
// reached, if the kernel would then kill all processes of the group, and with them the
// sandbox. Kubernetes configures groups of cgroup v2 that way (memory.oom.group). A
// process that allocates faster than the guard looks can still end the sandbox.
type memoryGuard struct {
	dir   string // of the control group
	limit int64  // bytes at which the guard kills
	kills atomic.Int64
	stop  chan struct{}
}

// Times between two looks: while less than half of the memory is used, and otherwise.
const (
	guardInterval     = 100 * time.Millisecond
	guardIntervalNear = 5 * time.Millisecond
	// guardPause is how long the memory of a killed process may take to be freed.
	guardPause = 200 * time.Millisecond
)

// minGuardReserve is the smallest distance from the limit at which the guard kills, in
// bytes, unless that is more than a quarter of the limit.
const minGuardReserve = 64 << 20

// startMemoryGuard starts the guard of a control group. It returns nil if there is no
// need of one.
func startMemoryGuard(dir string) *memoryGuard {
	group, _ := readNumber(dir, "memory.oom.group") // missing in cgroup v1 and in the root
	limit, ok := readNumber(dir, "memory.max")      // "max" without a limit
	if group != 1 || !ok {
		return nil
	}
	reserve := min(max(limit/20, minGuardReserve), limit/4)
	g := &memoryGuard{dir: dir, limit: limit - reserve, stop: make(chan struct{})}
	go g.watch()
	return g
}

func readNumber(dir, name string) (int64, bool) {
	b, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // a fixed path in the cgroup tree
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}

func (g *memoryGuard) watch() {
	timer := time.NewTimer(guardInterval)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-g.stop:
			return
		}
		wait := guardInterval
		switch used := g.used(); {
		case used >= g.limit && killLargest():
			g.kills.Add(1)
			wait = guardPause
		case used >= g.limit/2:
			wait = guardIntervalNear
		}
		timer.Reset(wait)
	}
}

// used returns the memory that the kernel cannot reclaim, in bytes.
func (g *memoryGuard) used() int64 {
	b, err := os.ReadFile(filepath.Join(g.dir, "memory.stat"))
	if err != nil {
		return 0
	}
	var sum int64
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		switch string(name) {
		case "anon", "shmem", "kernel":
			n, _ := strconv.ParseInt(string(value), 10, 64) // 0 is as good as nothing
			sum += n
		}
	}
	return sum
}

// killLargest kills the descendant of this process that uses most memory of its own. It
// returns false if there is none.
func killLargest() bool {
	var largest proc
	most := int64(-1)
	for _, p := range descendants(scanProcs()) {
		if size := privatePages(p.pid); p.isAlive() && size > most {
			largest, most = p, size
		}
	}
	return most >= 0 && syscall.Kill(largest.pid, syscall.SIGKILL) == nil
}

// privatePages returns the number of resident pages of a process that it does not share
// with a file.
func privatePages(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := strings.Fields(string(b))
	if err != nil || len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(fields[1], 10, 64) // written by the kernel
	shared, _ := strconv.ParseInt(fields[2], 10, 64)   // likewise
	return resident - shared
}

// count returns the number of processes killed so far. g may be nil.
func (g *memoryGuard) count() int {
	if g == nil {
		return 0
	}
	return int(g.kills.Load())
}

// close ends the guard. g may be nil.
func (g *memoryGuard) close() {
	if g != nil {
		close(g.stop)
	}
}
