package docker

import (
	"fmt"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// Kind is what an engine calls a thing.
type Kind string

// The kinds of things that can be left behind.
const (
	KindContainer Kind = "container"
	KindVolume    Kind = "volume"
	KindImage     Kind = "image" // a sandbox that was kept
)

// Leftover is something in an engine whose owner is dead, or unknown.
type Leftover struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	// Owner is the process that made it.
	Owner string `json:"owner,omitempty"`
	// Unknown says that it cannot be told whether that process runs, or, of an
	// image, which user kept it.
	Unknown bool `json:"unknown,omitempty"`
	// Run and Instance say what it was for, State what became of a container.
	Run      string    `json:"run,omitempty"`
	Instance string    `json:"instance,omitempty"`
	State    string    `json:"state,omitempty"`
	Created  time.Time `json:"created,omitzero"`
	// Helper says that it is a volume with the program that mini puts into
	// containers. Such a volume is made anew when it is needed.
	Helper bool `json:"helper,omitempty"`

	id string
}

// String is a line about it: its kind and name, whose it was and how old it is.
func (l Leftover) String() string {
	var about []string
	if l.Instance != "" {
		about = append(about, "instance "+l.Instance)
	}
	if l.Run != "" {
		about = append(about, "run "+l.Run)
	}
	if l.Helper {
		about = append(about, "mini's helper")
	}
	switch {
	case l.Owner != "" && l.Unknown:
		about = append(about, "of "+l.Owner+", which may run")
	case l.Owner != "":
		about = append(about, "of "+l.Owner+", which is gone")
	case l.Unknown:
		about = append(about, "of an unknown user")
	}
	if l.Unknown && l.State != "" {
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
