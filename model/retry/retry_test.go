package retry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/ratelimit"
	"github.com/minibench/mini/model/retry"
	"github.com/minibench/mini/model/scripted"
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
			require.NoError(t, err)
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
		assert.Equal(t, 8, len(p.requests), "requests, want 1 and 7")
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

var price = model.Price{Input: 2, Cached: 0.5, Output: 8}

// serve starts an in-memory server with a script and returns a function to stop it.
func serve(t *testing.T, yaml string, c fake.Config) (*fake.Server, *fake.MemoryListener, func()) {
	t.Helper()
	var err error
	if c.Script, err = scripted.Parse("replies.yaml", []byte(yaml)); err != nil {
		t.Fatal(err)
	}
	c.Price = price
	s, err := fake.New(c)
	require.NoError(t, err)
	l := fake.NewMemoryListener()
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return s, l, sync.OnceFunc(func() {
		assert.NoError(t, errors.Join(s.Close(), <-done))
	})
}

// connect returns a model for an API, with an agent's tool.
func connect(t *testing.T, l *fake.MemoryListener, api string, stream bool) model.Model {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: l.DialContext, DisableKeepAlives: true}}
	tools := []model.ToolDefinition{{Name: "bash", Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)}}
	var m interface {
		model.Model
		io.Closer
	}
	var err error
	if api == "anthropic" {
		m, err = anthropic.New(anthropic.Config{Name: "m", BaseURL: "http://fake", APIKey: marker, Stream: stream, Price: price, Tools: tools, HTTPClient: client})
	} else {
		m, err = openai.New(openai.Config{Name: "m", BaseURL: "http://fake/v1", APIKey: marker, Stream: stream, Price: price, Tools: tools, HTTPClient: client})
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	return m
}

const marker = "sk-marker-0123456789"

// deltaModel sends deltas, and then fails or answers.
type deltaModel struct {
	deltas   [][]model.Delta // of each request; the last request succeeds
	requests int
}

func (m *deltaModel) Query(ctx context.Context, _ []model.Message) (model.Reply, error) {
	deltas := m.deltas[m.requests]
	m.requests++
	for _, d := range deltas {
		if listener := model.DeltaListener(ctx); listener != nil {
			listener(d)
		}
	}
	if m.requests < len(m.deltas) {
		return model.Reply{Tries: 1}, down
	}
	return model.Reply{Tries: 1}, nil
}

// TestRestart checks that a failed request voids its deltas before the wait.
func TestRestart(t *testing.T) {
	text := func(s string) model.Delta { return model.Delta{Text: s} }
	tests := map[string]struct {
		deltas [][]model.Delta
		want   string
	}{
		"at once":                  {[][]model.Delta{{text("a"), text("b")}}, "a b"},
		"after half a reply":       {[][]model.Delta{{text("a")}, {text("a"), text("b")}}, "a ! a b"},
		"after a thought":          {[][]model.Delta{{{Reasoning: "t"}}, {text("b")}}, "(t) ! b"},
		"after nothing":            {[][]model.Delta{nil, {text("b")}}, "b"},
		"twice, the second silent": {[][]model.Delta{{text("a")}, nil, {text("b")}}, "a ! b"},
		"after its own":            {[][]model.Delta{{text("a"), {Restart: true}}, {text("b")}}, "a ! b"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				start := time.Now()
				ctx := model.WithDeltas(t.Context(), func(d model.Delta) {
					switch {
					case d.Restart:
						got = append(got, "!")
						if time.Since(start) > 0 && len(got) == 2 {
							t.Error("the deltas were voided only after the wait")
						}
					case d.Reasoning != "":
						got = append(got, fmt.Sprintf("(%s)", d.Reasoning))
					default:
						got = append(got, d.Text)
					}
				})
				for _, ctx := range []context.Context{t.Context(), ctx} {
					m := retry.New(&deltaModel{deltas: test.deltas}, retry.Policy{})
					start = time.Now()
					_, err := m.Query(ctx, nil)
					require.NoError(t, err)
				}
				assert.Equal(t, test.want, strings.Join(got, " "))
			})
		})
	}
}

const (
	workers = 64
	steps   = 10
)

// latency is the duration of each reply and of each error.
const latency = 5 * time.Second

