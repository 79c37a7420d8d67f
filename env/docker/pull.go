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
	"github.com/minibench/mini/env/docker/images"
)

// PullProgress is how far a pull has come.
type PullProgress struct {
	Image string
	// Layers are those known so far, LayersDone those that are in place,
	// those that were there before among them.
	Layers, LayersDone int
	// Bytes have been downloaded of Total; both grow while layers are
	// discovered, and layers that were there before do not count.
	Bytes, Total int64
	// Done is set in the last call, Failed where the pull did not succeed, and
	// Stopped where it was given up.
	Done, Failed, Stopped bool
}

// progressEvery bounds how often PullProgress is called.
const progressEvery = 200 * time.Millisecond

// errSilent is the cause of a pull's end after too long a silence.
var errSilent = errors.New("the pull made no progress for too long")

// pullMessage is one line of the engine's report on a pull.
type pullMessage struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Progress struct {
		Current int64 `json:"current"`
		Total   int64 `json:"total"`
	} `json:"progressDetail"`
	Error string `json:"error"`
}

// pull fetches an image. It may take as long as it likes, but not be silent for
// PullTimeout, and the engine, which may wait for a registry, not at all.
func (e *Engine) pull(ctx context.Context, ref, platform, login string) error {
	pulling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(e.cfg.PullTimeout, func() { cancel(errSilent) })
	defer silence.Stop()

	defer e.pulse.watch(ctx, cancel)()
	progress := pullState{image: ref, report: e.cfg.PullProgress, layers: make(map[string]layer)}
	err := e.followPull(pulling, ref, image.PullOptions{Platform: platform, RegistryAuth: login}, func(m pullMessage) {
		silence.Reset(e.cfg.PullTimeout)
		e.pulse.note()
		progress.add(m)
	})
	progress.finish(err, ctx.Err() != nil)
	if err == nil {
		return nil
	}
	lost := context.Cause(pulling)
	if ctx.Err() == nil && isEngines(lost) {
		return lost
	}
	if ctx.Err() == nil && errors.Is(lost, errSilent) {
		return &env.Error{
			Status: env.PullFailed, Op: "pull image " + ref,
			Hint: fmt.Sprintf("nothing was heard for %s; try again, or pull it by hand", e.cfg.PullTimeout), Err: errSilent,
		}
	}
	return pullFailure(ctx, ref, err)
}

func (e *Engine) followPull(ctx context.Context, ref string, o image.PullOptions, each func(pullMessage)) error {
	body, err := e.api.ImagePull(ctx, ref, o)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was read to its end or given up
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
		each(m)
	}
}

// passing are words of engines about what may go well the next time: a registry
// that is out of order, and bytes that were lost on the way.
var passing = []string{
	"unexpected http status: 5", "internal server error", "bad gateway", "service unavailable", "gateway timeout",
	"unexpected eof", "connection reset", "broken pipe", "i/o timeout", "handshake timeout", "verification failed",
	"filesystem layer verification", "unknown blob", "unexpected commit digest", "failed size validation",
}

// pullFailure tells an image that does not exist from one that did not arrive.
// Registries and engines have only texts for it. Beneath what may pass is an
// *images.Refusal.
func pullFailure(ctx context.Context, ref string, err error) error {
	text := strings.ToLower(err.Error())
	says := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	op := "pull image " + ref
	switch {
	case says("toomanyrequests", "rate limit", "too many requests"):
		return &env.Error{
			Status: env.PullFailed, Op: op, Hint: "the registry limits pulls: log in with docker login, or wait",
			Err: &images.Refusal{Status: http.StatusTooManyRequests, Err: err},
		}
	case says("no matching manifest"):
		return &env.Error{Status: env.ImageNotFound, Op: op, Hint: "the image is not made for this platform", Err: err}
	case errdefs.IsNotFound(err),
		says("manifest unknown", "name unknown", "does not exist", "repository name not known", "not found: manifest", ": not found"):
		return &env.Error{
			Status: env.ImageNotFound, Op: op,
			Hint: "check the name; a private image needs docker login and docker pull by hand", Err: err,
		}
	case errdefs.IsInvalidArgument(err), says("invalid reference format"):
		return &env.Error{Status: env.ImageNotFound, Op: op, Hint: "this is not the name of an image", Err: err}
	case !unavailable(err) && ctx.Err() == nil && says(passing...):
		return &env.Error{Status: env.PullFailed, Op: op, Err: &images.Refusal{Err: err}}
	}
	return failure(ctx, env.PullFailed, op, err)
}
