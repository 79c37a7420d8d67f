package runner_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/retry"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// moody is a provider that fails where it is told to, by instance.
type moody struct {
	fails func(id string) error

	mu    sync.Mutex
	asked int
}

func (m *moody) For(in datasets.Instance) (model.Model, error) { return mood{m, in.ID}, nil }

type mood struct {
	of *moody
	id string
}

func (m mood) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	m.of.mu.Lock()
	m.of.asked++
	m.of.mu.Unlock()
	return talker{m.of.fails(m.id)}.Query(ctx, messages)
}

// A wrong key, or a provider that is gone, costs a few instances and not all;
// what is left waits for the next start.
func TestProviderFailuresStopABatch(t *testing.T) {
	key := &model.Error{Status: model.AuthenticationError, Code: 401, Err: errors.New("401 Unauthorized: no such key"), Hint: "check the key"}
	gone := &model.Error{Status: model.ProviderError, Err: errors.New("10 tries: connection refused")}
	full := &model.Error{Status: model.ContextWindowExceeded, Err: errors.New("too long")}
	over := &model.Error{Status: model.ScriptExhausted}
	always := func(err error) func(string) error { return func(string) error { return err } }
	tests := map[string]struct {
		fails   func(id string) error
		workers int
		most    int
		failed  int // instances at least; with more workers some more may
		halted  bool
	}{
		"wrong key":           {always(key), 1, 5, 5, true},
		"wrong key, many":     {always(key), 8, 5, 5, true},
		"gone":                {always(gone), 1, 3, 3, true},
		"never":               {always(key), 4, 0, 40, false},
		"results of a limit":  {always(full), 4, 2, 0, false},
		"scripts":             {always(over), 4, 2, 40, false},
		"answers in between":  {func(id string) error { return map[bool]error{true: key}[strings.HasSuffix(id, "1")] }, 1, 2, 4, false},
		"none":                {always(nil), 4, 1, 0, false},
		"the sandbox's fault": {always(nil), 4, 1, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := starter(submits)
				if name == "the sandbox's fault" {
					start = func(context.Context, datasets.Instance) (env.Environment, error) {
						return nil, &env.Error{Status: env.ImageNotFound, Op: "pull"}
					}
				}
				b := batch(t, filepath.Join(t.TempDir(), "run"), start)
				m := &moody{fails: test.fails}
				b.Models, b.Workers, b.MaxProviderFailures = m, test.workers, test.most
				var ids []string
				for n := range 40 {
					ids = append(ids, fmt.Sprintf("i%02d", n))
				}
				sum, err := b.Run(t.Context(), rows(ids...))
				if err != nil {
					t.Fatal(err)
				}
				failed := sum.Classes[trajectories.Provider]
				if failed < test.failed || failed > test.failed+test.workers-1 || (sum.Halt != nil) != test.halted {
					t.Errorf("%d instances failed, want %d; halt %v", failed, test.failed, sum.Halt)
				}
				if !test.halted {
					return
				}
				if left := sum.Unstarted + sum.Classes[trajectories.Interrupted]; left+failed != 40 {
					t.Errorf("%+v", sum)
				}
				if text := sum.Halt.Error(); strings.Contains(text, "\n") || !strings.Contains(text, "in a row failed") || name == "wrong key" && !strings.HasSuffix(text, "no such key; check the key") {
					t.Errorf("says %q", text)
				}

				// The provider is well again.
				m.fails = always(nil)
				if sum, err = b.Run(t.Context(), rows(ids...)); err != nil || !sum.Complete() || sum.Halt != nil {
					t.Errorf("started again: %+v, %v", sum, err)
				}
			})
		})
	}
}

// fading answers that many calls, and fails from then on.
type fading struct {
	err         error
	good, asked int
}

func (f *fading) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	if f.asked++; f.asked <= f.good {
		return talker{}.Query(ctx, messages)
	}
	return talker{f.err}.Query(ctx, messages)
}

// forAll is one model for every instance.
type forAll struct{ m model.Model }

func (a forAll) For(datasets.Instance) (model.Model, error) { return a.m, nil }

// A dead address is told within seconds, with one worker too: the first call
// tries for a while, others once, and no instance is tried again. One that was
// alive is given all its tries.
func TestDeadAddressIsToldSoon(t *testing.T) {
	refused := &model.Error{Status: model.ProviderError, Retryable: true, Suspect: true, Err: errors.New("connection refused")}
	noTLS := &model.Error{Status: model.ProviderError, Err: errors.New("no TLS there")}
	busy := &model.Error{Status: model.RateLimited, Retryable: true, Err: errors.New("slow down")}
	const most = 5
	for name, test := range map[string]struct {
		err      error
		answers  int // before it fails
		requests int
		within   time.Duration
	}{
		"nobody there":        {refused, 0, 4 + (most - 1), 11 * time.Second},
		"no TLS":              {noTLS, 0, most, 0},
		"busy":                {busy, 0, 10 * 3 * most, 3 * time.Hour},
		"nobody there, later": {refused, 1, 1 + 10*3*most, 3 * time.Hour},
		"no TLS, later":       {noTLS, 1, 1 + 3*most, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := batch(t, filepath.Join(t.TempDir(), "run"), submits)
				m := &fading{err: test.err, good: test.answers}
				b.Models, b.Workers, b.MaxProviderFailures = forAll{retry.New(m, retry.Policy{})}, 1, most
				start := time.Now()
				sum, err := b.Run(t.Context(), rows("a", "b", "c", "d", "e", "f", "g"))
				took := time.Since(start)
				if err != nil || sum.Halt == nil || m.asked != test.requests || took > test.within {
					t.Errorf("%d requests in %v, want %d; halt %v, %v", m.asked, took, test.requests, sum.Halt, err)
				}
			})
		})
	}
}

var _ runner.Models = (*moody)(nil)
