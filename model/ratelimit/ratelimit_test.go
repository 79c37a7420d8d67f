package ratelimit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/ratelimit"
	"github.com/minibench/mini/model/retry"
)

// 64 workers run 20 steps each against a server that allows 8 concurrent requests
// and 1,200 per minute.
func TestManyWorkers(t *testing.T) {
	tests := map[string]struct {
		config  ratelimit.Config
		reports bool          // the server reports its limit per minute
		latency time.Duration // duration of a reply
		maxTime time.Duration // maximum total time
		wire    bool          // requests go over HTTP
	}{
		// 1200 of the 1280 requests fit in the first minute; the others wait for the next.
		"configured":       {ratelimit.Config{RequestsPerMinute: 1200, MaxConcurrent: 8}, false, 100 * time.Millisecond, 65 * time.Second, true},
		"configured, slow": {ratelimit.Config{RequestsPerMinute: 1200, MaxConcurrent: 8}, false, 2 * time.Second, 322 * time.Second, false},
		"learned":          {ratelimit.Config{MaxConcurrent: 8}, true, 100 * time.Millisecond, 66 * time.Second, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &limitedServer{
					maxConcurrent: 8, perMinute: 1200, reportsLimits: test.reports, retryAfter: time.Second,
					latency: func(int) time.Duration { return test.latency },
				}
				limiter := ratelimit.New(test.config)
				var provider model.Model = s
				if test.wire {
					provider = serve(t, s)
				}
				failed, took := work(t, retry.New(limiter.Wrap(provider), retry.Policy{}), 64, 20, 0)
				if failed > 0 || s.answered != 64*20 {
					t.Errorf("%d calls failed, %d answered", failed, s.answered)
				}
				assert.Equal(t, 0, len(s.refusals), "refusals")
				if took > test.maxTime {
					t.Errorf("took %v, want at most %v", took, test.maxTime)
				}
				t.Logf("took %v, %d refused, at most %d at once, %+v", took, len(s.refusals), s.peak, limiter.State())
			})
		})
	}
}

// If the server does not report its limit per minute, requests are refused, but no
// call fails, even if the requested waits are too short.
func TestLearnedLimits(t *testing.T) {
	for _, after := range []time.Duration{0, 100 * time.Millisecond, time.Second, 5 * time.Second} {
		for _, test := range []struct{ perMinute, workers, steps int }{{10, 8, 5}, {50, 32, 7}, {100, 64, 6}, {1200, 64, 75}} {
			synctest.Test(t, func(t *testing.T) {
				s := &limitedServer{perMinute: test.perMinute, retryAfter: after}
				limiter := ratelimit.New(ratelimit.Config{})
				// Many tries: without a limit of its own, a call may be refused often until the limiter knows the server's.
				failed, took := work(t, retry.New(limiter.Wrap(s), retry.Policy{MaxTries: 30}), test.workers, test.steps, time.Second)
				most := 2 * time.Minute * time.Duration(test.workers*test.steps) / time.Duration(test.perMinute)
				if failed > 0 || took > most {
					t.Errorf("%+v: %d failed, took %v, want at most %v", test, failed, took, most)
				}
				t.Logf("%+v: took %v, %d refused of %d", test, took, len(s.refusals), s.answered+len(s.refusals))
			})
		}
	}
}

// Token counts are estimated first and corrected later.
func TestTokensAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &limitedServer{tokens: 50_000, retryAfter: 5 * time.Second}
		limiter := ratelimit.New(ratelimit.Config{TokensPerMinute: 50_000})
		failed, took := work(t, retry.New(limiter.Wrap(s), retry.Policy{}), 16, 10, 0)
		if failed > 0 || len(s.refusals) > 2 || took > 4*time.Minute {
			t.Errorf("%d failed, %d refused, took %v", failed, len(s.refusals), took)
		}
		t.Logf("took %v, %d refused", took, len(s.refusals))
	})
}

// Random refusals slow the workers down only briefly.
func TestRandomRefusals(t *testing.T) {
	for _, percent := range []int{1, 5} {
		synctest.Test(t, func(t *testing.T) {
			run := func(refuse func(int) bool) time.Duration {
				s := &limitedServer{refuse: refuse, latency: func(n int) time.Duration { return time.Duration(1000+n%7*100) * time.Millisecond }}
				limiter := ratelimit.New(ratelimit.Config{})
				failed, took := work(t, retry.New(limiter.Wrap(s), retry.Policy{}), 64, 20, 500*time.Millisecond)
				if failed > 0 {
					t.Errorf("%d failed", failed)
				}
				return took
			}
			r := rand.New(rand.NewPCG(1, 2))
			without := run(nil)
			with := run(func(int) bool { return r.IntN(100) < percent })
			t.Logf("%d%%: %v, without %v", percent, with, without)
			if with > without*13/10+time.Duration(percent)*time.Second {
				t.Errorf("%d%% refused: %v, without %v", percent, with, without)
			}
		})
	}
}

