package docker

import (
	"fmt"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// Kind is a kind of engine object.
type Kind string

// The kinds of objects that can be left over.
const (
	KindContainer Kind = "container"
	KindVolume    Kind = "volume"
	KindImage     Kind = "image" // a kept sandbox
)

// Leftover is an object in an engine that Sweep or Clean may remove.
type Leftover struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	// Owner is the process that created the object.
	Owner string `json:"owner,omitempty"`
	// OwnerUnknown is true if mini cannot tell whether that process still runs, or,
	// for an image, which user kept it.
	OwnerUnknown bool `json:"unknown,omitempty"`
	// Run and Instance are those of Config; State is the state of a container.
	Run      string    `json:"run,omitempty"`
	Instance string    `json:"instance,omitempty"`
	State    string    `json:"state,omitempty"`
	Created  time.Time `json:"created,omitzero"`
	// IsHelper is true for a volume with the helper program. mini creates such a
	// volume again when it is needed.
	IsHelper bool `json:"helper,omitempty"`

	id string
}

// String describes the object in one line: kind, name and, if known, instance, run,
// owner, state and age.
func (l Leftover) String() string {
	var about []string
	if l.Instance != "" {
		about = append(about, "instance "+l.Instance)
	}
	if l.Run != "" {
		about = append(about, "run "+l.Run)
	}
	if l.IsHelper {
		about = append(about, "mini's helper")
	}
	switch {
	case l.Owner != "" && l.OwnerUnknown:
		about = append(about, "of "+l.Owner+", which may still run")
	case l.Owner != "":
		about = append(about, "of "+l.Owner+", which has exited")
	case l.OwnerUnknown:
		about = append(about, "of an unknown user")
	}
	if l.OwnerUnknown && l.State != "" {
		about = append(about, l.State)
	}
	if !l.Created.IsZero() {
		about = append(about, strings.ToLower(units.HumanDuration(time.Since(l.Created)))+" old")
	}
	line := fmt.Sprintf("%s %s", l.Kind, l.Name)
	if len(about) > 0 {
		line += " (" + strings.Join(about, "; ") + ")"
	}
	return line
}
