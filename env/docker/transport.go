package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/docker/docker/api/types"

	"github.com/minibench/mini/env"
)

// requestTimeout limits how long a live engine may take to start its response. It
// is long: listing hundreds of images, or removing large ones, takes minutes.
const requestTimeout = 10 * time.Minute

// timeoutTransport ends requests after requestTimeout, and earlier if the engine's
// heartbeat fails. It does not limit the body of a response: callers must do so for
// streams (events, pulls, waits), which may be silent for long.
type timeoutTransport struct {
	next      *http.Transport
	heartbeat *heartbeat
}

// wrapTransport applies a timeoutTransport to the requests of a transport. The
// *http.Transport itself stays in place, because the Docker client reads its TLS
// settings and dials through it.
func wrapTransport(transport *http.Transport, h *heartbeat) *timeoutTransport {
	t := &timeoutTransport{next: transport.Clone(), heartbeat: h}
	for _, scheme := range []string{"http", "https"} {
		transport.RegisterProtocol(scheme, t)
	}
	return t
}

// RoundTrip implements http.RoundTripper. It does not limit pings, which the
// heartbeat sends with its own timeout.
func (t *timeoutTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/_ping") {
		return t.next.RoundTrip(r)
	}
	ctx, cancel, stop := t.heartbeat.withHeartbeat(r.Context())
	resp, err := t.next.RoundTrip(r.WithContext(ctx))
	stop()
	if err != nil {
		if cause := context.Cause(ctx); isEngineFault(cause) {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	t.heartbeat.markAlive()
	resp.Body = &responseBody{resp.Body, cancel}
	return resp, nil
}

// responseBody cancels the context of its request when it is closed.
type responseBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements io.Closer.
func (b *responseBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// errNoResponse is the error of a request that a live engine does not answer.
var errNoResponse = errors.New("the engine is alive but did not answer a request")

// withHeartbeat returns a context that is cancelled if the engine's heartbeat fails
// or requestTimeout passes before stop is called.
func (h *heartbeat) withHeartbeat(
	ctx context.Context,
) (_ context.Context, cancel context.CancelCauseFunc, stop func()) {
	ctx, cancel = context.WithCancelCause(ctx)
	timer := time.AfterFunc(requestTimeout, func() {
		cancel(&env.Error{
			Status: env.DaemonUnavailable, Op: "wait for the container engine", Hint: hintSilent,
			Err: fmt.Errorf("%w in %s", errNoResponse, requestTimeout),
		})
	})
	stopWatch := h.watch(ctx, cancel)
	return ctx, cancel, func() {
		timer.Stop()
		stopWatch()
	}
}

// isEngineFault reports whether a request was cancelled because of the engine, and
// not by the caller.
func isEngineFault(err error) bool {
	return errors.Is(err, errNoResponse) || errors.Is(err, errNoHeartbeat)
}

// dial makes a request that is upgraded to a connection. The Docker client ignores
// the context of such a request after it has connected. If the engine answers too
// late, dial closes the connection.
func (e *Engine) dial(
	ctx context.Context, do func(context.Context) (types.HijackedResponse, error),
) (types.HijackedResponse, error) {
	type result struct {
		conn types.HijackedResponse
		err  error
	}
	ctx, cancel, stop := e.heartbeat.withHeartbeat(ctx)
	defer cancel(nil)
	defer stop()
	c := make(chan result)
	go func() {
		conn, err := do(ctx)
		select {
		case c <- result{conn, err}:
		case <-ctx.Done():
			if err == nil {
				conn.Close()
			}
		}
	}()
	select {
	case r := <-c:
		return r.conn, r.err
	case <-ctx.Done():
		return types.HijackedResponse{}, context.Cause(ctx)
	}
}
