package process

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// collectPause is how long a dead orphan waits to be collected. Collecting each
// at its SIGCHLD would wake several threads for every command.
const collectPause = 50 * time.Millisecond

// owner takes every child of this process as its own. Shells are registered
// under the lock that forks and collects them, so that no status can be lost.
type owner struct {
	mu         sync.Mutex
	waiting    map[int]chan<- syscall.WaitStatus
	collecting bool // a goroutine collects orphans
	workers    sync.WaitGroup
	closed     chan struct{}
}

func newOwner() (*owner, error) {
	// PID 1 gets orphans anyway; any other process only when it asks.
	if err := setSubreaper(true); err != nil {
		return nil, err
	}
	closeOnExec()
	return &owner{waiting: map[int]chan<- syscall.WaitStatus{}, closed: make(chan struct{})}, nil
}

// fork starts a program and tells on the channel how it ended.
func (o *owner) fork(path string, argv []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fd := -1 // stays so with kernels before 5.2
	attr.Sys.PidFD = &fd
	pid, err := syscall.ForkExec(path, argv, attr) //nolint:gosec // running what it is told is the purpose
	if err != nil {
		return 0, nil, err
	}
	c := make(chan syscall.WaitStatus, 1)
	o.waiting[pid] = c
	pause := collectPause
	if fd >= 0 {
		o.workers.Go(func() { o.await(pid, fd) })
	} else {
		pause = time.Millisecond
	}
	if !o.collecting {
		o.collecting = true
		o.workers.Go(func() { o.collectOrphans(pause) })
	}
	return pid, c, nil
}

// await collects a shell as soon as it has ended. It sleeps in the runtime's
// poller: a thread that waited in the kernel would have to be woken.
func (o *owner) await(pid, fd int) {
	syscall.SetNonblock(fd, true) //nolint:errcheck // otherwise collectOrphans does it
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close() //nolint:errcheck // nothing was written
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	conn.Read(func(uintptr) bool { return o.collect(pid) }) //nolint:errcheck // likewise
}

// collect takes the status of a shell if it has ended, and says whether it was
// taken.
func (o *owner) collect(pid int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.waiting[pid]; !ok {
		return true
	}
	return o.wait(pid) > 0
}

// wait collects a child that has ended; -1 means any. The lock is held.
func (o *owner) wait(which int) (pid int) {
	var ws syscall.WaitStatus
	pid, err := syscall.Wait4(which, &ws, syscall.WNOHANG, nil)
	if err != nil || pid <= 0 {
		return 0
	}
	if c, ok := o.waiting[pid]; ok {
		delete(o.waiting, pid)
		c <- ws
	}
	return pid
}

// collectOrphans runs while this process has children.
func (o *owner) collectOrphans(pause time.Duration) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-o.closed:
			return
		}
		o.mu.Lock()
		o.collectAll()
		if o.collecting = !childless(); !o.collecting {
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
	}
}

func (o *owner) collectAll() {
	for o.wait(-1) > 0 {
	}
}

// barren says that no process is left, dead or alive. It is the quick answer to
// the usual case after a command.
func (o *owner) barren() bool {
	if childless() {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.collectAll()
	return childless()
}

func (o *owner) close() {
	close(o.closed)
	o.workers.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.collectAll()
}

// descendants are the processes of t below this one, oldest first, those that
// wait to be collected included.
func descendants(t table) []proc { return t.below(os.Getpid()) }

// childless reports that this process has no child at all, dead or alive. Then
// it has no descendant either, because orphans would have become children.
func childless() bool {
	const (
		all     = 0          // P_ALL
		options = 0x41000005 // __WALL, WNOWAIT, WEXITED and WNOHANG: look, take nothing
	)
	var info [16]uint64                                                                                        // siginfo_t
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, all, 0, uintptr(unsafe.Pointer(&info)), options, 0, 0) //nolint:gosec // waitid wants the address of its answer
	return errno == syscall.ECHILD
}

// closeOnExec keeps descriptors that this process was started with, beyond the
// standard three, from commands. Those that it opens itself never get there.
func closeOnExec() {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // without /proc there is nothing that lists them
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// setSubreaper makes orphans below this process its children, instead of
// those of PID 1.
func setSubreaper(on bool) error {
	const prSetChildSubreaper = 36
	var arg uintptr
	if on {
		arg = 1
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, arg, 0); errno != 0 {
		return fmt.Errorf("become subreaper: %w", errno)
	}
	return nil
}
