package imagestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
)

// errPrefetchSkipped ends a prefetch that would have to wait for space, or that might
// have to because the size of the image is unknown.
var errPrefetchSkipped = errors.New("prefetch skipped")

// maxBackoff limits the wait between two attempts, before jitter, unless the registry
// asks for another wait.
const maxBackoff = time.Minute

// maxAttempts limits the attempts of a pull that fails for another transient reason than
// a rate limit or a full disk.
const maxAttempts = 5

// pullWithRetry pulls an image and retries transient errors. It retries after a rate
// limit or with a full disk for up to Config.MaxRetryTime. A prefetch that would have to
// wait for space before the pull fails with errPrefetchSkipped.
func (s *Store) pullWithRetry(ctx context.Context, req Request, name string, prefetch bool) error {
	backoffs := backoff.NewExponentialBackOff()
	backoffs.InitialInterval, backoffs.MaxInterval, backoffs.Multiplier = s.cfg.InitialBackoff, maxBackoff, 2
	start, failures := time.Now(), 0
	for {
		err := s.pullOnce(ctx, req, name, prefetch)
		if err == nil || ctx.Err() != nil {
			return err
		}
		wait := backoffs.NextBackOff() // with jitter: others failed at the same moment
		regErr, _ := errors.AsType[*RegistryError](err)
		switch diskFull := isDiskFull(err); {
		case regErr != nil && regErr.IsRateLimited():
			if asked := regErr.RetryAfter; asked > 0 {
				wait = asked + rand.N(asked/10+time.Millisecond) //nolint:gosec // jitter, not a secret
			}
			if time.Since(start)+wait > s.cfg.MaxRetryTime {
				return rateLimitError(req.Ref, time.Since(start), wait, err)
			}
			s.cfg.Notify(Event{
				Kind: RateLimited, Image: req.Ref, Requester: req.Requester, Wait: wait,
				Text: fmt.Sprintf("the registry limits pulls; trying again in %s", round(wait)),
			})
		case diskFull && !s.cfg.NoWait && time.Since(start)+wait <= s.cfg.MaxRetryTime:
			wait = max(wait, s.cfg.PollInterval)
			if s.freeSpace(ctx, 1) {
				break
			}
			s.cfg.Notify(Event{
				Kind: WaitingForSpace, Image: req.Ref, Requester: req.Requester, Wait: wait,
				Text: "the engine's disk is full; waiting until space is freed (docker system df shows what uses it)",
			})
		case regErr != nil && regErr.isTransient() && failures+1 < maxAttempts:
			failures++
			s.cfg.Notify(Event{
				Kind: Retry, Image: req.Ref, Requester: req.Requester, Wait: wait,
				Text: fmt.Sprintf("the pull failed (%s); trying again in %s", text.Clip(text.FirstLine(regErr.Err.Error()), 200), round(wait)),
			})
		default:
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		s.cfg.Notify(Event{Kind: Resumed, Image: req.Ref, Requester: req.Requester, Text: "trying again"})
	}
}

// isDiskFull reports whether the engine's disk had no space.
func isDiskFull(err error) bool {
	e, ok := errors.AsType[*env.Error](err)
	return ok && e.Status == env.HostDiskFull
}

func rateLimitError(ref string, waited, wait time.Duration, err error) error {
	return &env.Error{
		Status: env.PullFailed, Op: "pull image " + ref, Err: err,
		Hint: fmt.Sprintf("the registry limits pulls and still does after %s (it now wants %s more): log in with docker login, or go on later",
			round(waited), round(wait)),
	}
}

// pullOnce asks the registry, waits for space and lets the engine pull.
func (s *Store) pullOnce(ctx context.Context, req Request, name string, prefetch bool) error {
	if s.limiter != nil {
		if err := s.limiter.Wait(ctx); err != nil {
			return err
		}
	}
	remote, login, err := s.inspectRemote(ctx, req, name)
	if err != nil {
		return err
	}
	bytes := s.missingBytes(remote)
	if prefetch && s.cfg.Budget > 0 && len(remote.Layers) == 0 {
		return errPrefetchSkipped // the size is unknown
	}
	if err := s.waitForDisk(ctx, req, bytes, prefetch); err != nil {
		return err
	}
	if err := s.waitForBudget(ctx, req, remote.DownloadSize(), bytes, prefetch); err != nil {
		return err
	}
	if err := s.engine.Pull(ctx, name, req.Platform, login); err != nil {
		return err
	}
	return s.recordImage(context.WithoutCancel(ctx), req, name, "") // an image that is not recorded is never removed
}

// inspectRemote asks the registry about an image and returns its description with the
// credentials for the engine. A missing image, a rate limit, a server error or a wrong
// platform is an error. After other failures the engine may still succeed, for example
// through a mirror, so inspectRemote returns no error.
func (s *Store) inspectRemote(ctx context.Context, req Request, name string) (RemoteImage, string, error) {
	if s.cfg.Registry == nil {
		return RemoteImage{}, "", nil
	}
	op := "pull image " + req.Ref
	remote, err := s.cfg.Registry.Inspect(ctx, name, s.platform(req))
	login, authErr := s.cfg.Registry.RegistryAuth(ctx, name) // after Inspect, which renews expired credentials
	if authErr != nil && ctx.Err() == nil {
		s.cfg.Notify(Event{Kind: Warning, Image: req.Ref, Text: authErr.Error()})
	}
	regErr, _ := errors.AsType[*RegistryError](err)
	switch {
	case ctx.Err() != nil:
		return RemoteImage{}, "", context.Cause(ctx)
	case regErr != nil && regErr.Status == 404:
		return RemoteImage{}, "", &env.Error{
			Status: env.ImageNotFound, Op: op, Err: err,
			Hint: "check the name; a private image needs docker login",
		}
	case regErr != nil && (regErr.IsRateLimited() || regErr.Status >= 500):
		return RemoteImage{}, "", &env.Error{Status: env.PullFailed, Op: op, Err: err}
	case err != nil:
		return RemoteImage{}, login, nil //nolint:nilerr // the engine may succeed, or return a better error
	}
	return remote, login, s.checkPlatform(req, remote)
}

// platform returns the platform of a request, or the engine's own.
func (s *Store) platform(req Request) string {
	if req.Platform != "" {
		return req.Platform
	}
	return s.host.Platform
}

// checkPlatform returns an error if the image is not available for the platform.
func (s *Store) checkPlatform(req Request, remote RemoteImage) error {
	want := s.platform(req)
	if len(remote.Platforms) == 0 || want == "" || matches(remote.Platforms, want) {
		return nil
	}
	return &env.Error{
		Status: env.ImageNotFound, Op: "pull image " + req.Ref,
		Err:  fmt.Errorf("it is made for %s, and %s is needed", strings.Join(remote.Platforms, ", "), want),
		Hint: "choose another image, or -c environment.platform=" + remote.Platforms[0] + " if the engine can run that",
	}
}

// missingBytes returns the compressed size, in bytes, of the layers that are not known to
// be present.
func (s *Store) missingBytes(remote RemoteImage) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range remote.Layers {
		if !s.layers[l.DiffID] {
			n += l.Bytes
		}
	}
	return n
}

// recordImage records an image that was pulled, or built from another one, and
// applies the budget.
func (s *Store) recordImage(ctx context.Context, req Request, name, base string) error {
	img, present, err := s.find(ctx, name, req.Platform)
	if err == nil && !present && base == "" {
		err = &env.Error{
			Status: env.PullFailed, Op: "pull image " + req.Ref,
			Err: fmt.Errorf("the pull succeeded, but there is no image for platform %q", req.Platform),
		}
	}
	if err != nil || !present {
		return err
	}
	err = s.stateFile.update(ctx, func(st *state) (bool, error) {
		st.add(name, img, s.host.Owner, base)
		return true, nil
	})
	if err != nil || s.cfg.Budget == 0 {
		return err
	}
	if img.Size <= s.cfg.Budget {
		return s.enforceBudget(ctx)
	}
	err = s.stateFile.update(ctx, func(st *state) (bool, error) {
		if s.engine.Remove(ctx, name) != nil {
			return false, nil //nolint:nilerr // it is in use; prune removes it later
		}
		delete(st.Pulled, name)
		return true, nil
	})
	s.clearLayers()
	return errors.Join(s.tooLargeError(req.Ref, unit.Size(img.Size)), err)
}

func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}
