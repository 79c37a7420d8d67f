package retry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// provider returns these errors in order; the last one repeats. nil is a success.
type provider struct {
	errs     []error
	latency  time.Duration
	requests []time.Duration // times of requests, since the start
	start    time.Time
}

func (p *provider) Query(ctx context.Context, _ []model.Message) (model.Reply, error) {
	err := p.errs[min(len(p.requests), len(p.errs)-1)]
	p.requests = append(p.requests, time.Since(p.start))
	select {
	case <-time.After(p.latency):
	case <-ctx.Done():
		return model.Reply{Tries: 1}, context.Cause(ctx)
	}
	return model.Reply{Tries: 1, Usage: model.Usage{Prompt: 7}, Cost: 0.25}, err
}

func busy(after time.Duration) error {
	return &model.Error{Status: model.RateLimited, HTTPStatus: 429, Retryable: true, RetryAfter: after, Err: errors.New("busy")}
}

var (
	down        = &model.Error{Status: model.ProviderError, HTTPStatus: 502, Retryable: true, Err: errors.New("bad gateway")}
	denied      = &model.Error{Status: model.AuthenticationError, HTTPStatus: 401, Err: errors.New("no such key")}
	unreachable = &model.Error{Status: model.ProviderError, Retryable: true, MaybeMisconfigured: true, Err: errors.New("connection refused")}
	noStreaming = &model.Error{Status: model.BadRequest, HTTPStatus: 400, Retryable: true, RetryNow: true, Err: errors.New("no streams")}
	silent      = &model.Error{Status: model.ProviderError, Retryable: true}
)

func TestPolicy(t *testing.T) {
	sec := func(n ...float64) []float64 { return n }
	tests := map[string]struct {
		policy retry.Policy
		errs   []error
		gaps   []float64 // seconds between requests; random waits vary by half
		exact  bool
		text   string // of the error; empty for a success
	}{
		"at once":            {retry.Policy{}, []error{nil}, nil, true, ""},
		"as asked":           {retry.Policy{}, []error{busy(90 * time.Second), busy(time.Millisecond), nil}, sec(90, 0.75), false, ""},
		"asked too little":   {retry.Policy{}, []error{busy(time.Millisecond), busy(time.Second), busy(time.Millisecond), nil}, sec(0.001, 1, 2.25), false, ""},
		"growing":            {retry.Policy{}, []error{down, down, down, down, down, nil}, sec(0.25, 0.75, 2.25, 6.75, 20.25), false, ""},
		"grows after asked":  {retry.Policy{}, []error{down, busy(2 * time.Second), down, nil}, sec(0.25, 2, 2.25), false, ""},
		"another request":    {retry.Policy{}, []error{noStreaming, nil}, sec(0), true, ""},
		"tries used up":      {retry.Policy{MaxTries: 3}, []error{down}, sec(0.25, 0.75), false, "3 tries: bad gateway"},
		"one try":            {retry.Policy{MaxTries: 1}, []error{down}, nil, true, "bad gateway"},
		"of no use":          {retry.Policy{}, []error{denied}, nil, true, "no such key"},
		"then of no use":     {retry.Policy{}, []error{busy(time.Second), denied}, sec(1), true, "2 tries: no such key"},
		"asks too much":      {retry.Policy{}, []error{busy(24 * time.Hour)}, nil, true, "the next try is due in 24h0m0s, and 15m0s of model.max_wait are left"},
		"asks too often":     {retry.Policy{MaxWait: 25 * time.Second}, []error{busy(10 * time.Second)}, sec(10, 10), true, "3 tries: busy; the next try is due in 10s"},
		"exactly the time":   {retry.Policy{MaxWait: 20 * time.Second}, []error{busy(10 * time.Second), busy(10 * time.Second), nil}, sec(10, 10), true, ""},
		"never answered":     {retry.Policy{}, []error{unreachable}, sec(0.25, 0.75, 2.25), false, "4 tries: connection refused"},
		"says nothing":       {retry.Policy{MaxTries: 1}, []error{silent}, nil, true, "unknown cause"},
		"not the provider's": {retry.Policy{}, []error{errors.New("defect")}, nil, true, "defect"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &provider{errs: test.errs, start: time.Now()}
				reply, err := retry.New(p, test.policy).Query(t.Context(), nil)
				if text := fmt.Sprint(err); (err == nil) != (test.text == "") || !strings.Contains(text, test.text) {
					t.Errorf("error %v, want %q", err, test.text)
				}
				n := len(p.requests)
				if n != len(test.gaps)+1 || reply.Tries != n || len(reply.Requests) != n {
					t.Fatalf("%d requests, %d reported, want %d", n, reply.Tries, len(test.gaps)+1)
				}
				for i, want := range test.gaps {
					got := (p.requests[i+1] - p.requests[i] - p.latency).Seconds()
					slack := 0.51 * want
					if test.exact {
						slack = 1e-9
					}
					if got < want-slack || got > want+slack || reply.Requests[i].Waited.Seconds() != got {
						t.Errorf("wait %d was %v and reported as %v, want %v", i+1, got, reply.Requests[i].Waited, want)
					}
				}
				if reply.Usage.Prompt != int64(7*n) || reply.Cost != model.Cost(0.25*float64(n)) {
					t.Errorf("usage %+v, cost %v of %d requests", reply.Usage, reply.Cost, n)
				}
			})
		})
	}
}

