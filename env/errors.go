package env

import "errors"

// Status names the reason why a sandbox failed. It becomes the exit status of the
// attempt, so the names are part of the file format.
type Status string

// The reasons why a sandbox fails. All but SandboxLimitExceeded belong to the outcome
// class "environment": the attempt does not count and may be retried.
const (
	ImageNotFound     Status = "ImageNotFound"     // neither on this machine nor in the registry
	PullFailed        Status = "PullFailed"        // the download of the image failed
	ImageBuildFailed  Status = "ImageBuildFailed"  // the Dockerfile of the task failed, or took too long
	DaemonUnavailable Status = "DaemonUnavailable" // the container engine does not respond
	StartFailed       Status = "StartFailed"       // the sandbox could not start or be removed
	ContainerDied     Status = "ContainerDied"     // the container exited or is no longer usable
	ContainerPaused   Status = "ContainerPaused"   // the container was paused and not resumed in time
	ProtocolViolation Status = "ProtocolViolation" // the sandbox sent data that breaks the helper protocol
	HostDiskFull      Status = "HostDiskFull"      // the disk of the host is full
	SetupFailed       Status = "SetupFailed"       // the start-up command of the instance failed, or its repository is unusable
	RepositoryRefused Status = "RepositoryRefused" // mini cannot work on the repository of the image, also at another try
	AgentNotStarted   Status = "AgentNotStarted"   // the agent in the sandbox ended before its first model request
	DiffFailed        Status = "DiffFailed"        // the agent finished, but its diff could not be created
	// SandboxRefused means that the cluster refuses all such sandboxes, because of a setting:
	// a retry would fail in the same way. It stops the run.
	SandboxRefused Status = "SandboxRefused"
	// SandboxDisrupted means that the cluster took the node or the place of the pod: drain,
	// preemption, eviction. The new attempt does not count as a try.
	SandboxDisrupted Status = "SandboxDisrupted"
	// SandboxLimitExceeded means that the sandbox exceeded its own disk or memory limit for
	// the second time. It belongs to the outcome class "limit": the attempt counts.
	SandboxLimitExceeded Status = "SandboxLimitExceeded"
)

// Error reports that a sandbox failed, so that its attempt cannot continue. Callers
// test for it with errors.AsType.
type Error struct {
	Status Status
	Op     string // the failed operation: "pull image x", "start container"
	Hint   string // what the user can do; may be empty
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

// ErrSink is wrapped by the error of Execute when Command.Sink failed. The command was
// killed, and the sandbox stays usable.
var ErrSink = errors.New("write output to sink")

// ErrClosed is wrapped by the error of Execute, Put and Get after Close, also of a call
// that Close ended.
var ErrClosed = errors.New("environment is closed")
