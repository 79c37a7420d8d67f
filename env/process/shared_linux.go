package process

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// TagVariable is set in the environment of every command of a shared runner
// (see Runner.Tag), and tells its processes from those of other runners.
const TagVariable = "MINI_LOCAL_SANDBOX"

// NewShared returns a Runner that lives in a process beside other runners and
// unrelated code. While one is open, this process is a subreaper: orphans of
// commands become its children.
//
// Every command has a session of its own, so whatever descends from this
// process and is in another session comes from a command. Which runner's it is
// follows from its session or process group, its ancestors, the runner's tag in
// its environment, or an output pipe it holds. A process that has cut all of
// these (its environment cleared, its parent dead, its output elsewhere)
// before anybody looked cannot be told apart while several runners are open: it
// lives on until the last of them closes. The program around must keep one rule
// for this: while a shared runner is open, it starts no processes in sessions of
// their own, or they are taken for a command's.
func NewShared() (*Runner, error) {
	s := &shared{tag: rand.Text(), pipes: map[uint64]bool{}}
	if err := house.admit(s); err != nil {
		return nil, err
	}
	return newRunner(s, false), nil
}

// Tag is the variable that every command's environment must carry, as
// NAME=value; empty where the runner needs none.
func (r *Runner) Tag() string {
	if s, ok := r.family.(*shared); ok {
		return TagVariable + "=" + s.tag
	}
	return ""
}

// house is what the shared runners of this process have in common. It is a
// variable of the package because its subject, the children of this process,
// exists once.
var house = &shelter{
	families: map[*shared]bool{},
	shells:   map[int]bool{},
	sessions: map[int]*shared{},
	known:    map[ident]*shared{},
	wards:    map[*Ward]int{},
}

type shelter struct {
	mu       sync.Mutex
	families map[*shared]bool
	wards    map[*Ward]int     // their pids; 0 of one that has ended and is being cleaned up after
	shells   map[int]bool      // children with a goroutine that awaits them
	sessions map[int]*shared   // by the pid of the shell that began it
	known    map[ident]*shared // whose a process was found to be
}

func (h *shelter) admit(s *shared) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.wake(); err != nil {
		return err
	}
	h.families[s] = true
	return nil
}

// wake comes before the first family or ward, rest after the last.
func (h *shelter) wake() error {
	if len(h.families)+len(h.wards) > 0 {
		return nil
	}
	return setSubreaper(true)
}

func (h *shelter) rest() {
	if len(h.families)+len(h.wards) == 0 {
		setSubreaper(false) //nolint:errcheck // cannot fail once it has succeeded
	}
}

func (h *shelter) dismiss(s *shared) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.families, s)
	for id, owner := range h.sessions {
		if owner == s {
			delete(h.sessions, id)
		}
	}
	for id, owner := range h.known {
		if owner == s {
			delete(h.known, id)
		}
	}
	h.rest()
}

// shared is the family of one of several runners.
type shared struct {
	tag   string
	pipes map[uint64]bool // guarded by house.mu
	wg    sync.WaitGroup  // those who await shells
}

// fork registers the shell under the lock that every reaping takes.
func (s *shared) fork(path string, argv []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	house.mu.Lock()
	defer house.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr) //nolint:gosec // running what it is told is the purpose
	if err != nil {
		return 0, nil, err
	}
	house.shells[pid] = true
	house.sessions[pid] = s
	c := make(chan syscall.WaitStatus, 1)
	s.wg.Go(func() { c <- awaitShell(pid) })
	return pid, c, nil
}

// awaitShell looks first and collects under the lock: between the two the pid
// cannot be given to another shell.
func awaitShell(pid int) syscall.WaitStatus {
	const (
		byPid  = 1
		exited = 4          // WEXITED
		noWait = 0x01000000 // WNOWAIT
	)
	var info [16]uint64 // siginfo_t
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPid, uintptr(pid), uintptr(unsafe.Pointer(&info)), exited|noWait, 0, 0) //nolint:gosec // waitid wants the address of its answer
		if errno != syscall.EINTR {
			break
		}
	}
	house.mu.Lock()
	defer house.mu.Unlock()
	delete(house.shells, pid)
	return collect(pid, 0)
}

func collect(pid, options int) syscall.WaitStatus {
	var ws syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &ws, options, nil); err != syscall.EINTR {
			return ws
		}
	}
}

