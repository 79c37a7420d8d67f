package images

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
)

// errNotNow ends a pull ahead of its time that would be in the way.
var errNotNow = errors.New("not now")

// longestPause bounds the wait between two tries, unless the registry asked
// for more.
const longestPause = time.Minute

// maxTries is how often a pull is tried that fails without a limit of the registry's.
const maxTries = 5

// fetch pulls an image, trying again what may pass. A registry that limits
// pulls is waited for as long as Config.Patience lasts. One that is ahead of its
// time gives up with errNotNow where it would have to wait for room.
func (s *Store) fetch(ctx context.Context, n Need, name string, ahead bool) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.Multiplier = s.cfg.FirstPause, longestPause, 2
	start, failed := time.Now(), 0
	for {
		err := s.fetchOnce(ctx, n, name, ahead)
		if err == nil || ctx.Err() != nil {
			return err
		}
		wait := pauses.NextBackOff() // with jitter: others failed at the same moment
		refusal, _ := errors.AsType[*Refusal](err)
		switch full := isFull(err); {
		case refusal != nil && refusal.Limited():
			if asked := refusal.RetryAfter; asked > 0 {
				wait = asked + rand.N(asked/10+time.Millisecond) //nolint:gosec // to be spread, not to be secret
			}
			if time.Since(start)+wait > s.cfg.Patience {
				return limitedFor(n.Ref, time.Since(start), wait, err)
			}
			s.cfg.Tell(Note{
				Kind: Limited, Image: n.Ref, For: n.For, Wait: wait,
				Text: fmt.Sprintf("the registry limits pulls; trying again in %s", rounded(wait)),
			})
		case full && !s.cfg.NoWait && time.Since(start)+wait <= s.cfg.Patience:
			wait = max(wait, s.cfg.Poll)
			if s.makeRoom(ctx, 1) {
				break
			}
			s.cfg.Tell(Note{
				Kind: Room, Image: n.Ref, For: n.For, Wait: wait,
				Text: "the engine's disk is full: it waits until something is removed there (docker system df shows what takes the room)",
			})
		case refusal != nil && refusal.passing() && failed+1 < maxTries:
			failed++
			s.cfg.Tell(Note{
				Kind: Retry, Image: n.Ref, For: n.For, Wait: wait,
				Text: fmt.Sprintf("the pull failed (%s); trying again in %s", text.Clip(text.FirstLine(refusal.Err.Error()), 200), rounded(wait)),
			})
		default:
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		s.cfg.Tell(Note{Kind: Resumed, Image: n.Ref, For: n.For, Text: "trying again"})
	}
}

// isFull says that the engine's disk had no room.
func isFull(err error) bool {
	e, ok := errors.AsType[*env.Error](err)
	return ok && e.Status == env.HostDiskFull
}

func limitedFor(ref string, waited, wait time.Duration, err error) error {
	return &env.Error{
		Status: env.PullFailed, Op: "pull image " + ref, Err: err,
		Hint: fmt.Sprintf("the registry limits pulls and still does after %s (it now wants %s more): log in with docker login, or go on later",
			rounded(waited), rounded(wait)),
	}
}

// fetchOnce asks the registry, finds room and lets the engine pull.
func (s *Store) fetchOnce(ctx context.Context, n Need, name string, ahead bool) error {
	if s.limiter != nil {
		if err := s.limiter.Wait(ctx); err != nil {
			return err
		}
	}
	offer, login, err := s.ask(ctx, n, name)
	if err != nil {
		return err
	}
	bytes := s.lacking(offer)
	if ahead && s.cfg.Budget > 0 && len(offer.Layers) == 0 {
		return errNotNow // nobody knows whether it fits
	}
	if err := s.awaitRoom(ctx, n, bytes, ahead); err != nil {
		return err
	}
	unpledge, err := s.awaitBudget(ctx, n, offer.Bytes(), bytes, ahead)
	if err != nil {
		return err
	}
	defer unpledge()
	if err := s.engine.Pull(ctx, name, n.Platform, login); err != nil {
		return err
	}
	return s.arrived(context.WithoutCancel(ctx), n, name, "") // or nobody would ever remove it
}

