package retry_test

import (
	"fmt"
	"math"
	"os"
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

// latency is that of each reply, and of what the server answers instead.
const latency = 5 * time.Second

// TestBatchOfABadDay is 64 workers of 20 steps each, half of them streamed, with
// faults in 5 % of the requests: every step is answered, tokens and cost are
// those of the server's books, and it takes at most 1.3 times as long as on a
// good day, and the waits that were asked for.
//
// The unluckiest of the workers decides how long it takes. Six of his requests
// that fail at their end are the whole 30 %, whatever is done about them; that
// happens to one of 64 in about one draw of thirteen, and seven in one of
// seventy. Such a draw may take what his failures lasted, and a moment each.
func TestBatchOfABadDay(t *testing.T) {
	seeds := []uint64{3, 9, 19, 25} // which were slow once, or draw six
	if os.Getenv("MINI_TEST_LONG") == "1" {
		for seeds = nil; len(seeds) < 32; {
			seeds = append(seeds, uint64(len(seeds)))
		}
	}
	for _, api := range []string{"openai", "anthropic"} {
		good, _ := batch(t, api, nil)
		for _, seed := range seeds {
			t.Run(fmt.Sprint(api, " ", seed), func(t *testing.T) {
				d, b := batch(t, api, &fake.Plan{Seed: seed, Rules: []fake.Rule{{Probability: 0.05, Faults: fake.Usual()}}})
				var waits time.Duration
				for _, r := range b.Requests {
					waits += r.RetryAfter
				}
				n := 0
				for _, times := range b.Faults {
					n += times
				}
				if len(b.Faults) < len(fake.Usual())-1 || n < workers*steps/30 {
					t.Errorf("only %v went wrong", b.Faults)
				}
				most := good.took*13/10 + waits
				if d.unluckiest > 5 {
					most = good.took + time.Duration(d.unluckiest)*(latency+500*time.Millisecond) + waits
				}
				if d.took > most {
					t.Errorf("took %v, and %v on a good day; at most %v with the %v that were asked for", d.took, good.took, most, waits)
				}
				if d.queued > waits {
					t.Errorf("a worker stood in line for %v, where %v were asked for and there is room for all", d.queued, waits)
				}
				t.Logf("%v (%+.1f %% of the bound), and %v on a good day; %d faults, at most %d of a worker, %v asked for", d.took,
					100*(float64(d.took)/float64(good.took*13/10+waits)-1), good.took, n, d.unluckiest, waits)
			})
		}
	}
}

// day is how a batch went, by the clock of its bubble.
type day struct {
	took       time.Duration
	queued     time.Duration // the longest that a worker waited for its turns
	unluckiest int           // the most requests of a worker that failed
}

// batch returns how it went, and the books.
func batch(t *testing.T, api string, plan *fake.Plan) (d day, b fake.Books) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		script := "[" + strings.Repeat(fmt.Sprintf(`{content: "some words of a reply", latency: %v}, `, latency.Seconds()), steps) + "]"
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
				var queued time.Duration
				failed := 0
				history := []model.Message{{Role: model.User, Content: fmt.Sprint("worker ", i)}}
				for step := range steps {
					reply, err := models[i%2 == 0].Query(t.Context(), history)
					if err != nil {
						t.Errorf("worker %d, step %d: %v", i, step+1, err)
						return
					}
					for _, a := range reply.Attempts {
						queued += a.Queued
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
		all.Wait()
		d.took = time.Since(start)
		stop()
		b = s.Books()
		if b.Charged.Replies != workers*steps || b.Charged.Usage != sum || b.Abandoned.Replies != 0 {
			t.Errorf("charged %v\ncounted %+v", b.Charged, sum)
		}
		if diff := math.Abs(float64(b.Charged.Cost - cost)); diff > 1e-9 || cost == 0 {
			t.Errorf("charged %v, counted %v", b.Charged.Cost, cost)
		}
	})
	return d, b
}
