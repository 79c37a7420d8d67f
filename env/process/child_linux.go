package process

import (
	"os"
	"sync"
	"syscall"
)

// Child is a child of this process that runs commands itself, such as a helper. The
// child kills what its commands started. If the child itself is killed, its orphans
// are adopted by this process, which is a subreaper while a Child is open, and are
// killed by Close.
//
// The child must stay in the session of this process. While a Child is open, the
// program must not start other processes in new sessions, because they would be
// mistaken for orphans of a Child.
type Child struct{ pid int } // 0 once the child has exited and its orphans are being killed

// children is the set of open children. It is a package variable because a process has
// only one set of children.
var children struct {
	mu   sync.Mutex
	open map[*Child]bool
}

// StartChild calls start to start a child, and registers it. This process becomes a
// subreaper first, because earlier orphans of the child would be adopted by PID 1. The
// lock is held meanwhile, so that a concurrent search for orphans does not see an
// unregistered child.
func StartChild(start func() (pid int, err error)) (*Child, error) {
	children.mu.Lock()
	defer children.mu.Unlock()
	if len(children.open) == 0 {
		if err := setSubreaper(true); err != nil {
			return nil, err
		}
		children.open = map[*Child]bool{}
	}
	defer endSubreaper()
	pid, err := start()
	if err != nil {
		return nil, err
	}
	w := &Child{pid}
	children.open[w] = true
	return w, nil
}

// endSubreaper resets the subreaper attribute if no child is left. The caller holds
// the lock.
func endSubreaper() {
	if len(children.open) == 0 {
		setSubreaper(false) //nolint:errcheck // cannot fail once it has succeeded
	}
}

// IsOnly reports whether no other Child is open.
func (w *Child) IsOnly() bool {
	children.mu.Lock()
	defer children.mu.Unlock()
	return len(children.open) == 1
}

// Close unregisters a child that has been waited for. Unless clean is true, it kills
// the child's orphans; survivors is the number of processes that could not be killed.
func (w *Child) Close(clean bool) (survivors int) {
	children.mu.Lock()
	w.pid = 0 // the PID may be reused
	children.mu.Unlock()
	if !clean {
		survivors = (&killer{candidates: orphans}).run().survivors
		orphans(scanProcs()) // reaps those that have just died
	}
	children.mu.Lock()
	defer children.mu.Unlock()
	delete(children.open, w)
	endSubreaper()
	return survivors
}

// orphans returns the processes that dead children have left: descendants that are not
// below an open Child and not in this program's session. It reaps those that are dead.
func orphans(t table) (found []proc) {
	self := os.Getpid()
	children.mu.Lock()
	defer children.mu.Unlock()
	for _, p := range t.descendantsOf(self) {
		if p.session == t[self].session || isBelowChild(t, p, self) {
			continue
		}
		found = append(found, p)
		if p.parent != self || p.isAlive() {
			continue
		}
		// Read the process again: the table is some milliseconds old.
		if current, ok := readProc(p.pid, make([]byte, 1024)); ok && current.procID == p.procID && !current.isAlive() {
			syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil) //nolint:errcheck // the next call checks
		}
	}
	return found
}

func isBelowChild(t table, p proc, self int) (found bool) {
	t.walkUp(p, self, func(a proc) bool {
		for w := range children.open {
			found = found || w.pid == a.pid
		}
		return !found
	})
	return found
}
