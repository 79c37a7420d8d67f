package process

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

// family knows which processes belong to a runner. Two kinds exist: owner,
// for a process that has no other children, and shared, for one that has.
type family interface {
	// fork starts a program and tells on the channel how it ended.
	fork(path string, argv []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error)
	// members are the processes of t that belong to the family, oldest
	// first, those that wait to be reaped included.
	members(t table) []proc
	// barren reports that no process of the family is left, dead or alive. It
	// may say false for what a look at every process would tell; it is the
	// quick answer to the usual case after a command.
	barren() bool
	// holds and drops tell of an output pipe, by the inode of its ends.
	holds(inode uint64)
	drops(inode uint64)
	// alone says that no other family shares this process.
	alone() bool
	close()
}

// owner takes every child of this process as its own. One goroutine owns
// wait4(-1); children are registered under the lock that forks them, so that
// no status can arrive before somebody waits for it.
type owner struct {
	mu      sync.Mutex
	waiting map[int]chan<- syscall.WaitStatus
	signals chan os.Signal
	done    chan struct{}
}

func newOwner() (*owner, error) {
	// PID 1 gets orphans anyway; any other process only when it asks.
	if err := setSubreaper(true); err != nil {
		return nil, err
	}
	closeOnExec()
	o := &owner{
		waiting: map[int]chan<- syscall.WaitStatus{},
		signals: make(chan os.Signal, 1),
		done:    make(chan struct{}),
	}
	signal.Notify(o.signals, syscall.SIGCHLD)
	go o.loop()
	return o, nil
}

func (o *owner) loop() {
	defer close(o.done)
	for range o.signals {
		o.reap()
	}
}

func (o *owner) reap() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil || pid <= 0:
			return
		}
		if c, ok := o.waiting[pid]; ok {
			delete(o.waiting, pid)
			c <- ws
		}
	}
}

func (o *owner) fork(path string, argv []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr) //nolint:gosec // running what it is told is the purpose
	if err != nil {
		return 0, nil, err
	}
	c := make(chan syscall.WaitStatus, 1)
	o.waiting[pid] = c
	return pid, c, nil
}

func (o *owner) members(t table) []proc { return t.below(os.Getpid()) }
func (o *owner) barren() bool           { return childless() }
func (o *owner) holds(uint64)           {}
func (o *owner) drops(uint64)           {}
func (o *owner) alone() bool            { return true }

func (o *owner) close() {
	signal.Stop(o.signals)
	close(o.signals)
	<-o.done
	o.reap()
}

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
