package process

import (
	"os"
	"sync"
	"syscall"
)

// Child is a child of this process that runs commands itself, such as a helper. The
// child kills the processes that its commands start. If the child itself is killed,
// this process, which is a subreaper while a Child is open, adopts the orphans, and
// Close kills them.
//
// The child must stay in the session of this process. While a Child is open, the
// program must not start other processes in new sessions, because they would be
// mistaken for orphans of a Child.
type Child struct{ pid int } // 0 once the child has exited and its orphans are being killed

// children is the set of open children. It is a package variable because child
// processes belong to the whole process.
var children struct {
	mu   sync.Mutex
	open map[*Child]bool
}

// StartChild calls start to start a child, and registers it. It makes this process a
// subreaper first; otherwise PID 1 would adopt the child's orphans. It holds the lock
// meanwhile, so that a concurrent search for orphans does not find the child before it
// is registered.
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
	c := &Child{pid}
	children.open[c] = true
	return c, nil
}

// endSubreaper resets the subreaper attribute if no Child is open. The caller holds the
// lock.
func endSubreaper() {
	if len(children.open) == 0 {
		setSubreaper(false) //nolint:errcheck // cannot fail once it has succeeded
	}
}

// IsOnlyOpen reports whether c, which must be open, is the only open Child.
func (c *Child) IsOnlyOpen() bool {
	children.mu.Lock()
	defer children.mu.Unlock()
	return len(children.open) == 1
}

// Close unregisters a child that has been waited for. Unless clean is true, it kills
// the orphans of this and other dead children; survivors is the number of processes
// that could not be killed.
func (c *Child) Close(clean bool) (survivors int) {
	children.mu.Lock()
	c.pid = 0 // the PID may be reused
	children.mu.Unlock()
	if !clean {
		survivors = (&killer{candidates: orphans}).run().survivors
		orphans(scanProcs()) // called to reap those that have just died
	}
	children.mu.Lock()
	defer children.mu.Unlock()
	delete(children.open, c)
	endSubreaper()
	return survivors
}

// orphans returns the processes that dead children have left: descendants that are not
// below an open Child and not in this program's session. It reaps the zombies among
// them that are children of this process.
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
	t.walkUp(p, self, func(ancestor proc) bool {
		for c := range children.open {
			found = found || c.pid == ancestor.pid
		}
		return !found
	})
	return found
}
