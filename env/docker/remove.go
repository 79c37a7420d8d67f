package docker

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/minibench/mini/env"
)

// removeTimeout bounds a removal; a big container on a slow disk takes seconds.
const removeTimeout = time.Minute

// remove kills a container and removes it with its anonymous volumes, and
// returns when it is gone. It goes on when ctx ends: whoever asks for it is
// cleaning up.
func (e *Engine) remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	op := "remove container " + id
	for {
		err := e.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case errdefs.IsNotFound(err):
			return nil
		case err == nil, busy(err): // the engine is at it already
		default:
			return failure(context.WithoutCancel(ctx), env.DaemonUnavailable, op, err)
		}
		if _, err := e.api.ContainerInspect(ctx, id); errdefs.IsNotFound(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return &env.Error{Status: env.DaemonUnavailable, Op: op, Err: fmt.Errorf("still there after %s", removeTimeout)}
		case <-time.After(10 * time.Millisecond):
		}
	}
}
