package env

import "errors"

// Status names why a sandbox failed; it becomes the exit status of the
// attempt, so the names are part of the file format.
type Status string

// The ways a sandbox fails. Each belongs to the outcome class "environment":
// the attempt does not count and may be tried again.
const (
	ImageNotFound     Status = "ImageNotFound"     // neither here nor in the registry
	PullFailed        Status = "PullFailed"        // the registry has it, or might, but it did not arrive
	DaemonUnavailable Status = "DaemonUnavailable" // the container engine does not answer
	StartFailed       Status = "StartFailed"       // the sandbox could not be created or started
	ContainerDied     Status = "ContainerDied"     // it ended before it was closed
	ContainerPaused   Status = "ContainerPaused"   // it was paused, and not resumed in time
	ProtocolViolation Status = "ProtocolViolation" // what came out of it was not the helper's word
	HostDiskFull      Status = "HostDiskFull"      // the host has no room for it
	SetupFailed       Status = "SetupFailed"       // the start-up command of the instance failed, or its repository is unfit
	DiffFailed        Status = "DiffFailed"        // the work is done, and its diff could not be taken
)

// Error is the loss of a sandbox. Callers find it with errors.AsType.
type Error struct {
	Status Status
	Op     string // what was being done: "pull image x", "start container"
	Hint   string // what the user can do about it; may be empty
	Err    error
}

func (e *Error) Error() string {
	s := e.Op + ": " + string(e.Status)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// ErrSink is wrapped by errors of Execute that are those of Command.Sink: the
// command was ended, and the sandbox lives.
var ErrSink = errors.New("the output cannot be passed on")

// ErrClosed is returned by Execute after Close.
var ErrClosed = errors.New("environment is closed")
