package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/docker/imagestore"
)

// PullProgress is the progress of a pull.
type PullProgress struct {
	Image string
	// Layers is the number of layers known so far, LayersDone the number of those
	// extracted. Both include layers that the engine already had.
	Layers, LayersDone int
	// Bytes is the number of downloaded bytes, Total the number to download. Both grow
	// as layers become known, and do not include layers that the engine already had.
	Bytes, Total int64
	// Done is true in the last call, with Failed if the pull failed, or Stopped if
	// it was cancelled.
	Done, Failed, Stopped bool
}

// progressInterval is the shortest time between two calls of PullProgress, except for
// calls about a new or finished layer and the last one.
const progressInterval = 200 * time.Millisecond

// errPullStalled cancels a pull about which the engine reports nothing for PullTimeout.
var errPullStalled = errors.New("the pull made no progress for too long")

// pullMessage is one message of the engine's response to a pull.
type pullMessage struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Progress struct {
		Current int64 `json:"current"`
		Total   int64 `json:"total"`
	} `json:"progressDetail"`
	Error string `json:"error"`
}

// pull pulls an image. The total time is not limited. pull fails if the engine reports
// nothing for PullTimeout, or if the engine's heartbeat fails.
func (e *Engine) pull(ctx context.Context, ref, platform, login string) error {
	pullCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stallTimer := time.AfterFunc(e.cfg.PullTimeout, func() { cancel(errPullStalled) })
	defer stallTimer.Stop()

	defer e.heartbeat.watch(ctx, cancel)()
	progress := pullState{image: ref, report: e.cfg.PullProgress, layers: make(map[string]layer)}
	err := e.readPull(pullCtx, ref, image.PullOptions{Platform: platform, RegistryAuth: login}, func(m pullMessage) {
		stallTimer.Reset(e.cfg.PullTimeout)
		e.heartbeat.markAlive()
		progress.add(m)
	})
	progress.finish(err, ctx.Err() != nil)
	if err == nil {
		return nil
	}
	cause := context.Cause(pullCtx)
	if ctx.Err() == nil && isEngineFault(cause) {
		return cause
	}
	if ctx.Err() == nil && errors.Is(cause, errPullStalled) {
		return &env.Error{
			Status: env.PullFailed, Op: "pull image " + ref,
			Hint: fmt.Sprintf("the engine reported nothing for %s; try again, or run docker pull", e.cfg.PullTimeout), Err: errPullStalled,
		}
	}
	return pullError(ctx, ref, err)
}

// readPull pulls an image and calls onMessage for every message of the engine.
func (e *Engine) readPull(ctx context.Context, ref string, o image.PullOptions, onMessage func(pullMessage)) error {
	body, err := e.api.ImagePull(ctx, ref, o)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // the body was read to its end or abandoned
	for dec := json.NewDecoder(body); ; {
		var m pullMessage
		err := dec.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read progress: %w", err)
		case m.Error != "":
			return errors.New(m.Error)
		}
		onMessage(m)
	}
}

// retryableTexts are parts of error messages of transient failures: a registry that
// is unavailable, and transfers that were cut off or corrupted.
var retryableTexts = []string{
	"unexpected http status: 5", "internal server error", "bad gateway", "service unavailable", "gateway timeout",
	"unexpected eof", "connection reset", "broken pipe", "i/o timeout", "handshake timeout", "verification failed",
	"filesystem layer verification", "unknown blob", "unexpected commit digest", "failed size validation",
}

// pullError classifies the error of a pull: an image that does not exist, a limit
// of the registry, or a failed transfer. Engines report most of these only as text. A
// transient error wraps an *imagestore.RegistryError.
func pullError(ctx context.Context, ref string, err error) error {
	text := strings.ToLower(err.Error())
	contains := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	op := "pull image " + ref
	switch {
	case contains("toomanyrequests", "rate limit", "too many requests"):
		return &env.Error{
			Status: env.PullFailed, Op: op, Hint: "the registry limits pulls: log in with docker login, or wait",
			Err: &imagestore.RegistryError{Status: http.StatusTooManyRequests, Err: err},
		}
	case contains("no matching manifest"):
		return &env.Error{Status: env.ImageNotFound, Op: op, Hint: "the image is not made for this platform", Err: err}
	case errdefs.IsNotFound(err),
		contains("manifest unknown", "name unknown", "does not exist", "repository name not known", "not found: manifest", ": not found"):
		return &env.Error{
			Status: env.ImageNotFound, Op: op,
			Hint: "check the name; a private image needs docker login and docker pull by hand", Err: err,
		}
	case errdefs.IsInvalidArgument(err), contains("invalid reference format"):
		return &env.Error{Status: env.ImageNotFound, Op: op, Hint: "check the name: it is not a valid image name", Err: err}
	case !isUnavailable(err) && ctx.Err() == nil && contains(retryableTexts...):
		return &env.Error{Status: env.PullFailed, Op: op, Err: &imagestore.RegistryError{Err: err}}
	}
	return engineError(ctx, env.PullFailed, op, err)
}
