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
	"github.com/minibench/mini/model/governor"
	"github.com/minibench/mini/model/retry"
)

const (
	workers = 64
	steps   = 20
)

// TestBatchOfABadDay is 64 workers of 20 steps each, half of them streamed, with
// faults in 5 % of the requests: every step is answered, tokens and cost are
// those of the server's books, and it takes little longer than on a good day.
func TestBatchOfABadDay(t *testing.T) {
	for _, api := range []string{"openai", "anthropic"} {
		t.Run(api, func(t *testing.T) {
			good, _ := batch(t, api, nil)
			// The unluckiest of the workers decides, so that this is about one draw of
			// faults: with the seeds 1 to 6 he came to 124 to 133 s where the bound was
			// 132 to 139, and with 0 (six faults in twenty steps) once beyond it.
			took, b := batch(t, api, &fake.Plan{Seed: 1, Rules: []fake.Rule{{Probability: 0.05, Faults: fake.Usual()}}})
			var waits time.Duration
			for _, r := range b.Requests {
				waits += r.RetryAfter
			}
			n := 0
			for _, times := range b.Faults {
				n += times
			}
			if len(b.Faults) != len(fake.Usual()) || n < workers*steps/25 {
				t.Errorf("only %v went wrong", b.Faults)
			}
			if most := good*13/10 + waits; took > most {
				t.Errorf("took %v, and %v on a good day; at most %v with the %v that were asked for", took, good, most, waits)
			}
			t.Logf("%v, and %v on a good day; %d faults, %v asked for", took, good, n, waits)
		})
	}
}

// batch returns how long it took by the clock of its bubble, and the books.
func batch(t *testing.T, api string, plan *fake.Plan) (took time.Duration, b fake.Books) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		script := "[" + strings.Repeat(`{content: "some words of a reply", latency: 5}, `, steps) + "]"
		s, l, stop := serve(t, script, fake.Config{Plan: plan})
		defer stop()
		g := governor.New(governor.Config{})
		var mu sync.Mutex
		var sum model.Usage
		var cost model.Cost
		models := map[bool]model.Model{}
		for _, stream := range []bool{false, true} {
			models[stream] = retry.New(g.Model(connect(t, l, api, stream)), retry.Policy{})
		}
		start := time.Now()
		var all sync.WaitGroup
		for i := range workers {
			all.Go(func() {
				history := []model.Message{{Role: model.User, Content: fmt.Sprint("worker ", i)}}
				for step := range steps {
					reply, err := models[i%2 == 0].Query(t.Context(), history)
					if err != nil {
						t.Errorf("worker %d, step %d: %v", i, step+1, err)
						return
					}
					mu.Lock()
					sum, cost = sum.Add(reply.Usage), cost+reply.Cost
					mu.Unlock()
					history = append(history, reply.Message, model.Message{Role: model.User, Content: "go on"})
				}
			})
		}
		all.Wait()
		took = time.Since(start)
		stop()
		b = s.Books()
		if b.Charged.Replies != workers*steps || b.Charged.Usage != sum || b.Abandoned.Replies != 0 {
			t.Errorf("charged %v\ncounted %+v", b.Charged, sum)
		}
		if diff := math.Abs(float64(b.Charged.Cost - cost)); diff > 1e-9 || cost == 0 {
			t.Errorf("charged %v, counted %v", b.Charged.Cost, cost)
		}
	})
	return took, b
}
