package process

import (
	"os"
	"sync"
	"syscall"
)

// Ward is a child of this process that runs commands of its own, as a helper
// does. It is the one that kills what they started; only what it leaves behind
// when it is itself killed falls to this process, which is a subreaper while a
// ward is open, and dies with Close.
//
// A ward must stay in this process's session, and the program around must start
// nothing else in a session of its own while one is open: it would be taken for
// a command's.
type Ward struct{ pid int } // 0 once the child has ended and is being cleaned up after

// wards are those of this process. It is a variable of the package because its
// subject, the children of this process, exists once.
var wards struct {
	mu   sync.Mutex
	open map[*Ward]bool
}

// NewWard starts a child by calling start, and takes note of it. Before it
// starts this process is a subreaper: what the child orphaned earlier would go
// to the first process of the machine, and be out of reach. Nobody else looks
// for strays meanwhile, who would not know the child.
func NewWard(start func() (pid int, err error)) (*Ward, error) {
	wards.mu.Lock()
	defer wards.mu.Unlock()
	if len(wards.open) == 0 {
		if err := setSubreaper(true); err != nil {
			return nil, err
		}
		wards.open = map[*Ward]bool{}
	}
	defer endSubreaper()
	pid, err := start()
	if err != nil {
		return nil, err
	}
	w := &Ward{pid}
	wards.open[w] = true
	return w, nil
}

// endSubreaper is for when the last ward has gone. The lock is held.
func endSubreaper() {
	if len(wards.open) == 0 {
		setSubreaper(false) //nolint:errcheck // cannot fail once it has succeeded
	}
}

// Alone says that no other ward is open.
func (w *Ward) Alone() bool {
	wards.mu.Lock()
	defer wards.mu.Unlock()
	return len(wards.open) == 1
}

// Close ends the note of a ward that has been waited for. Unless it ended well,
// what it left behind is killed; survivors counts what the kernel would not let
// go of.
func (w *Ward) Close(well bool) (survivors int) {
	wards.mu.Lock()
	w.pid = 0 // it may come again
	wards.mu.Unlock()
	if !well {
		survivors = (&purge{only: strays}).run().survivors
		strays(scan()) // collects those that have just died
	}
	wards.mu.Lock()
	defer wards.mu.Unlock()
	delete(wards.open, w)
	endSubreaper()
	return survivors
}

// strays are what dead wards have left: below no ward, and not this program's
// own, which is in its session. Those that are dead are collected.
func strays(t table) (found []proc) {
	self := os.Getpid()
	wards.mu.Lock()
	defer wards.mu.Unlock()
	for _, p := range t.below(self) {
		if p.session == t[self].session || belowWard(t, p, self) {
			continue
		}
		found = append(found, p)
		if p.parent != self || p.alive() {
			continue
		}
		// Look again: the table is some milliseconds old.
		if now, ok := readProc(p.pid, make([]byte, 1024)); ok && now.ident == p.ident && !now.alive() {
			syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil) //nolint:errcheck // the next look tells
		}
	}
	return found
}

func belowWard(t table, p proc, self int) (found bool) {
	t.above(p, self, func(a proc) bool {
		for w := range wards.open {
			found = found || w.pid == a.pid
		}
		return !found
	})
	return found
}
