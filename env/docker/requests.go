package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/minibench/mini/env"
)

// requestTimeout bounds a request of an engine that is alive. It is long: under
// load one takes seconds to start a container.
const requestTimeout = 2 * time.Minute

// slowTimeout bounds those that look at, or remove, all that is on a disk.
const slowTimeout = 10 * time.Minute

// bounded is an api whose requests end: after requestTimeout, and soon when the
// engine has no pulse. Streams (events, pulls, waits) are for their callers to
// bound, since their silence means nothing; an attach is bounded until the
// stream stands.
type bounded struct {
	api
	pulse   *pulse
	dials   sync.WaitGroup // connections that are being made
	leashed bool           // a connection that was given up ends
}

// request runs one. The context's cause is the error when the engine fell
// silent.
func request[T any](ctx context.Context, b *bounded, do func(context.Context) (T, error)) (T, error) {
	return requestWithin(ctx, requestTimeout, b, do)
}

// requestWithin is for those that take an engine longer.
func requestWithin[T any](ctx context.Context, limit time.Duration, b *bounded, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, tooSlow(limit))
	defer cancel()
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	defer b.pulse.watch(ctx, lose)()
	v, err := do(ctx)
	switch {
	case err == nil:
		b.pulse.note()
	case ctx.Err() != nil:
		if lost := context.Cause(ctx); isEngines(lost) {
			err = lost
		}
	}
	return v, err
}

// errSlow is why a request ends that an engine with a pulse does not answer.
var errSlow = errors.New("it lives, and has not answered a request")

func tooSlow(limit time.Duration) error {
	return &env.Error{
		Status: env.DaemonUnavailable, Op: "wait for the container engine", Hint: hintSilent,
		Err: fmt.Errorf("%w in %s", errSlow, limit),
	}
}

// isEngines says that a cause is about the engine and not the caller's own.
func isEngines(err error) bool {
	return errors.Is(err, errSlow) || errors.Is(err, errNoPulse)
}

