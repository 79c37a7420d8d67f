package governor_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/governor"
	"github.com/minibench/mini/model/retry"
)

// accountant is a server that charges for what it has sent whole, and in which
// so many requests in a hundred go wrong.
type accountant struct {
	faults int // in a hundred

	mu     sync.Mutex
	random *rand.Rand
	tokens int64
	asked  time.Duration // waits that it asked for, all together
	failed int
}

// fault picks what goes wrong, if anything.
func (a *accountant) fault() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.random.IntN(100) >= a.faults {
		return -1
	}
	a.failed++
	return a.random.IntN(9)
}

func (a *accountant) charge() (usage string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 500 + a.random.Int64N(1000)
	a.tokens += n
	return fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":100}`, n-100)
}

func (a *accountant) ask(w http.ResponseWriter, code, seconds int) {
	a.mu.Lock()
	a.asked += time.Duration(seconds) * time.Second
	a.mu.Unlock()
	w.Header().Set("Retry-After", fmt.Sprint(seconds))
	w.WriteHeader(code)
}

// ServeHTTP implements http.Handler.
func (a *accountant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	fault := a.fault()
	time.Sleep(2 * time.Second) // of the bubble's clock
	switch fault {
	case 0:
		a.ask(w, http.StatusTooManyRequests, 2)
	case 1:
		a.ask(w, http.StatusServiceUnavailable, 1)
	case 2:
		w.WriteHeader(http.StatusInternalServerError)
	case 3:
		w.WriteHeader(529)
	case 4:
		panic(http.ErrAbortHandler)
	case 5: // cut
		w.Header().Set("Content-Length", "5000")
		_, _ = io.WriteString(w, `{"choices":[{"message":`)
	case 6:
		_, _ = io.WriteString(w, `{"error":{"message":"upstream","code":502}}`)
	case 7: // charged, and of no use
		_, _ = io.WriteString(w, `{"choices":[],`+a.charge()+`}`)
	case 8: // likewise
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"x"}}],`+a.charge()+`}`)
	default:
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],`+a.charge()+`}`)
	}
}

// ledger counts what the calls took, as an agent does.
type ledger struct {
	mu     sync.Mutex
	tokens int64
	tries  int
}

func (l *ledger) charge(r model.Reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens += r.Usage.Prompt + r.Usage.Completion
	l.tries += r.Tries
}

// 64 workers of 20 steps, with five requests in a hundred going wrong: no call
// fails, the tokens are those of the server's books, and it hardly takes longer.
func TestBooks(t *testing.T) {
	run := func(t *testing.T, faults int) (took time.Duration, a *accountant) {
		synctest.Test(t, func(t *testing.T) {
			a = &accountant{faults: faults, random: rand.New(rand.NewPCG(3, 4))}
			m := retry.New(governor.New(governor.Config{}).Model(serve(t, a)), retry.Policy{})
			l := &ledger{}
			start := time.Now()
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					for range 20 {
						reply, err := m.Query(t.Context(), []model.Message{{Role: model.User, Content: "x"}})
						if err != nil {
							t.Error(err)
						}
						l.charge(reply)
						time.Sleep(time.Second) // the command
					}
				})
			}
			wg.Wait()
			took = time.Since(start)
			if l.tokens != a.tokens || l.tries != 64*20+a.failed {
				t.Errorf("%d tokens of %d requests, the server says %d of %d", l.tokens, l.tries, a.tokens, 64*20+a.failed)
			}
		})
		return took, a
	}
	without, _ := run(t, 0)
	with, a := run(t, 5)
	t.Logf("%v without faults, %v with %d and %v of waits asked for", without, with, a.failed, a.asked)
	if with > without*13/10+a.asked {
		t.Errorf("took %v, %v without faults, %v were asked for", with, without, a.asked)
	}
}
