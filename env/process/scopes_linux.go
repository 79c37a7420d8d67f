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

// scopeTracker finds out which of several nested commands started a process. It looks
// at the session and process group of the process, its ancestors, the marker in its
// environment, and the output pipe it holds, and remembers the result. A process that
// has shed all of these before it was first seen is attributed to the command in
// question.
type scopeTracker struct {
	mu       sync.Mutex
	sessions map[int]*Scope    // by the PID of the shell that created it
	pipes    map[uint64]*Scope // by inode
	known    map[procID]*Scope
}

// start starts the shell of a command and registers it. The lock is held meanwhile,
// because between fork and exec the new process holds the pipes of all other commands.
func (l *scopeTracker) start(p *Scope, pipe uint64, fork func() (pid int, err error)) error {
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
		l.sessions, l.pipes, l.known = map[int]*Scope{}, map[uint64]*Scope{}, map[procID]*Scope{}
	}
	if p.outer == nil {
		// Older processes are in the set of protected processes. A nested command may
		// have started already, though.
		keepNested(l.sessions, p)
		keepNested(l.pipes, p)
		keepNested(l.known, p)
	}
	l.sessions[shell], l.pipes[pipe] = p, p
	return nil
}

// keepNested deletes the entries that do not belong to p or a command nested in it.
func keepNested[K comparable](m map[K]*Scope, p *Scope) {
	maps.DeleteFunc(m, func(_ K, q *Scope) bool { return !q.isWithin(p) })
}

// isForeign returns a function that reports whether a process of t belongs to a
// command other than p and those nested in it.
func (l *scopeTracker) isForeign(p *Scope, t table) func(proc) bool {
	if !p.isNested() {
		return func(proc) bool { return false } // every new process belongs to p or a nested command
	}
	self := os.Getpid()
	return func(m proc) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		scope := l.scopeOf(t, m, self)
		return scope != nil && !scope.isWithin(p)
	}
}

// remember records the scopes of the processes that can be determined now.
func (l *scopeTracker) remember(t table, members []proc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	self := os.Getpid()
	for _, m := range members {
		l.scopeOf(t, m, self)
	}
}

// scopeOf returns the scope of m and records it; nil if unknown. The caller holds the
// lock.
func (l *scopeTracker) scopeOf(t table, m proc, self int) *Scope {
	if found := l.known[m.procID]; found != nil {
		return found
	}
	var found *Scope
	t.walkUp(m, self, func(a proc) bool {
		// Also by PID: a snapshot may show a shell before it has created its session.
		found = cmp.Or(l.known[a.procID], l.sessions[a.session], l.sessions[a.group], l.sessions[a.pid])
		return found == nil
	})
	if found == nil {
		found = l.scopeByTraces(m)
	}
	if found != nil && l.known != nil {
		l.known[m.procID] = found
	}
	return found
}

func (l *scopeTracker) scopeByTraces(m proc) *Scope {
	environ, pipes := readTraces(m.pid)
	for _, p := range l.sessions {
		if p.envMarker != "" && slices.Contains(environ, p.envMarker) {
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

// readTraces reads the environment of a process and the inodes of the pipes that it
// holds. They are empty if the process belongs to another user or has exited.
func readTraces(pid int) (environ []string, pipes []uint64) {
	dir := "/proc/" + strconv.Itoa(pid)
	if f, err := os.Open(dir + "/environ"); err == nil { //nolint:gosec // a path in /proc
		data, _ := io.ReadAll(io.LimitReader(f, 4<<20)) // a partial read is used
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
