package process

import "os"

// Ward is a child of this process that runs commands of its own, as a helper
// does. It is the one that kills what they started; only what it leaves behind
// when it is itself killed falls to this process, which is a subreaper while a
// ward is open, and dies with Close.
//
// A ward must stay in this process's session, and the program around keep the
// rule of NewShared: whatever else it starts stays there too. Wards and shared
// runners do not touch each other's processes.
type Ward struct{ _ byte } // of some size, because wards are told apart by their addresses

// NewWard starts a child by calling start, and takes note of it. Before it
// starts this process is a subreaper: what the child orphaned earlier would go
// to the first process of the machine, and be out of reach. Nobody else looks
// for strays meanwhile, who would not know the child.
func NewWard(start func() (pid int, err error)) (*Ward, error) {
	house.mu.Lock()
	defer house.mu.Unlock()
	if err := house.wake(); err != nil {
		return nil, err
	}
	pid, err := start()
	if err != nil {
		house.rest()
		return nil, err
	}
	w := &Ward{}
	house.wards[w] = pid
	return w, nil
}

// Alone says that no other ward is open, nor a shared runner.
func (w *Ward) Alone() bool {
	house.mu.Lock()
	defer house.mu.Unlock()
	return len(house.wards) == 1 && len(house.families) == 0
}

// Close ends the note of a ward that has been waited for. Unless it ended well,
// what it left behind is killed; survivors counts what the kernel would not let
// go of.
func (w *Ward) Close(well bool) (survivors int) {
	house.mu.Lock()
	house.wards[w] = 0 // its pid may come again
	house.mu.Unlock()
	if !well {
		survivors = (&purge{family: strays{}}).run().survivors
		(strays{}).members(scan()) // collects those that have just died
	}
	house.mu.Lock()
	defer house.mu.Unlock()
	delete(house.wards, w)
	house.rest()
	return survivors
}

// below reports whether p is a ward or descends from one.
func (h *shelter) below(t table, p proc, self int) bool {
	if len(h.wards) == 0 {
		return false
	}
	found := false
	t.above(p, self, func(a proc) bool {
		found = h.isWard(a.pid)
		return !found
	})
	return found
}

func (h *shelter) isWard(pid int) bool {
	for _, ward := range h.wards {
		if ward == pid {
			return true
		}
	}
	return false
}

// strays is the family of what dead wards have left: it is no ward's, no shared
// runner's, and not this program's own, which is in its session.
type strays struct{ family }

func (strays) members(t table) []proc {
	self := os.Getpid()
	house.mu.Lock()
	defer house.mu.Unlock()
	var found []proc
	for _, p := range t.below(self) {
		if p.session == t[self].session || house.below(t, p, self) ||
			len(house.families) > 0 && house.owner(t, p, self) != nil {
			continue
		}
		found = append(found, p)
	}
	house.bury(found, self)
	return found
}
