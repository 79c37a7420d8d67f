package governor_test

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

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/governor"
	"github.com/minibench/mini/model/retry"
)

// The bar: 64 workers of 20 steps against a server that allows 8 at once and
// 1,200 a minute.
func TestSixtyFourWorkers(t *testing.T) {
	tests := map[string]struct {
		config governor.Config
		states bool          // the server says how many a minute it allows
		takes  time.Duration // a reply
		over   int           // refusals, at most
		most   time.Duration // the whole may take
		wire   bool          // over HTTP, not only in step with its refusals
	}{
		// 1280 requests: 1200 of them, a minute's wait, the rest.
		"configured":            {governor.Config{Requests: 1200, Concurrent: 8}, false, 100 * time.Millisecond, 0, 65 * time.Second, true},
		"configured, slow":      {governor.Config{Requests: 1200, Concurrent: 8}, false, 2 * time.Second, 0, 322 * time.Second, false},
		"a minute configured":   {governor.Config{Requests: 1200}, false, 100 * time.Millisecond, 59, 66 * time.Second, false},
		"learned":               {governor.Config{}, true, 100 * time.Millisecond, 59, 66 * time.Second, true},
		"learned, slow":         {governor.Config{}, true, 2 * time.Second, 59, 325 * time.Second, false},
		"learned, slow, silent": {governor.Config{}, false, 2 * time.Second, 59, 325 * time.Second, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &strict{
					atOnce: 8, aMinute: 1200, states: test.states, after: time.Second,
					takes: func(int) time.Duration { return test.takes },
				}
				g := governor.New(test.config)
				var provider model.Model = s
				if test.wire {
					provider = serve(t, s)
				}
				failed, took := work(t, retry.New(g.Model(provider), retry.Policy{}), 64, 20, 0)
				if failed > 0 || s.answered != 64*20 {
					t.Errorf("%d calls failed, %d answered", failed, s.answered)
				}
				if n := s.late(); n > 0 || len(s.over) > test.over {
					t.Errorf("%d requests were too many, %d of them after the first second", len(s.over), n)
				}
				if took > test.most {
					t.Errorf("took %v, want at most %v", took, test.most)
				}
				t.Logf("took %v, %d refused, at most %d at once, %+v", took, len(s.over), s.peak, g.State())
			})
		})
	}
}

// A server that allows 8 at once, and doubles that after half an hour: what was
// learned is tried again so seldom that it hardly refuses one more, and what
// there is at last is found.
func TestMoreRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &strict{atOnce: 8, after: time.Second, takes: func(int) time.Duration { return 2 * time.Second }}
		later := time.AfterFunc(30*time.Minute, func() {
			s.mu.Lock()
			s.atOnce = 16
			s.mu.Unlock()
		})
		defer later.Stop()
		g := governor.New(governor.Config{})
		failed, took := work(t, retry.New(g.Model(s), retry.Policy{}), 64, 400, 0)
		if failed > 0 {
			t.Errorf("%d calls failed", failed)
		}
		early := 0
		for _, at := range s.over {
			if at > time.Second && at < 30*time.Minute {
				early++
			}
		}
		if n := s.late(); early > 1 || n > 6 {
			t.Errorf("%d requests were too many after the first second, %d of them before there was more room", n, early)
		}
		// With 8 at once it takes 106 minutes 40, from half an hour on with 16 it
		// would be 68.
		if most := 75 * time.Minute; took > most || s.peak != 16 {
			t.Errorf("took %v, want at most %v; at most %d at once", took, most, s.peak)
		}
		t.Logf("took %v, %d refused, then %v, %+v", took, len(s.over)-s.late(), s.over[len(s.over)-s.late():], g.State())
	})
}

// A server that says nothing of its limit a minute is run into, and no call
// fails for it, however short the waits it asks for.
func TestUnknownMinute(t *testing.T) {
	for _, after := range []time.Duration{0, 100 * time.Millisecond, time.Second, 5 * time.Second} {
		for _, test := range []struct{ aMinute, workers, steps int }{{10, 8, 5}, {50, 32, 7}, {100, 64, 6}, {1200, 64, 75}} {
			synctest.Test(t, func(t *testing.T) {
				s := &strict{aMinute: test.aMinute, after: after}
				g := governor.New(governor.Config{})
				failed, took := work(t, retry.New(g.Model(s), retry.Policy{}), test.workers, test.steps, time.Second)
				most := 2 * time.Minute * time.Duration(test.workers*test.steps) / time.Duration(test.aMinute)
				if failed > 0 || took > most {
					t.Errorf("%+v: %d failed, took %v, want at most %v", test, failed, took, most)
				}
				t.Logf("%+v: took %v, %d refused of %d", test, took, len(s.over), s.answered+len(s.over))
			})
		}
	}
}

// Tokens are guessed before and corrected after.
func TestTokensAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &strict{tokens: 50_000, after: 5 * time.Second}
		g := governor.New(governor.Config{Tokens: 50_000})
		failed, took := work(t, retry.New(g.Model(s), retry.Policy{}), 16, 10, 0)
		if failed > 0 || len(s.over) > 2 || took > 4*time.Minute {
			t.Errorf("%d failed, %d refused, took %v", failed, len(s.over), took)
		}
		t.Logf("took %v, %d refused", took, len(s.over))
	})
}

