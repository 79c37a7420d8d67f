package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// owner identifies the process that created an object in the engine. It is unique
// although process ids are reused.
type owner struct {
	Host      string `json:"host"`            // hash of host name and machine id
	Boot      string `json:"boot,omitempty"`  // boot id of the kernel
	Namespace string `json:"space,omitempty"` // PID namespace; process ids are valid only within it
	PID       int    `json:"pid"`
	Start     string `json:"start,omitempty"` // start time of the process, in clock ticks
}

// currentOwner returns the owner for this process.
func currentOwner() (owner, error) {
	name, err := os.Hostname()
	if err != nil {
		return owner{}, fmt.Errorf("identify this host: %w", err)
	}
	machine, err := os.ReadFile("/etc/machine-id")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return owner{}, fmt.Errorf("identify this host: %w", err)
	}
	sum := sha256.Sum256([]byte(name + "\n" + string(machine))) // machine ids are confidential: machine-id(5)
	o := owner{
		Host:      hex.EncodeToString(sum[:8]),
		Boot:      bootID(),
		Namespace: pidNamespace(),
		PID:       os.Getpid(),
	}
	o.Start, _ = hostProcs.startTime(o.PID)
	return o, nil
}

func (o owner) String() string {
	b, err := json.Marshal(o)
	if err != nil { // cannot happen: the fields are strings and a number
		return ""
	}
	return string(b)
}

// parseOwner is the inverse of String.
func parseOwner(s string) (owner, bool) {
	var o owner
	dec := json.NewDecoder(strings.NewReader(s))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil || o.Host == "" || o.PID <= 0 {
		return owner{}, false
	}
	return o, true
}

// ownerState is what one owner knows about another.
type ownerState int

const (
	ownerForeign ownerState = iota // of another host
	ownerUnknown                   // of this host, with another or unknown boot or PID namespace
	ownerAlive                     // running, or not provably dead
	ownerDead
)

// stateOf returns the state of another owner.
func (o owner) stateOf(other owner) ownerState { return o.stateIn(other, hostProcs) }

// stateIn returns ownerDead only if that is proven: on the same boot and in the
// same PID namespace no process has the id, or the process with the id started at
// another time or has exited. Data that cannot be read proves nothing: hosts may
// share a name, and /proc may hide processes.
func (o owner) stateIn(other owner, p procTable) ownerState {
	switch {
	case other.Host != o.Host:
		return ownerForeign
	case other.Boot == "" || other.Boot != o.Boot || other.Namespace == "" || other.Namespace != o.Namespace:
		return ownerUnknown
	}
	start, exited := p.startTime(other.PID)
	switch {
	case start == "" && p.isAbsent(other.PID):
		return ownerDead
	case start == "" || other.Start == "":
		return ownerAlive // it may run until no process has its id
	case start != other.Start || exited:
		return ownerDead
	}
	return ownerAlive
}

// procTable looks up processes.
type procTable struct {
	proc string                                  // mount point of proc(5)
	kill func(pid int, sig syscall.Signal) error // kill(2)
}

var hostProcs = procTable{proc: "/proc", kill: syscall.Kill}

// isAbsent reports whether no process has the id, including those of other users.
func (p procTable) isAbsent(pid int) bool {
	return errors.Is(p.kill(pid, 0), syscall.ESRCH)
}

// startTime returns when a process started, in clock ticks since boot, and whether
// it is a zombie. It returns "" if that cannot be read.
func (p procTable) startTime(pid int) (ticks string, exited bool) {
	// In the /proc of another PID namespace, the ids belong to other processes.
	if self, err := os.Readlink(filepath.Join(p.proc, "self")); err != nil || self != strconv.Itoa(os.Getpid()) {
		return "", false
	}
	b, err := os.ReadFile(filepath.Join(p.proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", false
	}
	// The second field is the name, in parentheses; it may contain any byte.
	s := string(b)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	const stateField, startField = 0, 19 // fields 3 and 22 of proc_pid_stat(5)
	if len(fields) <= startField {
		return "", false
	}
	return fields[startField], fields[stateField] == "Z" || fields[stateField] == "X"
}
