package retry_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/ratelimit"
	"github.com/minibench/mini/model/retry"
)

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
