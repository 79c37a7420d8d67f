package process

import (
	"cmp"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// places tells apart what was started by commands that run at the same time,
// inside of or beside one another. What a command has started follows from its
// session or process group, its ancestors, the mark in its environment, or the
// output pipe it holds; what was seen once is remembered. What has cut all of
// these before anybody looked belongs to whichever is asked about.
type places struct {
	mu       sync.Mutex
	sessions map[int]*Place // by the pid of the shell that began it
	pipes    map[uint64]*Place
	known    map[ident]*Place
}

// start starts the shell of a command and notes it. Nobody judges it meanwhile:
// before it is a program of its own it holds the pipes of all others.
func (l *places) start(p *Place, pipe uint64, fork func() (pid int, err error)) error {
	if p == nil {
		_, err := fork()
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	shell, err := fork()
	if err != nil {
		return err
	}
	if l.sessions == nil {
		l.sessions, l.pipes, l.known = map[int]*Place{}, map[uint64]*Place{}, map[ident]*Place{}
	}
	if p.outer == nil {
		// What was there before is told by a look at what is alive. A command inside
		// may have begun already, though.
		keepInside(l.sessions, p)
		keepInside(l.pipes, p)
		keepInside(l.known, p)
	}
	l.sessions[shell], l.pipes[pipe] = p, p
	return nil
}

// keepInside drops what does not belong to p or to a command inside of it.
func keepInside[K comparable](of map[K]*Place, p *Place) {
	maps.DeleteFunc(of, func(_ K, q *Place) bool { return !q.within(p) })
}

// others returns the test whether a process of t belongs to another command than
// p and those inside of it.
func (l *places) others(p *Place, t table) func(proc) bool {
	if !p.nested() {
		return func(proc) bool { return false } // all that is new is p's, or of those inside
	}
	self := os.Getpid()
	return func(m proc) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		owner := l.owner(t, m, self)
		return owner != nil && !owner.within(p)
	}
}

// look remembers whose the processes are that can be told now.
func (l *places) look(t table, members []proc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	self := os.Getpid()
	for _, m := range members {
		l.owner(t, m, self)
	}
}

// owner finds whose m is and remembers it; nil when nothing tells. The lock is
// held.
func (l *places) owner(t table, m proc, self int) *Place {
	if found := l.known[m.ident]; found != nil {
		return found
	}
	var found *Place
	t.above(m, self, func(a proc) bool {
		// By its pid, too: a table may show a shell before it has its session.
		found = cmp.Or(l.known[a.ident], l.sessions[a.session], l.sessions[a.group], l.sessions[a.pid])
		return found == nil
	})
	if found == nil {
		found = l.evidence(m)
	}
	if found != nil && l.known != nil {
		l.known[m.ident] = found
	}
	return found
}

func (l *places) evidence(m proc) *Place {
	environ, pipes := evidenceOf(m.pid)
	for _, p := range l.sessions {
		if p.mark != "" && slices.Contains(environ, p.mark) {
			return p
		}
	}
	for _, inode := range pipes {
		if p := l.pipes[inode]; p != nil {
			return p
		}
	}
	return nil
}

// evidenceOf reads what a process carries: its environment and the pipes it
// holds. A process of another user, or one that has just ended, shows nothing.
func evidenceOf(pid int) (environ []string, pipes []uint64) {
	dir := "/proc/" + strconv.Itoa(pid)
	if f, err := os.Open(dir + "/environ"); err == nil { //nolint:gosec // a place in /proc
		data, _ := io.ReadAll(io.LimitReader(f, 4<<20)) // what could be read counts
		f.Close()                                       //nolint:errcheck // nothing was written
		environ = strings.Split(string(data), "\x00")
	}
	fds, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return environ, nil
	}
	for _, fd := range fds {
		target, err := os.Readlink(filepath.Join(dir, "fd", fd.Name()))
		if err != nil {
			continue
		}
		number, ok := strings.CutPrefix(target, "pipe:[")
		if !ok {
			continue
		}
		if inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64); err == nil {
			pipes = append(pipes, inode)
		}
	}
	return environ, pipes
}