// ask finds out what there is, and what the engine needs to get it. What only
// the engine may be able to do (another route, a mirror) is left to the engine.
func (s *Store) ask(ctx context.Context, n Need, name string) (Offer, string, error) {
	if s.cfg.Registry == nil {
		return Offer{}, "", nil
	}
	op := "pull image " + n.Ref
	offer, err := s.cfg.Registry.Ask(ctx, name, s.platform(n))
	login, lerr := s.cfg.Registry.Login(ctx, name) // after the question, which finds out what is out of date
	if lerr != nil && ctx.Err() == nil {
		s.cfg.Tell(Note{Kind: Problem, Image: n.Ref, Text: lerr.Error()})
	}
	refusal, _ := errors.AsType[*Refusal](err)
	switch {
	case ctx.Err() != nil:
		return Offer{}, "", context.Cause(ctx)
	case refusal != nil && refusal.Status == 404:
		return Offer{}, "", &env.Error{
			Status: env.ImageNotFound, Op: op, Err: err,
			Hint: "check the name; a private image needs docker login",
		}
	case refusal != nil && (refusal.Limited() || refusal.Status >= 500):
		return Offer{}, "", &env.Error{Status: env.PullFailed, Op: op, Err: err}
	case err != nil:
		return Offer{}, login, nil //nolint:nilerr // the engine may have a way where mini has none, and says it better
	}
	return offer, login, s.suits(n, offer)
}

// platform is what a need comes to.
func (s *Store) platform(n Need) string {
	if n.Platform != "" {
		return n.Platform
	}
	return s.host.Platform
}

// suits refuses an image that was not made for where it is to run.
func (s *Store) suits(n Need, o Offer) error {
	want := s.platform(n)
	if len(o.Platforms) == 0 || want == "" || matches(o.Platforms, want) {
		return nil
	}
	return &env.Error{
		Status: env.ImageNotFound, Op: "pull image " + n.Ref,
		Err:  fmt.Errorf("it is made for %s, and %s is needed", strings.Join(o.Platforms, ", "), want),
		Hint: "choose another image, or -c environment.platform=" + o.Platforms[0] + " where the engine can run that",
	}
}

// lacking is how much of an offer has to be fetched, in bytes.
func (s *Store) lacking(o Offer) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range o.Layers {
		if !s.layers[l.Content] {
			n += l.Bytes
		}
	}
	return n
}

// arrived remembers an image that was pulled, or made of another one, and holds it
// against the budget.
func (s *Store) arrived(ctx context.Context, n Need, name, of string) error {
	img, here, err := s.find(ctx, name, n.Platform)
	if err == nil && !here && of == "" {
		err = &env.Error{
			Status: env.PullFailed, Op: "pull image " + n.Ref,
			Err: fmt.Errorf("the pull succeeded, but there is no image for platform %q", n.Platform),
		}
	}
	if err != nil || !here {
		return err
	}
	err = s.memory.with(ctx, func(r *record) (bool, error) {
		r.remember(name, img, s.host.Owner, of)
		return true, nil
	})
	if err != nil || s.cfg.Budget == 0 {
		return err
	}
	if img.Size <= s.cfg.Budget {
		return s.fits(ctx, &name)
	}
	err = s.memory.with(ctx, func(r *record) (bool, error) {
		if s.engine.Remove(ctx, name) != nil {
			return false, nil //nolint:nilerr // it is in use, and prune will see to it
		}
		delete(r.Pulled, name)
		return true, nil
	})
	s.forgetLayers()
	return errors.Join(s.tooBig(n.Ref, size(img.Size)), err)
}

func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}
