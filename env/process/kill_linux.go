package process

import (
	"os"
	"syscall"
	"time"
)

// Limits of killer.rounds. A process that has received SIGKILL dies as soon as it gets
// a CPU: usually within milliseconds, but the 500 of a fork bomb took over 12 s on a
// busy machine with 2 cores. One that hangs in a system call may never die.
const (
	killRounds = 96               // rounds that find new processes
	killStall  = 6 * time.Second  // the wait for the next death
	killTime   = 40 * time.Second // the whole wait; twice this is less than helper.ReportGrace
)

// protectedSet holds the processes that were alive before a command started. They,
// their descendants and every process in their sessions survive the command's timeout.
type protectedSet struct {
	procs    map[procID]bool
	sessions map[int]bool
}

func newProtectedSet(procs []proc) protectedSet {
	s := protectedSet{procs: map[procID]bool{}, sessions: map[int]bool{}}
	for _, p := range procs {
		s.procs[p.procID] = true
		if p.session != 0 { // 0 is a session outside this PID namespace
			s.sessions[p.session] = true
		}
	}
	return s
}

// contains returns a function that reports whether a process of t, or one of its
// ancestors below this process, is in the set or in a session of the set.
func (s protectedSet) contains(t table) func(proc) bool {
	self := os.Getpid()
	known := map[int]bool{} // results by PID
	return func(p proc) bool {
		if len(s.procs) == 0 {
			return false
		}
		protected := false
		var visited []int
		t.walkUp(p, self, func(ancestor proc) bool {
			result, cached := known[ancestor.pid]
			protected = result || s.procs[ancestor.procID] || s.sessions[ancestor.session]
			visited = append(visited, ancestor.pid)
			return !cached && !protected
		})
		for _, pid := range visited {
			known[pid] = protected
		}
		return protected
	}
}

// killer kills every descendant of this process, or every candidate, that is not
// protected.
type killer struct {
	protected  protectedSet
	scopes     *scopeTracker      // nil if no commands are nested
	scope      *Scope             // kill the processes of this command; nil means all
	isInit     bool               // this process is PID 1 of its PID namespace
	candidates func(table) []proc // lists the processes to kill; nil means all descendants
	stopped    map[procID]bool    // received SIGSTOP, so cannot fork any more
	killed     map[procID]bool    // received SIGKILL
}

// killResult counts the processes of one kill.
type killResult struct {
	killed, survivors int
	killedEarlier     bool // protected processes were killed, too
}

// run sends SIGSTOP before SIGKILL, unless kill(-1) is possible, because a stopped
// process cannot fork: when a round finds no new process, all are stopped, and their
// ancestry was visible while they ran. If new processes still appear in the last round,
// the kill has lost the race with forking; then run kills the protected processes as
// well.
func (k *killer) run() killResult {
	k.stopped, k.killed = map[procID]bool{}, map[procID]bool{}
	left, foundNew := k.rounds()
	var res killResult
	if foundNew && len(k.protected.procs) > 0 {
		res.killedEarlier = true
		k.protected, k.scopes = protectedSet{}, nil
		left, _ = k.rounds()
	}
	res.survivors = len(left)
	res.killed = max(0, len(k.killed)-len(left))
	return res
}

// rounds kills until no victim is alive or a limit is reached. It returns the victims
// that were alive in the last round. foundNew reports whether the last round found a
// process to which no SIGKILL had been sent.
func (k *killer) rounds() (left []proc, foundNew bool) {
	pause := 50 * time.Microsecond
	start := time.Now()
	lastDeath := start
	for round := 0; round < killRounds; {
		t := scanProcs()
		victims, spared := k.victims(t)
		if len(victims) == 0 {
			return nil, false
		}
		foundNew = false
		hasRunning := false
		for _, v := range victims {
			foundNew = foundNew || !k.killed[v.procID]
			hasRunning = hasRunning || !k.stopped[v.procID]
		}
		switch {
		case k.isInit && spared == 0 && foundNew:
			k.killAll(victims)
		case hasRunning && round < killRounds/2:
			k.stop(victims)
		default:
			k.kill(victims)
		}
		now := time.Now()
		if foundNew || len(victims) < len(left) {
			lastDeath = now
		}
		left = victims
		if foundNew {
			round++
			continue
		}
		// All have received SIGKILL; wait for the kernel.
		if now.Sub(lastDeath) > killStall || now.Sub(start) > killTime {
			return left, false
		}
		time.Sleep(pause)
		pause = min(2*pause, 100*time.Millisecond)
	}
	return left, foundNew
}

// victims returns the living candidates that are not protected. spared is the number of
// other processes that kill(-1) would kill.
func (k *killer) victims(t table) (victims []proc, spared int) {
	procs := descendants(t)
	if k.candidates != nil {
		procs = k.candidates(t)
	}
	protected := k.isProtected(t)
	for _, p := range procs {
		switch {
		case !p.isAlive():
		case protected(p):
			spared++
		default:
			victims = append(victims, p)
		}
	}
	// Count the processes that are no descendants because they entered the namespace
	// from outside. Subtract PID 1, which kill(-1) does not kill.
	return victims, spared + len(t) - len(procs) - 1
}

// isProtected returns a function that reports whether a process of t must not be
// killed.
func (k *killer) isProtected(t table) func(proc) bool {
	protected := k.protected.contains(t)
	if k.scopes == nil {
		return protected
	}
	foreign := k.scopes.isForeign(k.scope, t)
	return func(p proc) bool { return protected(p) || foreign(p) }
}

func (k *killer) stop(victims []proc) {
	for _, v := range victims {
		if !k.stopped[v.procID] {
			k.stopped[v.procID] = true
			syscall.Kill(v.pid, syscall.SIGSTOP) //nolint:errcheck // it may have exited; the next round checks
		}
	}
}

func (k *killer) kill(victims []proc) {
	for _, v := range victims {
		k.killed[v.procID] = true
		syscall.Kill(v.pid, syscall.SIGKILL) //nolint:errcheck // likewise
	}
}

// killAll uses kill(-1), which signals every process except the caller at once, so that
// no forked process escapes.
func (k *killer) killAll(victims []proc) {
	for _, v := range victims {
		k.killed[v.procID] = true
	}
	syscall.Kill(-1, syscall.SIGKILL) //nolint:errcheck // fails if no process is left; the next round checks
}