// errOnly makes a request of one that returns an error alone.
func errOnly(ctx context.Context, b *bounded, do func(context.Context) error) error {
	_, err := request(ctx, b, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// Ping is the first word; whoever waits for it knows how long he wants to.
func (b *bounded) Ping(ctx context.Context) (types.Ping, error) { return b.api.Ping(ctx) }

// ImageInspect implements api, as the methods below do: each is a request, and bounded.
func (b *bounded) ImageInspect(ctx context.Context, ref string, o ...client.ImageInspectOption) (image.InspectResponse, error) {
	return request(ctx, b, func(ctx context.Context) (image.InspectResponse, error) { return b.api.ImageInspect(ctx, ref, o...) })
}

// ContainerCreate implements api.
func (b *bounded) ContainerCreate(
	ctx context.Context, c *container.Config, h *container.HostConfig, n *network.NetworkingConfig, p *ocispec.Platform, name string,
) (container.CreateResponse, error) {
	return request(ctx, b, func(ctx context.Context) (container.CreateResponse, error) {
		return b.api.ContainerCreate(ctx, c, h, n, p, name)
	})
}

// ContainerAttach implements api.
func (b *bounded) ContainerAttach(ctx context.Context, id string, o container.AttachOptions) (types.HijackedResponse, error) {
	return b.dial(ctx, func(ctx context.Context) (types.HijackedResponse, error) { return b.api.ContainerAttach(ctx, id, o) })
}

// ContainerExecAttach implements api.
func (b *bounded) ContainerExecAttach(ctx context.Context, exec string, o container.ExecAttachOptions) (types.HijackedResponse, error) {
	return b.dial(ctx, func(ctx context.Context) (types.HijackedResponse, error) {
		return b.api.ContainerExecAttach(ctx, exec, o)
	})
}

// dial is for requests that become a connection. The client does not heed their
// context once it has dialled; the leash of the connection does it instead. The
// goroutine is for an engine behind TLS, to which the client dials in its own
// way, without a leash: there it ends with the connection, and what comes after
// the request was given up is closed when it comes.
func (b *bounded) dial(
	ctx context.Context, do func(context.Context) (types.HijackedResponse, error),
) (types.HijackedResponse, error) {
	type attached struct {
		conn types.HijackedResponse
		err  error
	}
	return request(ctx, b, func(ctx context.Context) (types.HijackedResponse, error) {
		c := make(chan attached)
		b.dials.Go(func() {
			l := &leash{}
			conn, err := do(context.WithValue(ctx, leashKey{}, l))
			l.undo()
			select {
			case c <- attached{conn, err}:
			case <-ctx.Done():
				if err == nil {
					conn.Close()
				}
			}
		})
		select {
		case a := <-c:
			return a.conn, a.err
		case <-ctx.Done():
			return types.HijackedResponse{}, context.Cause(ctx)
		}
	})
}

// Close implements api. It waits for the connections that were given up.
func (b *bounded) Close() error {
	if b.leashed {
		b.dials.Wait()
	}
	return b.api.Close()
}

// ContainerWait is bounded until the engine has taken note of it, which has to
// be before the container starts.
func (b *bounded) ContainerWait(ctx context.Context, id string, c container.WaitCondition) (<-chan container.WaitResponse, <-chan error) {
	ctx, lose := context.WithCancelCause(ctx) // goes on when this returns, and ends with the caller's
	defer b.pulse.watch(ctx, lose)()
	return b.api.ContainerWait(ctx, id, c)
}

// ContainerStart implements api.
func (b *bounded) ContainerStart(ctx context.Context, id string, o container.StartOptions) error {
	return errOnly(ctx, b, func(ctx context.Context) error { return b.api.ContainerStart(ctx, id, o) })
}

// ContainerRemove implements api.
func (b *bounded) ContainerRemove(ctx context.Context, id string, o container.RemoveOptions) error {
	return errOnly(ctx, b, func(ctx context.Context) error { return b.api.ContainerRemove(ctx, id, o) })
}

// ContainerInspect implements api.
func (b *bounded) ContainerInspect(ctx context.Context, id string) (container.InspectResponse, error) {
	return request(ctx, b, func(ctx context.Context) (container.InspectResponse, error) { return b.api.ContainerInspect(ctx, id) })
}

// ContainerList implements api.
func (b *bounded) ContainerList(ctx context.Context, o container.ListOptions) ([]container.Summary, error) {
	return request(ctx, b, func(ctx context.Context) ([]container.Summary, error) { return b.api.ContainerList(ctx, o) })
}

// ContainerStatPath implements api.
func (b *bounded) ContainerStatPath(ctx context.Context, id, path string) (container.PathStat, error) {
	return request(ctx, b, func(ctx context.Context) (container.PathStat, error) { return b.api.ContainerStatPath(ctx, id, path) })
}

// CopyToContainer implements api.
func (b *bounded) CopyToContainer(ctx context.Context, id, path string, content io.Reader, o container.CopyToContainerOptions) error {
	return errOnly(ctx, b, func(ctx context.Context) error { return b.api.CopyToContainer(ctx, id, path, content, o) })
}

// NetworkInspect implements api.
func (b *bounded) NetworkInspect(ctx context.Context, name string, o network.InspectOptions) (network.Inspect, error) {
	return request(ctx, b, func(ctx context.Context) (network.Inspect, error) { return b.api.NetworkInspect(ctx, name, o) })
}

// Info implements api.
func (b *bounded) Info(ctx context.Context) (system.Info, error) { return request(ctx, b, b.api.Info) }

// ServerVersion implements api.
func (b *bounded) ServerVersion(ctx context.Context) (types.Version, error) {
	return request(ctx, b, b.api.ServerVersion)
}

// VolumeCreate implements api.
func (b *bounded) VolumeCreate(ctx context.Context, o volume.CreateOptions) (volume.Volume, error) {
	return request(ctx, b, func(ctx context.Context) (volume.Volume, error) { return b.api.VolumeCreate(ctx, o) })
}

// VolumeList implements api.
func (b *bounded) VolumeList(ctx context.Context, o volume.ListOptions) (volume.ListResponse, error) {
	return request(ctx, b, func(ctx context.Context) (volume.ListResponse, error) { return b.api.VolumeList(ctx, o) })
}

// VolumeRemove implements api.
func (b *bounded) VolumeRemove(ctx context.Context, name string, force bool) error {
	return errOnly(ctx, b, func(ctx context.Context) error { return b.api.VolumeRemove(ctx, name, force) })
}

// ContainerCommit implements api. A large container takes minutes.
func (b *bounded) ContainerCommit(ctx context.Context, id string, o container.CommitOptions) (container.CommitResponse, error) {
	return requestWithin(ctx, keepTimeout, b, func(ctx context.Context) (container.CommitResponse, error) {
		return b.api.ContainerCommit(ctx, id, o)
	})
}

// ContainerExecCreate implements api.
func (b *bounded) ContainerExecCreate(ctx context.Context, id string, o container.ExecOptions) (container.ExecCreateResponse, error) {
	return request(ctx, b, func(ctx context.Context) (container.ExecCreateResponse, error) {
		return b.api.ContainerExecCreate(ctx, id, o)
	})
}

// ContainerExecInspect implements api.
func (b *bounded) ContainerExecInspect(ctx context.Context, exec string) (container.ExecInspect, error) {
	return request(ctx, b, func(ctx context.Context) (container.ExecInspect, error) { return b.api.ContainerExecInspect(ctx, exec) })
}

// ContainerExecResize implements api.
func (b *bounded) ContainerExecResize(ctx context.Context, exec string, o container.ResizeOptions) error {
	return errOnly(ctx, b, func(ctx context.Context) error { return b.api.ContainerExecResize(ctx, exec, o) })
}

// ImageHistory implements api.
func (b *bounded) ImageHistory(ctx context.Context, id string, o ...client.ImageHistoryOption) ([]image.HistoryResponseItem, error) {
	return request(ctx, b, func(ctx context.Context) ([]image.HistoryResponseItem, error) {
		return b.api.ImageHistory(ctx, id, o...)
	})
}

// ImageList implements api.
func (b *bounded) ImageList(ctx context.Context, o image.ListOptions) ([]image.Summary, error) {
	return request(ctx, b, func(ctx context.Context) ([]image.Summary, error) { return b.api.ImageList(ctx, o) })
}

// ImageRemove implements api. Large images on slow disks take minutes.
func (b *bounded) ImageRemove(ctx context.Context, id string, o image.RemoveOptions) ([]image.DeleteResponse, error) {
	return requestWithin(ctx, slowTimeout, b, func(ctx context.Context) ([]image.DeleteResponse, error) { return b.api.ImageRemove(ctx, id, o) })
}

// DiskUsage implements api. An engine with hundreds of images adds up for
// minutes.
func (b *bounded) DiskUsage(ctx context.Context, o types.DiskUsageOptions) (types.DiskUsage, error) {
	return requestWithin(ctx, slowTimeout, b, func(ctx context.Context) (types.DiskUsage, error) { return b.api.DiskUsage(ctx, o) })
}