func (s *shared) holds(inode uint64) {
	house.mu.Lock()
	defer house.mu.Unlock()
	s.pipes[inode] = true
}

func (s *shared) drops(inode uint64) {
	house.mu.Lock()
	defer house.mu.Unlock()
	delete(s.pipes, inode)
}

func (s *shared) alone() bool {
	house.mu.Lock()
	defer house.mu.Unlock()
	return len(house.families) == 1
}

func (s *shared) close() {
	s.wg.Wait()
	house.dismiss(s)
}

// members sorts every process that came from a command to its runner, collects
// the dead, and returns those of s.
func (s *shared) members(t table) []proc {
	self := os.Getpid()
	house.mu.Lock()
	defer house.mu.Unlock()
	var found, all []proc
	for _, p := range t.below(self) { // oldest first: parents before their children, nearly always
		if p.session == t[self].session || house.below(t, p, self) {
			continue
		}
		all = append(all, p)
		if house.owner(t, p, self) == s {
			found = append(found, p)
		}
	}
	house.bury(all, self)
	house.forget(t)
	return found
}

// bury collects those of procs that are dead and that nobody else awaits.
func (h *shelter) bury(procs []proc, self int) {
	for _, p := range procs {
		if p.parent != self || p.alive() || h.shells[p.pid] {
			continue
		}
		// Look again: the table is some milliseconds old.
		if now, ok := readProc(p.pid, make([]byte, 1024)); ok && now.ident == p.ident && !now.alive() {
			collect(p.pid, syscall.WNOHANG)
		}
	}
}

// barren looks at this process's children only: what a command leaves behind is
// among them, or below one of them, because its shell is dead and collected. The
// kernel may leave a child out of the list while another one is collected. Ours
// are collected under the lock held here, and for those of unrelated code the
// list is read twice.
func (s *shared) barren() bool {
	if childless() {
		return true
	}
	house.mu.Lock()
	defer house.mu.Unlock()
	for range 2 {
		if house.strangers() {
			return false
		}
	}
	return true
}

// strangers reports whether this process has a child that came from a command
// and is not an awaited shell, or whether that cannot be told.
func (h *shelter) strangers() bool {
	buf := make([]byte, 1024)
	self, ok := readProc(os.Getpid(), buf)
	lists, err := filepath.Glob("/proc/self/task/[0-9]*/children")
	if !ok || err != nil || len(lists) == 0 {
		return true
	}
	for _, list := range lists {
		children, err := os.ReadFile(list) //nolint:gosec // a place in /proc
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return true
		}
		for field := range bytes.FieldsSeq(children) {
			pid, err := strconv.Atoi(string(field))
			if err != nil {
				return true
			}
			if h.shells[pid] || h.isWard(pid) {
				continue
			}
			if p, ok := readProc(pid, buf); ok && p.session != self.session {
				return true
			}
		}
	}
	return false
}

// owner finds whose p is and remembers it; nil when nothing tells.
func (h *shelter) owner(t table, p proc, self int) *shared {
	if s := h.known[p.ident]; s != nil {
		return s
	}
	s := h.evidence(t, p, self)
	if s == nil && len(h.families) == 1 {
		for only := range h.families {
			s = only
		}
	}
	if s != nil {
		h.known[p.ident] = s
	}
	return s
}

func (h *shelter) evidence(t table, p proc, self int) *shared {
	var found *shared
	t.above(p, self, func(a proc) bool {
		found = cmp.Or(h.known[a.ident], h.sessions[a.session], h.sessions[a.group])
		return found == nil
	})
	if found != nil {
		return found
	}
	environ, pipes := evidenceOf(p.pid)
	tag := tagOf(environ, TagVariable)
	for s := range h.families {
		if tag == s.tag {
			return s
		}
		for _, inode := range pipes {
			if s.pipes[inode] {
				return s
			}
		}
	}
	return nil
}

// forget drops what no process stands for any more, before its pid comes again.
func (h *shelter) forget(t table) {
	for id := range h.known {
		if p, ok := t[id.pid]; !ok || p.ident != id {
			delete(h.known, id)
		}
	}
	inUse := map[int]bool{}
	for _, p := range t {
		inUse[p.session], inUse[p.group] = true, true
	}
	for id := range h.sessions {
		// A shell younger than the table is not in it.
		if !inUse[id] && !h.shells[id] {
			delete(h.sessions, id)
		}
	}
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
