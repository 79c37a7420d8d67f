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

// failingModel is a provider that fails for some instances.
type failingModel struct {
	fails func(id string) error

	mu    sync.Mutex
	asked int
}

func (m *failingModel) For(in datasets.Instance) (model.Model, error) {
	return failingProvider{m, in.ID}, nil
}

type failingProvider struct {
	of *failingModel
	id string
}

func (m failingProvider) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	m.of.mu.Lock()
	m.of.asked++
	m.of.mu.Unlock()
	return constantModel{m.of.fails(m.id)}.Query(ctx, messages)
}

// A wrong key or a failed provider stops the batch after a few instances; the others
// stay pending.
func TestProviderFailuresStopBatch(t *testing.T) {
	key := &model.Error{Status: model.AuthenticationError, HTTPStatus: 401, Err: errors.New("401 Unauthorized: no such key"), Hint: "check the key"}
	gone := &model.Error{Status: model.ProviderError, Err: errors.New("10 tries: connection refused")}
	full := &model.Error{Status: model.ContextWindowExceeded, PromptTokens: 9000, ContextTokens: 8192, Err: errors.New("too long")}
	setting := &model.Error{Status: model.ContextWindowExceeded, PromptTokens: 2000, ContextTokens: 8192, Err: errors.New("max_tokens is too large")}
	over := &model.Error{Status: model.ScriptExhausted}
	always := func(err error) func(string) error { return func(string) error { return err } }
	tests := map[string]struct {
		fails   func(id string) error
		workers int
		most    int
		failed  int // minimum number of failed instances; several workers may add more
		halted  bool
	}{
		"wrong key":           {always(key), 1, 5, 5, true},
		"wrong key, many":     {always(key), 8, 5, 5, true},
		"gone":                {always(gone), 1, 3, 3, true},
		"never":               {always(key), 4, 0, 40, false},
		"results of a limit":  {always(full), 4, 2, 0, false},
		"a wrong setting":     {always(setting), 1, 5, 5, true},
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
				m := &failingModel{fails: test.fails}
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

				// The provider works again.
				m.fails = always(nil)
				if sum, err = b.Run(t.Context(), rows(ids...)); err != nil || !sum.Complete() || sum.Halt != nil {
					t.Errorf("started again: %+v, %v", sum, err)
				}
			})
		})
	}
}

// exhaustedModel succeeds for a number of calls and then fails.
type exhaustedModel struct {
	err         error
	good, asked int
}

func (f *exhaustedModel) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	if f.asked++; f.asked <= f.good {
		return constantModel{}.Query(ctx, messages)
	}
	return constantModel{f.err}.Query(ctx, messages)
}

// forAll returns the same model for all instances.
type forAll struct{ m model.Model }

func (a forAll) For(datasets.Instance) (model.Model, error) { return a.m, nil }

// An unreachable address fails within seconds, even with one worker: only the first call is
// retried, and no instance is. After a first success, all retries are made.
func TestUnreachableAddressIsReportedSoon(t *testing.T) {
	refused := &model.Error{Status: model.ProviderError, Retryable: true, MaybeMisconfigured: true, Err: errors.New("connection refused")}
	noTLS := &model.Error{Status: model.ProviderError, Err: errors.New("no TLS there")}
	busy := &model.Error{Status: model.RateLimited, Retryable: true, Err: errors.New("slow down")}
	const most = 5
	for name, test := range map[string]struct {
		err      error
		answers  int // number of successful calls before the failures
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
				m := &exhaustedModel{err: test.err, good: test.answers}
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

var _ runner.Models = (*failingModel)(nil)