// The duration of a failed request counts as waiting, unless the provider is
// overloaded.
func TestLongErrors(t *testing.T) {
	overloaded := &model.Error{Status: model.ProviderError, HTTPStatus: 529, Retryable: true, Err: errors.New("overloaded")}
	for _, test := range []struct {
		errs        *model.Error
		least, most time.Duration // the fourth wait
	}{
		{down, time.Millisecond, 10125*time.Millisecond - 5*time.Second},
		{overloaded, 3375 * time.Millisecond, 10125 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &provider{errs: []error{test.errs, test.errs, test.errs, test.errs, nil}, start: time.Now(), latency: 5 * time.Second}
			reply, err := retry.New(p, retry.Policy{}).Query(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			a := reply.Requests
			if w := a[0].Waited; w < 125*time.Millisecond || w > 375*time.Millisecond {
				t.Errorf("first waited %v", w)
			}
			if same := a[1].Waited == a[0].Waited && a[2].Waited == a[0].Waited; same != (test.errs == down) {
				t.Errorf("%v: then waited %v and %v", test.errs, a[1].Waited, a[2].Waited)
			}
			if w := a[3].Waited; w < test.least || w > test.most {
				t.Errorf("%v: at last waited %v, want %v to %v", test.errs, w, test.least, test.most)
			}
		})
	}
}

// After a first success, calls to an unreachable server get all their tries.
func TestMisconfigurationRuledOutByAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{errs: []error{nil, unreachable}, start: time.Now()}
		m := retry.New(p, retry.Policy{MaxTries: 7})
		for range 2 {
			_, _ = m.Query(t.Context(), nil)
		}
		if len(p.requests) != 8 {
			t.Errorf("%d requests, want 1 and 7", len(p.requests))
		}
	})
}

// After a call gave up on a server that never answered, later calls try once, until
// one succeeds.
func TestUnreachableAddressFailsFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{errs: []error{unreachable, unreachable, unreachable, unreachable, unreachable, unreachable, nil, unreachable}, start: time.Now()}
		m := retry.New(p, retry.Policy{MaxTries: 7})
		for i, want := range []int{4, 5, 6, 7, 14} {
			_, _ = m.Query(t.Context(), nil)
			if len(p.requests) != want {
				t.Errorf("%d requests after call %d, want %d", len(p.requests), i+1, want)
			}
		}
	})
}

// Retries are reported before their waits.
func TestReportsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		ctx := model.WithRetries(t.Context(), func(r model.Retry) {
			reported = append(reported, fmt.Sprintf("%v, try %d of %d after %v", r.Err, r.Try, r.MaxTries, r.Wait))
		})
		m := retry.New(&provider{errs: []error{busy(3 * time.Second), nil}, start: time.Now()}, retry.Policy{MaxTries: 3})
		if _, err := m.Query(ctx, nil); err != nil || len(reported) != 1 || !strings.HasSuffix(reported[0], "busy, try 2 of 3 after 3s") {
			t.Errorf("%v, %q", err, reported)
		}
	})
}

func TestCancel(t *testing.T) {
	stop := errors.New("stop")
	for name, after := range map[string]time.Duration{"while it waits": 3 * time.Second, "in a request": 61 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), after, stop)
				defer cancel()
				p := &provider{errs: []error{busy(time.Minute)}, start: time.Now(), latency: 2 * time.Second}
				reply, err := retry.New(p, retry.Policy{}).Query(ctx, nil)
				if _, wrapped := errors.AsType[*model.Error](err); !errors.Is(err, stop) || wrapped || !strings.Contains(err.Error(), "busy") {
					t.Errorf("error %v, want the cause, and the failure as text", err)
				}
				if took := time.Since(p.start); took != after || reply.Tries != len(p.requests) {
					t.Errorf("took %v, %d tries reported, %d made", took, reply.Tries, len(p.requests))
				}
			})
		})
	}
}

// Waits pause the attempt's clock; requests do not.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paused time.Duration
		ctx := model.WithPause(t.Context(), func() func() {
			start := time.Now()
			return func() { paused += time.Since(start) }
		})
		p := &provider{errs: []error{busy(time.Minute), busy(30 * time.Second), nil}, start: time.Now(), latency: 5 * time.Second}
		reply, err := retry.New(p, retry.Policy{}).Query(ctx, nil)
		if err != nil || paused != 90*time.Second || reply.Waited != paused {
			t.Errorf("paused for %v, waited %v, %v", paused, reply.Waited, err)
		}
	})
}
