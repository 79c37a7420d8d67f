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

// Hints that more than one failure shares.
const (
	hintDaemon = "is a Docker engine running, and may this user talk to it? " +
		"Start it, add the user to the docker group, or set DOCKER_HOST"
	hintSilent = "it may be frozen, overloaded, or out of reach; docker version asks the same of it"
	hintBack   = "it was killed, stopped or restarted; once it is back, start again"
	hintDisk   = "make room on the engine's disk (docker system df shows what takes it)"
	hintMemory = "give it more memory (environment.memory), or less in memory file systems (environment.shm_size, environment.tmpfs)"
	hintLeft   = "docker ps -a shows it; mini clean removes it once its mini has ended"
	hintHelper = "remove mini's helper volumes with `mini clean --all`; they are made anew"
)

// failure classifies an error of the engine. The end of ctx is not a failure:
// its cause is returned as it is.
func failure(ctx context.Context, otherwise env.Status, op string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if known, ok := errors.AsType[*env.Error](err); ok {
		return known
	}
	e := &env.Error{Status: otherwise, Op: op, Err: err}
	text := err.Error()
	switch {
	case diskFull(text):
		e.Status, e.Hint = env.HostDiskFull, hintDisk
	case unavailable(err):
		e.Status, e.Hint = env.DaemonUnavailable, hintDaemon
	default:
		e.Hint = hintFor(text)
	}
	return e
}

// hintFor knows what engines say of settings that an image or a machine is not
// fit for; they say it only when a container starts.
func hintFor(text string) string {
	for _, known := range []struct{ said, hint string }{
		{"exec format error", "the image is of another architecture than the machine; choose another image or platform"},
		{"unable to find user", "the image has no such user; change environment.user"},
		{"unable to find group", "the image has no such group; change environment.user"},
		{"rlimit", "the engine may not give so much; lower environment.ulimits"},
	} {
		if strings.Contains(text, known.said) {
			return known.hint
		}
	}
	return ""
}

func diskFull(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "no space left on device") || strings.Contains(text, "disk quota exceeded")
}

// unavailable recognises a connection that failed, could not be made, or ended
// in the middle of an answer. The engine's own errors are none of these.
func unavailable(err error) bool {
	_, broken := errors.AsType[net.Error](err)
	return broken || client.IsErrConnectionFailed(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// busy recognises a removal that meets another, or the container's own end,
// which podman calls an improper state, and a failure of its own.
func busy(err error) bool {
	return errdefs.IsConflict(err) || err != nil && strings.Contains(err.Error(), "container state improper")
}

// helperMissing recognises a start that failed because the volume is empty: a
// prune removes named volumes too on some engines.
func helperMissing(err error) bool {
	text := err.Error()
	return strings.Contains(text, helperPath) && strings.Contains(text, "no such file or directory")
}
