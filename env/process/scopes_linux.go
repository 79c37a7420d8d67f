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
// environment, and the output pipes that it holds, and remembers the result. A process
// that lost all of these before its first scan counts as part of whichever command is
// killed.
type scopeTracker struct {
	mu       sync.Mutex
	sessions map[int]*Scope    // by the PID of the shell that created it
	pipes    map[uint64]*Scope // by inode
	known    map[procID]*Scope
}

// start starts the shell of a command and registers it. The lock is held meanwhile,
// because between fork and exec the new process holds the pipes of all other commands.
func (tr *scopeTracker) start(scope *Scope, pipe uint64, fork func() (pid int, err error)) error {
	if scope == nil {
		_, err := fork()
		return err
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	shell, err := fork()
	if err != nil {
		return err
	}
	if tr.sessions == nil {
		tr.sessions, tr.pipes, tr.known = map[int]*Scope{}, map[uint64]*Scope{}, map[procID]*Scope{}
	}
	if scope.outer == nil {
		// Delete the entries of earlier commands, whose processes are in the protected
		// set. Keep those of commands nested in this one, which may have started
		// already.
		keepNested(tr.sessions, scope)
		keepNested(tr.pipes, scope)
		keepNested(tr.known, scope)
	}
	tr.sessions[shell], tr.pipes[pipe] = scope, scope
	return nil
}

// keepNested deletes the entries that do not belong to scope or a scope nested in it.
func keepNested[K comparable](m map[K]*Scope, scope *Scope) {
	maps.DeleteFunc(m, func(_ K, s *Scope) bool { return !s.isWithin(scope) })
}

// isForeign returns a function that reports whether a process of t belongs to a command
// outside scope and the scopes nested in it.
func (tr *scopeTracker) isForeign(scope *Scope, t table) func(proc) bool {
	if !scope.isNested() {
		return func(proc) bool { return false } // every new process belongs to scope or a nested command
	}
	self := os.Getpid()
	return func(p proc) bool {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		owner := tr.scopeOf(t, p, self)
		return owner != nil && !owner.isWithin(scope)
	}
}

// remember records the scopes of those processes whose scope can be determined now.
func (tr *scopeTracker) remember(t table, procs []proc) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	self := os.Getpid()
	for _, p := range procs {
		tr.scopeOf(t, p, self)
	}
}

// scopeOf returns the scope of p and records it; nil if unknown. The caller holds the
// lock.
func (tr *scopeTracker) scopeOf(t table, p proc, self int) *Scope {
	if found := tr.known[p.procID]; found != nil {
		return found
	}
	var found *Scope
	t.walkUp(p, self, func(a proc) bool {
		// Look up the PID, too: a snapshot may show a shell before it has created its
		// session.
		found = cmp.Or(tr.known[a.procID], tr.sessions[a.session], tr.sessions[a.group], tr.sessions[a.pid])
		return found == nil
	})
	if found == nil {
		found = tr.scopeByTraces(p)
	}
	if found != nil && tr.known != nil {
		tr.known[p.procID] = found
	}
	return found
}

func (tr *scopeTracker) scopeByTraces(p proc) *Scope {
	environ, pipes := readTraces(p.pid)
	for _, scope := range tr.sessions {
		if scope.envMarker != "" && slices.Contains(environ, scope.envMarker) {
			return scope
		}
	}
	for _, inode := range pipes {
		if scope := tr.pipes[inode]; scope != nil {
			return scope
		}
	}
	return nil
}

// readTraces reads the environment of a process and the inodes of the pipes that it
// holds. Both are empty if this process may not read them or the process has exited.
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
