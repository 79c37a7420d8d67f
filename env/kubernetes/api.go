//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/minibench/mini/env"
)

// Times of requests.
const (
	requestTimeout = 30 * time.Second
	// apiTimeout is how long an unavailable API server is waited for.
	apiTimeout = 10 * time.Minute
	// loginTimeout is how long rejected credentials are tried again: a login may just
	// be renewed.
	loginTimeout           = 30 * time.Second
	firstWait, longestWait = 200 * time.Millisecond, 10 * time.Second
)

// Hints used by more than one error.
const (
	hintCluster = "check with kubectl get pods; mini doctor --kubernetes shows more"
	hintLogin   = "log in to the cluster again, as for kubectl"
	hintRights  = "mini kubernetes rbac prints the rights that mini needs"
	hintMemory  = "increase environment.memory, or reduce environment.shm_size and environment.tmpfs"
)

// retry calls request until it succeeds, fails for good, or the API server has been
// unavailable for apiTimeout. Its error is one of apiError.
func (c *Cluster) retry(ctx context.Context, op string, request func(context.Context) error) error {
	start, wait := time.Now(), firstWait
	for {
		limited, cancel := context.WithTimeout(ctx, requestTimeout)
		err := request(limited)
		cancel()
		limit := apiTimeout
		if apierrors.IsUnauthorized(err) {
			limit = loginTimeout
		}
		if err == nil || ctx.Err() != nil || !isTemporary(err) || time.Since(start) > limit {
			return c.apiError(ctx, env.StartFailed, op, err)
		}
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			wait = max(wait, time.Duration(seconds)*time.Second)
		}
		if !sleep(ctx, wait) {
			return context.Cause(ctx)
		}
		wait = min(2*wait, longestWait)
	}
}

// isTemporary reports whether a request may succeed later without a change by the user.
func isTemporary(err error) bool {
	if errors.As(err, new(*env.ConfigError)) {
		return false
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok { // no response
		return true
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err) || status.ErrStatus.Code >= 500
}

// apiError converts an error of the API server to an *env.Error. If ctx has ended, it
// returns the cause of ctx. It returns nil and *env.ConfigError values unchanged.
func (c *Cluster) apiError(ctx context.Context, defaultStatus env.Status, op string, err error) error {
	if err == nil || errors.As(err, new(*env.ConfigError)) || errors.As(err, new(*env.Error)) {
		return err
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	e := &env.Error{Status: defaultStatus, Op: op + " in namespace " + c.namespace, Err: err}
	switch {
	case apierrors.IsUnauthorized(err):
		e.Status, e.Hint = env.DaemonUnavailable, hintLogin
	case apierrors.IsForbidden(err):
		e.Hint = hintRights
	case isTemporary(err):
		e.Status, e.Hint = env.DaemonUnavailable, hintCluster
	}
	return e
}

// sleep waits for d. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// shorten limits a text of the cluster for a message.
func shorten(s string) string {
	const limit = 400
	if len(s) > limit {
		return fmt.Sprintf("%s…", s[:limit])
	}
	return s
}