// The limiter does not mistake a temporary overload or a nearly full quota at the start
// of a run for the capacity.
func TestRefusalsAtStart(t *testing.T) {
	for name, left := range map[string]int{"nothing left": 0, "three left": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, n := time.Now(), 0
				s := &limitedServer{retryAfter: 10 * time.Second, refuse: func(int) bool {
					n++
					return n > left && time.Since(start) < 30*time.Second
				}}
				limiter := ratelimit.New(ratelimit.Config{})
				failed, took := work(t, retry.New(limiter.Wrap(s), retry.Policy{}), 32, 60, 0)
				if failed > 0 || took > 5*time.Minute {
					t.Errorf("%d failed, took %v", failed, took)
				}
				t.Logf("took %v, %+v", took, limiter.State())
			})
		})
	}
}

// A pause applies to all requests, up to MaxPause.
func TestPause(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{
		40 * time.Second: 40 * time.Second,
		2 * time.Hour:    0,
	} {
		synctest.Test(t, func(t *testing.T) {
			limiter := ratelimit.New(ratelimit.Config{MaxPause: time.Hour})
			first := true
			s := &limitedServer{refuse: func(int) bool { was := first; first = false; return was }, retryAfter: after}
			m := limiter.Wrap(s)
			if _, err := m.Query(t.Context(), nil); err == nil {
				t.Fatal("the first request was not refused")
			}
			var paused time.Duration
			ctx := model.WithPause(t.Context(), func() func() {
				start := time.Now()
				return func() { paused += time.Since(start) }
			})
			reply, err := m.Query(ctx, nil)
			if err != nil || reply.Waited != want || paused != want {
				t.Errorf("waited %v, paused %v, %v", reply.Waited, paused, err)
			}
		})
	}
}

// A retry keeps its place in the queue. While nothing is answered, the waiting calls
// take turns, so that none runs out of tries.
func TestOrderOfRetries(t *testing.T) {
	for name, test := range map[string]struct {
		fails error
		want  []int
	}{
		"another failure": {&model.Error{Status: model.ProviderError, HTTPStatus: 500, Retryable: true, Err: errors.New("x")}, []int{0, 1, 0, 2, 3, 4}},
		"too many":        {&model.Error{Status: model.RateLimited, HTTPStatus: 429, Retryable: true, Err: errors.New("x")}, []int{0, 1, 2, 3, 4, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var order []int
				limiter := ratelimit.New(ratelimit.Config{MaxConcurrent: 1})
				var wg sync.WaitGroup
				for i := range 5 {
					first := true
					m := retry.New(limiter.Wrap(oneSecondProvider(func() error {
						order = append(order, i)
						defer func() { first = false }()
						if i == 0 && first {
							return test.fails
						}
						return nil
					})), retry.Policy{})
					wg.Go(func() {
						_, err := m.Query(t.Context(), nil)
						assert.NoError(t, err)
					})
					time.Sleep(time.Millisecond) // of the bubble's clock
				}
				wg.Wait()
				assert.Equal(t, test.want, order, "order")
			})
		})
	}
}

// oneSecondProvider is a provider whose requests take one second.
type oneSecondProvider func() error

func (o oneSecondProvider) Query(context.Context, []model.Message) (model.Reply, error) {
	err := o()
	time.Sleep(time.Second) // of the bubble's clock
	return model.Reply{Tries: 1}, err
}

func TestOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states []ratelimit.State
		s := &limitedServer{maxConcurrent: 4, retryAfter: 3 * time.Second}
		limiter := ratelimit.New(ratelimit.Config{OnChange: func(s ratelimit.State) { states = append(states, s) }})
		work(t, retry.New(limiter.Wrap(s), retry.Policy{}), 16, 5, 0)
		if len(states) == 0 || len(states) > 20 || states[0].PausedUntil.IsZero() {
			t.Errorf("states %+v", states)
		}
	})
}

// A full quota is reported even if nothing else changes.
func TestFullQuotaIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states []ratelimit.State
		var at []time.Duration
		start := time.Now()
		limiter := ratelimit.New(ratelimit.Config{RequestsPerMinute: 30, MaxConcurrent: 4, OnChange: func(s ratelimit.State) {
			states, at = append(states, s), append(at, time.Since(start))
		}})
		work(t, limiter.Wrap(&limitedServer{perMinute: 30}), 8, 8, 0)
		// The first 30 requests take 8 seconds. The next waits until the first is a minute old.
		if len(states) == 0 || len(states) > 3 || at[0] < 6*time.Second || at[0] > 9*time.Second ||
			states[0].QuotaFullUntil.Sub(start) != 61*time.Second || states[0].Waiting == 0 {
			t.Errorf("states %+v at %v", states, at)
		}
	})
}

