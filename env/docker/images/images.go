package images

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Image is an image that the engine has.
type Image struct {
	ID     string
	Digest string   // name@sha256:... of the registry; empty for one made here
	Arch   string   // in Go's names
	Size   int64    // bytes on disk, all of its layers
	Layers []string // the digests of its layers' content, lowest first
}

// Stock is all that an engine holds.
type Stock struct {
	Images []Holding
	Bytes  int64 // of all layers, each counted once
}

// Holding is one image of a Stock.
type Holding struct {
	ID     string
	Names  []string // its tags
	Size   int64    // bytes, of all its layers
	Shared int64    // the part that other images have too
	InUse  bool     // a container, in whatever state, is made from it
	// Parts are what it is made of, where that was asked for.
	Parts []Part
}

// Part is a layer on disk. The same part of two images takes its room once.
type Part struct {
	Key   string
	Bytes int64
}

// Engine is what a Store asks of a container engine. Errors are *env.Error,
// beneath which a *Refusal says that a pull may be tried again.
type Engine interface {
	// Find looks for an image; false when it is not here for the platform.
	Find(ctx context.Context, ref, platform string) (Image, bool, error)
	// Pull fetches it. The login is a word of Registry's; empty for none.
	Pull(ctx context.Context, ref, platform, login string) error
	// Remove removes a name, and the image when that was its last. An error
	// that wraps ErrInUse says that something needs it; a name that is not
	// there is none.
	Remove(ctx context.Context, ref string) error
	// Stock measures what is here, with the parts of those that parts picks. It
	// may take seconds.
	Stock(ctx context.Context, parts func(id string) bool) (Stock, error)
}

// ErrInUse says that an image is needed by a container or another image.
var ErrInUse = errors.New("the image is in use")

// Offer is what a registry says of an image.
type Offer struct {
	Digest    string
	Platforms []string // it is made for, as linux/amd64; empty where that is not known
	// Layers are those of the platform that was asked for; none where they are
	// not known.
	Layers []Layer
}

// Layer is one layer as it travels.
type Layer struct {
	Content string // digest of what it unpacks to
	Bytes   int64  // as it travels, compressed
}

// Bytes is what the layers take on their way; 0 where they are not known.
func (o Offer) Bytes() (n int64) {
	for _, l := range o.Layers {
		n += l.Bytes
	}
	return n
}

// Registry is where images come from. A nil Registry in a Config means that
// only the engine talks to one.
type Registry interface {
	// Ask says what there is of an image, for a platform, without pulling it.
	// A *Refusal says how the registry refused.
	Ask(ctx context.Context, ref, platform string) (Offer, error)
	// Login is what the engine needs to be let in, as the X-Registry-Auth
	// header has it; empty where nothing is known. It is a secret.
	Login(ctx context.Context, ref string) (string, error)
}

// Refusal is a registry that did not give what it was asked for.
type Refusal struct {
	// Status is the HTTP status; 0 means that no answer came, or half of one.
	Status int
	// RetryAfter is how long the registry asked to be left alone.
	RetryAfter time.Duration
	Err        error
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// Limited says that there were too many requests, and no other failure.
func (r *Refusal) Limited() bool { return r.Status == 429 }

// passing says that the same request may well succeed later.
func (r *Refusal) passing() bool { return r.Status == 0 || r.Status == 408 || r.Status >= 500 }

// Need is an image that somebody needs.
type Need struct {
	Ref      string
	Platform string // as linux/arm64; empty for the engine's own
	For      string // who waits for it, in notes; may be empty
}

// Host is what a Store has to know of the engine and of this process.
type Host struct {
	ID       string // of the engine, the same for everybody who talks to it
	Platform string // of the engine, as linux/amd64
	// Owner names this process in the file that minis share; Living says
	// whether another's still runs, and known is false where that cannot be
	// told from here.
	Owner  string
	Living func(owner string) (alive, known bool)
	// Free is the room on the engine's disk, in bytes; false where it cannot
	// be measured from here.
	Free func() (int64, bool)
}

// Config says how a Store works. The zero value pulls what is asked for, and
// removes nothing.
type Config struct {
	Registry Registry
	// Dir is where it is remembered what was pulled; required.
	Dir string
	// Budget bounds, in bytes, the images that mini pulled; 0 means no bound.
	Budget int64
	// MinFree is the room, in bytes, that the engine's disk must have before
	// anything more is started or pulled; 0 means none.
	MinFree int64
	// Prefetch is how many images are pulled ahead of those who need them.
	Prefetch int
	// PullsPerMinute bounds all pulls together; 0 means no bound.
	PullsPerMinute float64
	// NoWait makes a failure of what would be waited for: room on the disk,
	// or in the budget. It is for callers who never give anything back.
	NoWait bool
	// Patience bounds how long a registry that limits pulls is waited for, in
	// all, for one image; 0 means an hour. FirstPause is the wait after the
	// first failure, which then doubles up to a minute; 0 means a second.
	Patience   time.Duration
	FirstPause time.Duration
	// Poll is how often it is looked whether room has appeared; 0 means 2 s.
	Poll time.Duration
	// Tell is told what happens; it may be nil and must be quick.
	Tell func(Note)
}

// NoteKind says what a Note is about.
type NoteKind string

// The kinds of notes.
const (
	Limited NoteKind = "limited" // a registry limits pulls: Wait says for how long
	Retry   NoteKind = "retry"   // a pull failed and is tried again after Wait
	Room    NoteKind = "room"    // no room; it is waited until there is
	Resumed NoteKind = "resumed" // such a wait is over
	Removed NoteKind = "removed" // an image was removed to make room
	Problem NoteKind = "problem" // something that stops nobody went wrong
)

// Note is something that happened to an image.
type Note struct {
	Kind  NoteKind
	Image string
	For   string // who waits, if somebody does
	Wait  time.Duration
	Text  string // a sentence
}

func (c Config) withDefaults() Config {
	if c.Patience <= 0 {
		c.Patience = time.Hour
	}
	if c.FirstPause <= 0 {
		c.FirstPause = time.Second
	}
	if c.Poll <= 0 {
		c.Poll = 2 * time.Second
	}
	if c.Tell == nil {
		c.Tell = func(Note) {}
	}
	return c
}

func (c Config) validate() error {
	if c.Dir == "" {
		return errors.New("no folder to remember images in")
	}
	if c.Budget < 0 || c.MinFree < 0 || c.Prefetch < 0 || c.PullsPerMinute < 0 {
		return fmt.Errorf("budget, floor, prefetch and pulls per minute cannot be negative")
	}
	return nil
}