// Refusals without a reason do not keep the workers waiting for long.
func TestRandomRefusals(t *testing.T) {
	for _, percent := range []int{1, 5} {
		synctest.Test(t, func(t *testing.T) {
			run := func(refuses func(int) bool) (time.Duration, int) {
				s := &strict{refuses: refuses, takes: func(n int) time.Duration { return time.Duration(1000+n%7*100) * time.Millisecond }}
				g := governor.New(governor.Config{})
				failed, took := work(t, retry.New(g.Model(s), retry.Policy{}), 64, 20, 500*time.Millisecond)
				if failed > 0 {
					t.Errorf("%d failed", failed)
				}
				return took, g.State().Limit
			}
			r := rand.New(rand.NewPCG(1, 2))
			without, _ := run(nil)
			with, limit := run(func(int) bool { return r.IntN(100) < percent })
			t.Logf("%d%%: %v, without %v, limit at the end %d", percent, with, without, limit)
			if with > without*13/10+time.Duration(percent)*time.Second {
				t.Errorf("%d%% refused: %v, without %v", percent, with, without)
			}
		})
	}
}

// A storm that refuses everything passes, and the level is soon what it was.
func TestRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &strict{refuses: func(int) bool { d := time.Since(start); return d > 10*time.Second && d < 20*time.Second }}
		g := governor.New(governor.Config{})
		failed, took := work(t, retry.New(g.Model(s), retry.Policy{}), 32, 60, 0)
		if failed > 0 || took > 120*time.Second {
			t.Errorf("%d failed, took %v", failed, took)
		}
		t.Logf("took %v, %+v", took, g.State())
	})
}

// A run that begins in somebody's bad moment, or with hardly anything left of a
// minute, does not take that for all that there is.
func TestBadBeginning(t *testing.T) {
	for name, left := range map[string]int{"nothing left": 0, "three left": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, n := time.Now(), 0
				s := &strict{after: 10 * time.Second, refuses: func(int) bool {
					n++
					return n > left && time.Since(start) < 30*time.Second
				}}
				g := governor.New(governor.Config{})
				failed, took := work(t, retry.New(g.Model(s), retry.Policy{}), 32, 60, 0)
				if failed > 0 || took > 5*time.Minute {
					t.Errorf("%d failed, took %v", failed, took)
				}
				t.Logf("took %v, %+v", took, g.State())
			})
		})
	}
}

// A pause is everybody's, and no longer than may be.
func TestPause(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{
		40 * time.Second: 40 * time.Second,
		2 * time.Hour:    0,
	} {
		synctest.Test(t, func(t *testing.T) {
			g := governor.New(governor.Config{MaxPause: time.Hour})
			first := true
			s := &strict{refuses: func(int) bool { was := first; first = false; return was }, after: after}
			m := g.Model(s)
			if _, err := m.Query(t.Context(), nil); err == nil {
				t.Fatal("the first request was not refused")
			}
			var paused time.Duration
			ctx := model.WithPause(t.Context(), func() func() {
				begun := time.Now()
				return func() { paused += time.Since(begun) }
			})
			reply, err := m.Query(ctx, nil)
			if err != nil || reply.Waited != want || paused != want {
				t.Errorf("waited %v, paused %v, %v", reply.Waited, paused, err)
			}
		})
	}
}

// First come, first served; who leaves makes room.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []int
		g := governor.New(governor.Config{Concurrent: 1})
		stop := errors.New("stop")
		for i := range 6 {
			ctx := t.Context()
			if i == 3 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, 1500*time.Millisecond, stop)
				defer cancel()
			}
			m := g.Model(asked(func() { order = append(order, i) }))
			go func() {
				reply, err := m.Query(ctx, nil)
				if gone := i == 3; errors.Is(err, stop) != gone || gone && reply.Tries != 0 {
					t.Errorf("call %d: %v", i, err)
				}
			}()
			synctest.Wait()
		}
		if s := g.State(); s.InFlight != 1 || s.Waiting != 5 || s.Limit != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]int{0, 1, 2, 4, 5}, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		if s := g.State(); s.InFlight != 0 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// What is tried again keeps its place in the queue, unless nothing is answered:
// then those who wait take turns in trying, so that none uses up its tries.
func TestOrderOfRetries(t *testing.T) {
	for name, test := range map[string]struct {
		fails error
		want  []int
	}{
		"another failure": {&model.Error{Status: model.ProviderError, Code: 500, Retryable: true, Err: errors.New("x")}, []int{0, 1, 0, 2, 3, 4}},
		"too many":        {&model.Error{Status: model.RateLimited, Code: 429, Retryable: true, Err: errors.New("x")}, []int{0, 1, 2, 3, 4, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var order []int
				g := governor.New(governor.Config{Concurrent: 1})
				var all sync.WaitGroup
				for i := range 5 {
					first := true
					m := retry.New(g.Model(once(func() error {
						order = append(order, i)
						defer func() { first = false }()
						if i == 0 && first {
							return test.fails
						}
						return nil
					})), retry.Policy{})
					all.Go(func() {
						if _, err := m.Query(t.Context(), nil); err != nil {
							t.Error(err)
						}
					})
					time.Sleep(time.Millisecond) // of the bubble's clock
				}
				all.Wait()
				if diff := cmp.Diff(test.want, order); diff != "" {
					t.Errorf("order (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// once is a provider that takes a second.
type once func() error

func (o once) Query(context.Context, []model.Message) (model.Reply, error) {
	err := o()
	time.Sleep(time.Second) // of the bubble's clock
	return model.Reply{Tries: 1}, err
}

// asked is a provider that says when it is asked, and takes a second.
type asked func()

func (a asked) Query(context.Context, []model.Message) (model.Reply, error) {
	a()
	time.Sleep(time.Second) // of the bubble's clock
	return model.Reply{Tries: 1}, nil
}

func TestChangesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []governor.State
		s := &strict{atOnce: 4, after: 3 * time.Second}
		g := governor.New(governor.Config{Changed: func(s governor.State) { told = append(told, s) }})
		work(t, retry.New(g.Model(s), retry.Policy{}), 16, 5, 0)
		if len(told) == 0 || len(told) > 5 || told[len(told)-1].Limit != 4 || told[0].PausedUntil.IsZero() {
			t.Errorf("told %+v", told)
		}
	})
}

// Whoever watches is told why nobody goes on, though nothing else has changed.
func TestFullMinuteIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []governor.State
		var at []time.Duration
		start := time.Now()
		g := governor.New(governor.Config{Requests: 30, Concurrent: 4, Changed: func(s governor.State) {
			told, at = append(told, s), append(at, time.Since(start))
		}})
		work(t, g.Model(&strict{aMinute: 30}), 8, 8, 0)
		// 30 in 8 seconds, then a wait until the first of them is a minute old.
		if len(told) == 0 || len(told) > 3 || at[0] < 6*time.Second || at[0] > 9*time.Second ||
			told[0].FullUntil.Sub(start) != 61*time.Second || told[0].Waiting == 0 {
			t.Errorf("told %+v at %v", told, at)
		}
	})
}

func TestGovernorsAreShared(t *testing.T) {
	var all governor.Governors
	first := all.For("u", "k", governor.Config{Concurrent: 1})
	if all.For("u", "k", governor.Config{}) != first {
		t.Error("one endpoint, two governors")
	}
	if all.For("u", "other", governor.Config{}) == first || all.For("other", "k", governor.Config{}) == first {
		t.Error("two endpoints, one governor")
	}
}

// pending is a provider that answers what is not cancelled before. It reports to
// the trace of net/http as a client does when it sends.
type pending struct{ sends bool }

func (p pending) Query(ctx context.Context, _ []model.Message) (model.Reply, error) {
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

// A cancelled call counts as far as the provider counts it: not at all before it
// was sent, and its prompt afterwards.
func TestCancelledCallIsGivenBack(t *testing.T) {
	prompt := []model.Message{{Content: strings.Repeat("x", 4*96)}} // 100 tokens
	tests := map[string]struct {
		config governor.Config
		sends  bool
		calls  int // that are cancelled
		waits  bool
	}{
		"tokens of what was not sent":   {governor.Config{Tokens: 1000}, false, 100, false},
		"requests of what was not sent": {governor.Config{Requests: 2}, false, 100, false},
		"requests that were sent":       {governor.Config{Requests: 2}, true, 2, true},
		"prompts that were sent":        {governor.Config{Tokens: 1000}, true, 10, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := governor.New(test.config).Model(pending{test.sends})
				for range test.calls {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					if _, err := m.Query(ctx, prompt); !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
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

// The part of a reservation that is for the answer is given back when the call
// was cancelled after it was sent.
func TestCancelledCallKeepsItsPromptAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := governor.New(governor.Config{Tokens: 20_000})
		m := g.Model(pending{true})
		prompt := []model.Message{{Content: strings.Repeat("x", 4*96)}}
		for range 15 { // answers of 900 tokens are expected from now on
			if _, err := m.Query(t.Context(), prompt); err != nil {
				t.Fatal(err)
			}
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

// ending is a provider that ends a context just before it answers.
type ending struct {
	end  *context.CancelFunc
	hold chan struct{}
}

func (e ending) Query(context.Context, []model.Message) (model.Reply, error) {
	<-e.hold
	(*e.end)()
	return model.Reply{}, nil
}

// A call that is cancelled in the moment in which its turn comes counts as little.
func TestCancelledAtItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds = 200
		began := time.Now()
		e := ending{new(context.CancelFunc), make(chan struct{})}
		m := governor.New(governor.Config{Concurrent: 1, Requests: rounds + 1}).Model(e)
		for range rounds {
			second, end := context.WithCancel(t.Context())
			*e.end = end
			var calls sync.WaitGroup
			calls.Go(func() { _, _ = m.Query(t.Context(), nil) })
			synctest.Wait()
			calls.Go(func() {
				if _, err := m.Query(second, nil); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
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
