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

// owner identifies the process that made a container, beyond the reuse of its
// process id.
type owner struct {
	Host  string `json:"host"`            // a hash of host name and machine id
	Boot  string `json:"boot,omitempty"`  // of the kernel
	Space string `json:"space,omitempty"` // the PID namespace: ids of another one mean nothing here
	PID   int    `json:"pid"`
	Start string `json:"start,omitempty"` // when the process began, in the kernel's ticks
}

// self is the owner that this process is.
func self() (owner, error) {
	name, err := os.Hostname()
	if err != nil {
		return owner{}, fmt.Errorf("identify this host: %w", err)
	}
	machine, err := os.ReadFile("/etc/machine-id")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return owner{}, fmt.Errorf("identify this host: %w", err)
	}
	sum := sha256.Sum256([]byte(name + "\n" + string(machine))) // machine ids are not for others to see
	o := owner{
		Host:  hex.EncodeToString(sum[:8]),
		Boot:  bootID(),
		Space: pidSpace(),
		PID:   os.Getpid(),
	}
	o.Start, _ = thisSystem.start(o.PID)
	return o, nil
}

func (o owner) String() string {
	b, err := json.Marshal(o)
	if err != nil { // strings and a number
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

// standing is what one owner knows of another.
type standing int

const (
	foreign standing = iota // of another host: nothing is known
	unknown                 // of this host, but out of sight
	living                  // or, where it cannot be told, another process with its id
	dead
)

// sees judges another owner.
func (o owner) sees(other owner) standing { return o.judge(other, thisSystem) }

// judge says that another owner is dead only where that is proven: on the same
// boot and in the same PID namespace no process has its id, or the one that has
// it began at another time or has exited. Hosts may share a name, and /proc may
// hide processes, so what cannot be read proves nothing.
func (o owner) judge(other owner, p processes) standing {
	switch {
	case other.Host != o.Host:
		return foreign
	case other.Boot == "" || other.Boot != o.Boot || other.Space == "" || other.Space != o.Space:
		return unknown
	}
	start, exited := p.start(other.PID)
	switch {
	case start == "" && p.absent(other.PID):
		return dead
	case start == "" || other.Start == "":
		return living // until its id is free
	case start != other.Start || exited:
		return dead
	}
	return living
}

// processes is how the processes of this system are looked up.
type processes struct {
	proc string                                  // where proc(5) is mounted
	kill func(pid int, sig syscall.Signal) error // kill(2)
}

var thisSystem = processes{proc: "/proc", kill: syscall.Kill}

// absent says that no process has the id, which kill(2) tells of those of other
// users, too.
func (p processes) absent(pid int) bool {
	return errors.Is(p.kill(pid, 0), syscall.ESRCH)
}

// start is when a process began, in clock ticks since the boot, and whether it
// has exited and waits to be reaped. It is empty where that cannot be read.
func (p processes) start(pid int) (ticks string, exited bool) {
	// A /proc of another PID namespace has other processes under the same ids.
	if self, err := os.Readlink(filepath.Join(p.proc, "self")); err != nil || self != strconv.Itoa(os.Getpid()) {
		return "", false
	}
	b, err := os.ReadFile(filepath.Join(p.proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", false
	}
	// The second field is the name, in parentheses, and may hold anything.
	s := string(b)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	const state, startTime = 0, 19 // fields 3 and 22 of proc_pid_stat(5)
	if len(fields) <= startTime {
		return "", false
	}
	return fields[startTime], fields[state] == "Z" || fields[state] == "X"
}
