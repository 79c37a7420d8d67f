package imagestore

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Image is an image that the engine has.
type Image struct {
	ID     string
	Digest string   // name@sha256:... in the registry; empty for a local image
	Arch   string   // GOARCH
	Size   int64    // bytes on disk of all layers
	Layers []string // diff ids of the layers, lowest first
}

// DiskUsage is what the images of an engine use.
type DiskUsage struct {
	Images []ImageUsage
	Bytes  int64 // of all layers, each counted once
}

// ImageUsage is one image of a DiskUsage.
type ImageUsage struct {
	ID     string
	Names  []string // tags
	Size   int64    // bytes of all layers
	Shared int64    // bytes of the layers that other images share
	InUse  bool     // a container, in any state, uses it
}

// Engine is the interface to a container engine. Errors are *env.Error, or the cause of
// ctx. Those of Pull wrap a *RegistryError if the registry's answer or the transfer
// allows a retry.
type Engine interface {
	// Find returns false if the engine does not have the image for the platform.
	Find(ctx context.Context, ref, platform string) (Image, bool, error)
	// Pull pulls the image. login is the result of Registry.RegistryAuth, or empty.
	Pull(ctx context.Context, ref, platform, login string) error
	// Remove removes a name, and the image with its last name. The error wraps
	// ErrInUse, instead of an *env.Error, if the image is needed. A missing name is not
	// an error.
	Remove(ctx context.Context, ref string) error
	// DiskUsage measures all images, which may take minutes.
	DiskUsage(ctx context.Context) (DiskUsage, error)
}

// ErrInUse means that a container or another image needs the image.
var ErrInUse = errors.New("the image is in use")

// RemoteImage is a registry's description of an image.
type RemoteImage struct {
	Digest    string   // name@sha256:...
	Platforms []string // for example linux/amd64; empty if unknown
	// Layers are the layers for the requested platform; empty if unknown.
	Layers []Layer
}

// Layer is a compressed layer in a registry.
type Layer struct {
	DiffID string // diff id: digest of the uncompressed layer
	Bytes  int64  // compressed
}

// DownloadSize is the compressed size of all layers; 0 if unknown.
func (r RemoteImage) DownloadSize() (n int64) {
	for _, l := range r.Layers {
		n += l.Bytes
	}
	return n
}

// Registry describes images and supplies credentials. Without a Registry in Config,
// only the engine talks to registries.
type Registry interface {
	// Inspect describes an image for a platform without pulling it. The error wraps
	// a *RegistryError if the registry refused or did not answer.
	Inspect(ctx context.Context, ref, platform string) (RemoteImage, error)
	// RegistryAuth returns the X-Registry-Auth header for the engine; empty if there
	// are no credentials. It is a secret.
	RegistryAuth(ctx context.Context, ref string) (string, error)
}

// RegistryError is a failed request to a registry.
type RegistryError struct {
	// Status is the HTTP status; 0 means no response, or an incomplete one.
	Status int
	// RetryAfter is the delay that the registry asked for; 0 if it asked for none.
	RetryAfter time.Duration
	Err        error
}

func (r *RegistryError) Error() string { return r.Err.Error() }
func (r *RegistryError) Unwrap() error { return r.Err }

// IsRateLimited reports whether the registry's rate limit was exceeded.
func (r *RegistryError) IsRateLimited() bool { return r.Status == 429 }

// isTransient reports whether a retry may succeed.
func (r *RegistryError) isTransient() bool {
	return r.Status == 0 || r.Status == 408 || r.Status >= 500
}

// Request asks for an image.
type Request struct {
	Ref       string
	Platform  string // for example linux/arm64; empty for the engine's own
	Requester string // instance that needs the image, for events; may be empty
}

// EngineInfo describes the engine and this process.
type EngineInfo struct {
	ID       string // identifies the engine for all its clients
	Platform string // of the engine, for example linux/amd64
	// Owner identifies this process in the state file. OwnerAlive reports whether the
	// process of another owner runs; known is false if that cannot be determined.
	Owner      string
	OwnerAlive func(owner string) (alive, known bool)
	// FreeDisk returns the free bytes on the engine's disk; false if unknown. It may
	// be nil.
	FreeDisk func() (int64, bool)
}

// Config configures a Store. A Store with only Dir set pulls images when they are
// needed and removes none.
type Config struct {
	Registry Registry
	// Dir is the directory of the state file; required.
	Dir string
	// Budget limits the size, in bytes, of all images that mini pulled or built; 0 means
	// no limit.
	Budget int64
	// MinFree is the free space, in bytes, that the engine's disk must have before a
	// start and, in addition to the size of the download, before a pull; 0 means none.
	MinFree int64
	// Prefetch is the number of images to pull in advance; 0 means none.
	Prefetch int
	// PullsPerMinute limits the rate of pulls; 0 means no limit.
	PullsPerMinute float64
	// NoWait makes the Store return an error instead of waiting for space on the disk or
	// in the budget. It is for callers that never release an image.
	NoWait bool
	// MaxRetryTime limits how long to retry after a registry's rate limit or with a full
	// disk, per image; 0 means an hour. InitialBackoff is the wait after the first
	// failure, without jitter; 0 means a second. Later waits double, up to a minute.
	MaxRetryTime   time.Duration
	InitialBackoff time.Duration
	// PollInterval is how often to check for free space; 0 means 2 s.
	PollInterval time.Duration
	// Notify is called for each event; it must return quickly. It may be nil.
	Notify func(Event)
}

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events.
const (
	RateLimited     EventKind = "limited" // the registry limits pulls; the pull is retried after Wait
	Retry           EventKind = "retry"   // a pull failed and is retried after Wait
	WaitingForSpace EventKind = "room"    // the store waits for space
	Resumed         EventKind = "resumed" // the wait is over
	Removed         EventKind = "removed" // an image was removed to free space
	Warning         EventKind = "problem" // a non-fatal error
)

// Event is something that happened to an image.
type Event struct {
	Kind      EventKind
	Image     string // name; may be empty
	Requester string // Request.Requester
	Wait      time.Duration
	Text      string // message for the user
}

func (c Config) withDefaults() Config {
	if c.MaxRetryTime <= 0 {
		c.MaxRetryTime = time.Hour
	}
	if c.InitialBackoff <= 0 {
		c.InitialBackoff = time.Second
	}
	if c.PollInterval <= 0 {
		c.PollInterval = 2 * time.Second
	}
	if c.Notify == nil {
		c.Notify = func(Event) {}
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
