package docker

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/minibench/mini/env"
)

const (
	// removeTimeout limits a removal; a large container on a slow disk takes seconds.
	removeTimeout = time.Minute
	// removePoll is the interval between removal requests while another removal is
	// in progress.
	removePoll = 100 * time.Millisecond
)

// remove kills a container, removes it with its anonymous volumes, and returns when
// it is gone. It ignores the cancellation of ctx, since it is called for cleanup.
// removed is false if another client or the engine itself removed the container.
func (e *Engine) remove(ctx context.Context, id string, limit time.Duration) (removed bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	op := "remove container " + id
	for {
		err := e.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case err == nil:
			return true, nil
		case errdefs.IsNotFound(err):
			return false, nil
		case ctx.Err() != nil:
			return false, &env.Error{Status: env.StartFailed, Op: op, Hint: hintLeftover, Err: fmt.Errorf("still there after %s", limit)}
		case !isRemovalConflict(err):
			return false, engineError(context.WithoutCancel(ctx), env.StartFailed, op, err)
		}
		// Another removal is in progress: wait for it, then check again.
		e.waitRemoved(ctx, id)
	}
}

// waitRemoved returns when the container is gone, or after removePoll.
func (e *Engine) waitRemoved(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, removePoll)
	defer cancel()
	gone, failed := e.api.ContainerWait(ctx, id, container.WaitConditionRemoved)
	select {
	case <-gone:
	case err := <-failed: // the next removal request reports other errors
		if errdefs.IsNotFound(err) {
			return
		}
		<-ctx.Done()
	}
}
