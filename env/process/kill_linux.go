package process

import (
	"os"
	"syscall"
	"time"
)

// Bounds of a kill. A process that dies needs microseconds to milliseconds, or
// seconds on a machine with a hundred others in line for each processor; one that
// the kernel holds in a system call may take for ever.
const (
	killRounds = 96
	killTime   = 6 * time.Second
)

// kept is what was alive before a command began: it, its descendants and
// whatever shares a session with it outlive the command's timeout.
type kept struct {
	procs    map[ident]bool
	sessions map[int]bool
}

func keep(procs []proc) kept {
	k := kept{procs: map[ident]bool{}, sessions: map[int]bool{}}
	for _, p := range procs {
		k.procs[p.ident] = true
		if p.session != 0 { // 0 is a session outside of this pid namespace
			k.sessions[p.session] = true
		}
	}
	return k
}

// within returns the test whether a process of t, or an ancestor of it, belongs
// to what was there.
func (k kept) within(t table) func(proc) bool {
	self := os.Getpid()
	known := map[int]bool{}
	return func(p proc) bool {
		if len(k.procs) == 0 {
			return false
		}
		protected := false
		var passed []int
		t.above(p, self, func(a proc) bool {
			answer, asked := known[a.pid]
			protected = answer || k.procs[a.ident] || k.sessions[a.session]
			passed = append(passed, a.pid)
			return !asked && !protected
		})
		for _, pid := range passed {
			known[pid] = protected
		}
		return protected
	}
}

// purge is one kill of every descendant of this process that kept does not protect.
type purge struct {
	kept    kept
	places  *places            // nil where one command runs at a time
	place   *Place             // whose processes are to die; nil for all
	init    bool               // this process is PID 1 of its namespace
	only    func(table) []proc // whom it is about, where not all descendants
	stopped map[ident]bool     // got SIGSTOP, so cannot fork any more
	killed  map[ident]bool     // got SIGKILL
}

// toll is what a kill came to.
type toll struct {
	killed, survivors int
	collateral        bool
}

// run stops before it kills, because a stopped process cannot fork: when a
// round finds nobody new, everybody is caught, and their descent was seen
// while it could be. Whoever still appears after the last round outran it, and
// then all descendants die.
func (p *purge) run() toll {
	p.stopped, p.killed = map[ident]bool{}, map[ident]bool{}
	deadline := time.Now().Add(killTime)
	left, fresh := p.rounds(deadline)
	var t toll
	if fresh && len(p.kept.procs) > 0 {
		t.collateral = true
		p.kept, p.places = kept{}, nil
		left, _ = p.rounds(deadline.Add(killTime))
	}
	t.survivors = len(left)
	t.killed = max(0, len(p.killed)-len(left))
	return t
}

// rounds ends when no victim is alive, or at the bounds with those that are;
// fresh says that the last round met one that had not been killed before.
func (p *purge) rounds(deadline time.Time) (left []proc, fresh bool) {
	pause := 50 * time.Microsecond
	for n := range killRounds {
		t := scan()
		victims, spared := p.victims(t)
		if len(victims) == 0 {
			return nil, false
		}
		fresh = false
		loose := false
		for _, v := range victims {
			fresh = fresh || !p.killed[v.ident]
			loose = loose || !p.stopped[v.ident]
		}
		switch {
		case p.init && spared == 0 && fresh:
			p.killAll(victims)
		case loose && n < killRounds/2:
			p.stop(victims)
		default:
			p.kill(victims)
		}
		left = victims
		if !fresh {
			// All of them have their SIGKILL; what remains is the kernel's time.
			if time.Now().After(deadline) {
				return left, false
			}
			time.Sleep(pause)
			pause = min(2*pause, 100*time.Millisecond)
		}
	}
	return left, fresh
}

// victims are the living descendants that nothing protects; spared
// counts every other process that kill(-1) would hit.
func (p *purge) victims(t table) (victims []proc, spared int) {
	members := descendants(t)
	if p.only != nil {
		members = p.only(t)
	}
	protects := p.protection(t)
	for _, m := range members {
		switch {
		case !m.alive():
		case protects(m):
			spared++
		default:
			victims = append(victims, m)
		}
	}
	// What entered from outside is no descendant; PID 1 itself is not hit.
	return victims, spared + len(t) - len(members) - 1
}

// protection returns the test whether a process of t is to live.
func (p *purge) protection(t table) func(proc) bool {
	within := p.kept.within(t)
	if p.places == nil {
		return within
	}
	others := p.places.others(p.place, t)
	return func(m proc) bool { return within(m) || others(m) }
}

func (p *purge) stop(victims []proc) {
	for _, v := range victims {
		if !p.stopped[v.ident] {
			p.stopped[v.ident] = true
			syscall.Kill(v.pid, syscall.SIGSTOP) //nolint:errcheck // it may have ended; the next round tells
		}
	}
}

func (p *purge) kill(victims []proc) {
	for _, v := range victims {
		p.killed[v.ident] = true
		syscall.Kill(v.pid, syscall.SIGKILL) //nolint:errcheck // likewise
	}
}

// killAll uses the one signal that no fork can outrun. The kernel spares the
// caller.
func (p *purge) killAll(victims []proc) {
	for _, v := range victims {
		p.killed[v.ident] = true
	}
	syscall.Kill(-1, syscall.SIGKILL) //nolint:errcheck // fails when all are gone; the next round tells
}