// TestBatchWithFaults runs 64 workers of 10 steps each, half of them streamed, with
// faults in 5% of the requests. Every step is answered, tokens and cost equal the
// server's statistics, and it takes at most 1.3 times as long as without faults, plus
// the requested waits.
//
// The worker with the most faults determines the duration. Three failures that each take
// as long as a reply use up the 30%, so a seed with that many failures gets more time.
func TestBatchWithFaults(t *testing.T) {
	seeds := []uint64{3, 9}
	for _, api := range []string{"openai", "anthropic"} {
		good, _ := batch(t, api, nil)
		for _, seed := range seeds {
			t.Run(fmt.Sprint(api, " ", seed), func(t *testing.T) {
				d, b := batch(t, api, &fake.Plan{Seed: seed, Rules: []fake.Rule{{Probability: 0.05, Faults: fake.TransientFaults()}}})
				var waits time.Duration
				for _, r := range b.Requests {
					waits += r.RetryAfter
				}
				n := 0
				for _, times := range b.Faults {
					n += times
				}
				if len(b.Faults) < len(fake.TransientFaults())-1 || n < workers*steps/30 {
					t.Errorf("only the faults %v occurred", b.Faults)
				}
				most := good.took*13/10 + waits
				if d.unluckiest >= 3 {
					most = good.took + time.Duration(d.unluckiest)*(latency+500*time.Millisecond) + waits
				}
				if d.took > most {
					t.Errorf("took %v, want at most %v: %v without faults, and requested waits of %v", d.took, most, good.took, waits)
				}
				if d.queued > waits {
					t.Errorf("a worker waited %v for the limiter, want at most the requested waits of %v", d.queued, waits)
				}
				t.Logf("%v (%+.1f %% of the bound), %v without faults; %d faults, at most %d of a worker, requested waits of %v", d.took,
					100*(float64(d.took)/float64(good.took*13/10+waits)-1), good.took, n, d.unluckiest, waits)
			})
		}
	}
}

// batchResult is the result of a batch, in the time of its bubble.
type batchResult struct {
	took       time.Duration
	queued     time.Duration // longest wait of a worker for the limiter
	unluckiest int           // most failed requests of a worker
}

// batch runs a batch and returns its result and the server's statistics.
func batch(t *testing.T, api string, plan *fake.Plan) (d batchResult, b fake.Stats) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		script := "[" + strings.Repeat(fmt.Sprintf(`{content: "some words of a reply", latency: %v}, `, latency.Seconds()), steps) + "]"
		s, l, stop := serve(t, script, fake.Config{Plan: plan})
		defer stop()
		limiter := ratelimit.New(ratelimit.Config{})
		var mu sync.Mutex
		var sum model.Usage
		var cost model.Cost
		models := map[bool]model.Model{}
		for _, stream := range []bool{false, true} {
			models[stream] = retry.New(limiter.Wrap(connect(t, l, api, stream)), retry.Policy{})
		}
		start := time.Now()
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				var queued time.Duration
				failed := 0
				history := []model.Message{{Role: model.User, Content: fmt.Sprint("worker ", i)}}
				for step := range steps {
					reply, err := models[i%2 == 0].Query(t.Context(), history)
					if err != nil {
						t.Errorf("worker %d, step %d: %v", i, step+1, err)
						return
					}
					for _, request := range reply.Requests {
						queued += request.Queued
					}
					failed += reply.Tries - 1
					mu.Lock()
					sum, cost = sum.Add(reply.Usage), cost+reply.Cost
					mu.Unlock()
					history = append(history, reply.Message, model.Message{Role: model.User, Content: "go on"})
				}
				mu.Lock()
				defer mu.Unlock()
				d.queued, d.unluckiest = max(d.queued, queued), max(d.unluckiest, failed)
			})
		}
		wg.Wait()
		d.took = time.Since(start)
		stop()
		b = s.Stats()
		if b.Charged.Replies != workers*steps || b.Charged.Usage != sum || b.Abandoned.Replies != 0 {
			t.Errorf("charged %v\ncounted %+v", b.Charged, sum)
		}
		if diff := math.Abs(float64(b.Charged.Cost - cost)); diff > 1e-9 || cost == 0 {
			t.Errorf("charged %v, counted %v", b.Charged.Cost, cost)
		}
	})
	return d, b
}
