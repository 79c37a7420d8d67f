package docker

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/minibench/mini/env"
)

// Hints used by more than one error.
const (
	hintDaemon = "check that a Docker engine is running and that this user may connect to it: " +
		"start it, add the user to the docker group, or set DOCKER_HOST"
	hintSilent    = "it may be frozen, overloaded or unreachable; check with docker version"
	hintRestarted = "it was killed, stopped or restarted; start again when it runs"
	hintDisk      = "free space on the engine's disk (docker system df shows what uses it)"
	hintMemory    = "increase environment.memory, or reduce environment.shm_size and environment.tmpfs"
	hintLeftover  = "docker ps -a shows it; mini clean removes it after its mini has exited"
	hintHelper    = "remove mini's helper volumes with `mini clean --all`; mini creates them again"
)

// engineError converts an error of the engine to an *env.Error. If ctx has ended,
// it returns the cause of ctx. If err wraps an *env.Error, it returns that one.
func engineError(ctx context.Context, defaultStatus env.Status, op string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if known, ok := errors.AsType[*env.Error](err); ok {
		return known
	}
	e := &env.Error{Status: defaultStatus, Op: op, Err: err}
	text := err.Error()
	switch {
	case isDiskFull(text):
		e.Status, e.Hint = env.HostDiskFull, hintDisk
	case isUnavailable(err):
		e.Status, e.Hint = env.DaemonUnavailable, hintDaemon
		if strings.HasPrefix(text, "Cannot connect") { // the client's text repeats the address and the status
			e.Err = noAnswer{err}
		}
	default:
		e.Hint = hintFor(text)
	}
	return e
}

// hintFor returns a hint for errors that engines report only when a container
// starts: settings that do not fit the image or the machine.
func hintFor(text string) string {
	for _, known := range []struct{ text, hint string }{
		{"exec format error", "the image has another architecture than the machine; choose another image or platform"},
		{"unable to find user", "the image has no such user; change environment.user"},
		{"unable to find group", "the image has no such group; change environment.user"},
		{"rlimit", "the engine cannot grant this limit; lower environment.ulimits"},
	} {
		if strings.Contains(text, known.text) {
			return known.hint
		}
	}
	return ""
}

func isDiskFull(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "no space left on device") || strings.Contains(text, "disk quota exceeded")
}

// noAnswer is a connection error of the client with a shorter text.
type noAnswer struct{ error }

func (noAnswer) Error() string   { return "nothing answers" }
func (e noAnswer) Unwrap() error { return e.error }

// isUnavailable reports whether a connection failed or was closed in the middle of
// a response. It is false for errors that the engine itself returned.
func isUnavailable(err error) bool {
	_, broken := errors.AsType[net.Error](err)
	return broken || client.IsErrConnectionFailed(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// isRemovalConflict reports whether a removal failed because another one is in
// progress or the container is exiting. Podman reports an improper state instead
// of a conflict.
func isRemovalConflict(err error) bool {
	return errdefs.IsConflict(err) || err != nil && strings.Contains(err.Error(), "container state improper")
}

// isHelperMissing reports whether a start failed because the volume is empty: on
// some engines a prune also removes named volumes.
func isHelperMissing(err error) bool {
	text := err.Error()
	return strings.Contains(text, helperPath) && strings.Contains(text, "no such file or directory")
}
