package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/minibench/mini/env"
)

const (
	// removeTimeout bounds a removal; a big container on a slow disk takes seconds.
	removeTimeout = time.Minute
	// farewell bounds what is tried once more, all of it together.
	farewell = 5 * time.Second
	// removePoll is how often a container is asked after that somebody else
	// removes, where the engine does not tell of the end by itself.
	removePoll = 100 * time.Millisecond
)

// remove kills a container and removes it with its anonymous volumes, and
// returns when it is gone. It goes on when ctx ends: whoever asks for it is
// cleaning up. It says whether this call removed it, not somebody else or the
// engine by itself.
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
			return false, &env.Error{Status: env.StartFailed, Op: op, Hint: hintLeft, Err: fmt.Errorf("still there after %s", limit)}
		case !busy(err):
			return false, failure(context.WithoutCancel(ctx), env.StartFailed, op, err)
		}
		// A conflict: the engine is at it already. It tells when it has ended.
		e.waitRemoved(ctx, id)
	}
}

// waitRemoved returns when the container is gone, or after a while.
func (e *Engine) waitRemoved(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, removePoll)
	defer cancel()
	gone, failed := e.api.ContainerWait(ctx, id, container.WaitConditionRemoved)
	select {
	case <-gone:
	case err := <-failed: // the next request of the removal meets it too
		if errdefs.IsNotFound(err) {
			return
		}
		<-ctx.Done()
	}
}

// owe remembers containers whose removal failed, for when the engine is back.
func (e *Engine) owe(names ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.owed = append(e.owed, names...)
}

// settle removes what is owed, and takes no longer than farewell however much
// that is. What fails again, and what there was no time for, stays owed; in the
// end the next mini finds it by its labels. An engine that does not answer for
// one container does not for the others.
func (e *Engine) settle(ctx context.Context) {
	e.mu.Lock()
	owed := e.owed
	e.owed = nil
	e.mu.Unlock()
	end := time.Now().Add(farewell)
	for i, name := range owed {
		left := time.Until(end)
		if left <= 0 || ctx.Err() != nil {
			e.owe(owed[i:]...)
			return
		}
		_, err := e.remove(ctx, name, left)
		if lost, ok := errors.AsType[*env.Error](err); ok && lost.Status == env.DaemonUnavailable {
			e.owe(owed[i:]...)
			return
		}
		if err != nil {
			e.owe(name)
		}
	}
}