func TestLimitersAreShared(t *testing.T) {
	var wg ratelimit.Limiters
	first := wg.For("u", "k", ratelimit.Config{MaxConcurrent: 1})
	if wg.For("u", "k", ratelimit.Config{}) != first {
		t.Error("one endpoint, two limiters")
	}
	if wg.For("u", "other", ratelimit.Config{}) == first || wg.For("other", "k", ratelimit.Config{}) == first {
		t.Error("two endpoints, one limiter")
	}
}

// pendingProvider is a provider that waits for an answer or for cancellation. Like an HTTP
// client, it reports sent requests to httptrace.
type pendingProvider struct{ sends bool }

func (p pendingProvider) Query(ctx context.Context, _ []model.Message) (model.Reply, error) {
	if trace := httptrace.ContextClientTrace(ctx); p.sends && trace != nil {
		trace.WroteHeaders()
	}
	select {
	case <-ctx.Done():
		return model.Reply{}, context.Cause(ctx)
	case <-time.After(time.Second):
		return model.Reply{Usage: model.Usage{Prompt: 100, Completion: 900}}, nil
	}
}

// A cancelled call counts as it does at the provider: only its prompt, and only if the
// request was sent.
func TestUnsentCallIsRefunded(t *testing.T) {
	prompt := []model.Message{{Content: strings.Repeat("x", 4*96)}} // 100 tokens
	tests := map[string]struct {
		config ratelimit.Config
		sends  bool
		calls  int // number of cancelled calls
		waits  bool
	}{
		"tokens that were not sent":   {ratelimit.Config{TokensPerMinute: 1000}, false, 100, false},
		"requests that were not sent": {ratelimit.Config{RequestsPerMinute: 2}, false, 100, false},
		"requests that were sent":     {ratelimit.Config{RequestsPerMinute: 2}, true, 2, true},
		"prompts that were sent":      {ratelimit.Config{TokensPerMinute: 1000}, true, 10, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := ratelimit.New(test.config).Wrap(pendingProvider{test.sends})
				for range test.calls {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					_, err := m.Query(ctx, prompt)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					cancel()
				}
				r, err := m.Query(t.Context(), prompt)
				if err != nil || (r.Waited > 0) != test.waits {
					t.Errorf("the next call waited %v: %v", r.Waited, err)
				}
			})
		})
	}
}

// If a call is cancelled after it was sent, the tokens reserved for its answer are
// released.
func TestCancelledCallCountsPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := ratelimit.New(ratelimit.Config{TokensPerMinute: 20_000})
		m := limiter.Wrap(pendingProvider{true})
		prompt := []model.Message{{Content: strings.Repeat("x", 4*96)}}
		for range 15 { // raises the expected length of answers
			_, err := m.Query(t.Context(), prompt)
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Minute) // of the bubble's clock
		for range 40 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, _ = m.Query(ctx, prompt)
			cancel()
		}
		if r, err := m.Query(t.Context(), prompt); err != nil || r.Waited > 0 {
			t.Errorf("the next call waited %v: %v", r.Waited, err)
		}
	})
}

// cancellingProvider is a provider that cancels a context just before it answers.
type cancellingProvider struct {
	end  *context.CancelFunc
	hold chan struct{}
}

func (e cancellingProvider) Query(context.Context, []model.Message) (model.Reply, error) {
	<-e.hold
	(*e.end)()
	return model.Reply{}, nil
}

// A call cancelled at the moment when it is granted counts like any unsent call.
func TestCancelledWhenGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds = 200
		began := time.Now()
		e := cancellingProvider{new(context.CancelFunc), make(chan struct{})}
		m := ratelimit.New(ratelimit.Config{MaxConcurrent: 1, RequestsPerMinute: rounds + 1}).Wrap(e)
		for range rounds {
			second, end := context.WithCancel(t.Context())
			*e.end = end
			var calls sync.WaitGroup
			calls.Go(func() { _, _ = m.Query(t.Context(), nil) })
			synctest.Wait()
			calls.Go(func() {
				_, err := m.Query(second, nil)
				assert.ErrorIs(t, err, context.Canceled)
			})
			synctest.Wait()
			e.hold <- struct{}{}
			calls.Wait()
		}
		*e.end = func() {}
		close(e.hold)
		if _, err := m.Query(t.Context(), nil); err != nil || time.Since(began) > 0 {
			t.Errorf("calls waited %v: %v", time.Since(began), err)
		}
	})
}
