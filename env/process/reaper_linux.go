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

// reapInterval is how often dead orphans are reaped. Reaping each orphan at its SIGCHLD
// would wake several threads for every command.
const reapInterval = 50 * time.Millisecond

// reaper waits for every child of this process, including adopted orphans. The lock is
// held while a shell is forked and registered, and while children are reaped, so that
// no exit status is lost.
type reaper struct {
	mu      sync.Mutex
	waiting map[int]chan<- syscall.WaitStatus // by the PID of the shell
	reaping bool                              // a goroutine reaps orphans
	workers sync.WaitGroup
	closed  chan struct{}
}

func newReaper() (*reaper, error) {
	// PID 1 adopts orphans by default; any other process must become a subreaper.
	if err := setSubreaper(true); err != nil {
		return nil, err
	}
	closeOnExec()
	return &reaper{waiting: map[int]chan<- syscall.WaitStatus{}, closed: make(chan struct{})}, nil
}

// fork starts a program. The channel receives its exit status.
func (r *reaper) fork(path string, argv []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fd := -1 // kernels before 5.2 do not set it
	attr.Sys.PidFD = &fd
	pid, err := syscall.ForkExec(path, argv, attr) //nolint:gosec // running given commands is the purpose
	if err != nil {
		return 0, nil, err
	}
	c := make(chan syscall.WaitStatus, 1)
	r.waiting[pid] = c
	pause := reapInterval
	if fd >= 0 {
		r.workers.Go(func() { r.waitShell(pid, fd) })
	} else {
		pause = time.Millisecond
	}
	if !r.reaping {
		r.reaping = true
		r.workers.Go(func() { r.reapOrphans(pause) })
	}
	return pid, c, nil
}

// waitShell reaps a shell as soon as it exits. It waits with the runtime's poller,
// because a thread blocked in the kernel would have to be woken.
func (r *reaper) waitShell(pid, fd int) {
	syscall.SetNonblock(fd, true) //nolint:errcheck // if it fails, reapOrphans reaps the shell
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close() //nolint:errcheck // nothing was written
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	conn.Read(func(uintptr) bool { return r.reapShell(pid) }) //nolint:errcheck // likewise
}

// reapShell reaps a shell if it has exited, and reports whether it is reaped.
func (r *reaper) reapShell(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.waiting[pid]; !ok {
		return true
	}
	return r.reap(pid) > 0
}

// reap reaps a child that has exited and returns its PID, or 0 if there is none. A pid
// of -1 means any child. The caller holds the lock.
func (r *reaper) reap(pid int) int {
	var ws syscall.WaitStatus
	pid, err := syscall.Wait4(pid, &ws, syscall.WNOHANG, nil)
	if err != nil || pid <= 0 {
		return 0
	}
	if c, ok := r.waiting[pid]; ok {
		delete(r.waiting, pid)
		c <- ws
	}
	return pid
}

// reapOrphans reaps orphans until this process has no children or the reaper is closed.
func (r *reaper) reapOrphans(pause time.Duration) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-r.closed:
			return
		}
		r.mu.Lock()
		r.reapAll()
		if r.reaping = !childless(); !r.reaping {
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
	}
}

func (r *reaper) reapAll() {
	for r.reap(-1) > 0 {
	}
}

// reapChildren reaps the children that have exited, and reports whether none is left.
// If there are no children, the usual case after a command, it returns quickly.
func (r *reaper) reapChildren() bool {
	if childless() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reapAll()
	return childless()
}

func (r *reaper) close() {
	close(r.closed)
	r.workers.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reapAll()
}

// descendants returns the descendants of this process in t, oldest first, including
// zombies.
func descendants(t table) []proc { return t.descendantsOf(os.Getpid()) }

// childless reports whether this process has no child, dead or alive. Then it has no
// descendant either, because orphans would have become children.
func childless() bool {
	const (
		pAll    = 0          // P_ALL
		options = 0x41000005 // __WALL, WNOWAIT, WEXITED and WNOHANG: do not reap
	)
	var siginfo [16]uint64
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pAll, 0, uintptr(unsafe.Pointer(&siginfo)), options, 0, 0) //nolint:gosec // waitid takes the address of its result
	return errno == syscall.ECHILD
}

// closeOnExec marks the descriptors that this process inherited, other than the
// standard three, as close-on-exec. Descriptors that Go opens have the flag already.
func closeOnExec() {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // without /proc they cannot be listed
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// setSubreaper makes this process, instead of PID 1, adopt the orphans among its
// descendants, or undoes that if on is false.
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
