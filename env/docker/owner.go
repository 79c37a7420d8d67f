package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
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
	o.Start, _ = processStart(o.PID)
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
	living
	dead
)

// sees judges another owner.
func (o owner) sees(other owner) standing {
	switch {
	case other.Host != o.Host:
		return foreign
	case other.Boot != o.Boot:
		return dead
	case other.Space != o.Space:
		return unknown
	}
	start, running := processStart(other.PID)
	if running && start == other.Start {
		return living
	}
	return dead
}
