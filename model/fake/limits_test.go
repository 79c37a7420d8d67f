package fake_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/model/fake"
)

// ten tokens a reply, whatever is asked; the second takes its time.
const tenTokens = `
- {content: x, usage: {prompt_tokens: 8, completion_tokens: 2}}
- {content: y, usage: {prompt_tokens: 8, completion_tokens: 2}, latency: 10}
`

// TestLimits follows a client that asks at certain times through what it is
// answered, by a clock that nobody waits for.
func TestLimits(t *testing.T) {
	type ask struct {
		at    time.Duration
		want  int    // status
		retry string // Retry-After
	}
	tests := map[string]struct {
		limits fake.Limits
		asks   []ask
	}{
		"requests": {fake.Limits{RequestsPerMinute: 2}, []ask{
			{0, 200, ""},
			{10 * time.Second, 200, ""},
			{20 * time.Second, 429, "40"},
			{59500 * time.Millisecond, 429, "1"},
			{60 * time.Second, 200, ""}, // the first has left the window
			{61 * time.Second, 429, "9"},
			{70 * time.Second, 200, ""},
		}},
		"tokens": {fake.Limits{TokensPerMinute: 25}, []ask{
			{0, 200, ""},
			{5 * time.Second, 200, ""},
			{6 * time.Second, 429, "54"}, // 20 and 10 are more than 25
			{60 * time.Second, 200, ""},
		}},
		"never": {fake.Limits{TokensPerMinute: 9}, []ask{{0, 429, ""}, {time.Hour, 429, ""}}},
	}
	for name, test := range tests {
		for _, api := range []string{"openai", "anthropic"} {
			t.Run(name+" "+api, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, l, stop := serve(t, fake.Config{Script: script(t, tenTokens), Limits: test.limits})
					defer stop()
					start, refused := time.Now(), 0
					for _, a := range test.asks {
						time.Sleep(time.Until(start.Add(a.at))) // of the bubble
						status, header, answer := post(t, client(l), api, simple(api, "hello", 0))
						if status != a.want || header.Get("Retry-After") != a.retry {
							t.Errorf("after %v: %d, Retry-After %q, want %d and %q\n%s", a.at, status, header.Get("Retry-After"), a.want, a.retry, answer)
						}
						if status == http.StatusTooManyRequests {
							refused++
							if !strings.Contains(answer, "rate_limit_e") {
								t.Errorf("answer %s", answer)
							}
						}
					}
					if b := s.Books(); b.Limited != refused || b.Charged.Replies != len(test.asks)-refused {
						t.Errorf("books: %d refused, %d charged", b.Limited, b.Charged.Replies)
					}
				})
			})
		}
	}
}

// Three at a time are two too many for one; the books have what was tried.
func TestConcurrentLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, stop := serve(t, fake.Config{Script: script(t, tenTokens), Limits: fake.Limits{Concurrent: 1}})
		defer stop()
		var all sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for range 3 {
			all.Go(func() {
				status, _, _ := post(t, client(l), "openai", simple("openai", "hello", 1))
				mu.Lock()
				statuses[status]++
				mu.Unlock()
			})
		}
		all.Wait()
		if b := s.Books(); statuses[200] != 1 || statuses[429] != 2 || b.Requests[0].Elapsed < 10*time.Second && b.Requests[1].Elapsed == 0 {
			t.Errorf("statuses %v", statuses)
		}
		if status, _, _ := post(t, client(l), "openai", simple("openai", "hello", 0)); status != 200 {
			t.Errorf("afterwards: %d", status)
		}
	})
}

// One worker that sends a request on each answer is never two at a time,
// however quick it is.
func TestNoOverlap(t *testing.T) {
	for _, stream := range []bool{false, true} {
		s, l, stop := serve(t, fake.Config{Limits: fake.Limits{Concurrent: 1}})
		c := &http.Client{Transport: &http.Transport{DialContext: l.DialContext}}
		for i := range 200 {
			if status, _, answer := post(t, c, "openai", body("openai", stream)); status != 200 {
				t.Fatalf("request %d: %d\n%s", i+1, status, answer)
			}
		}
		c.CloseIdleConnections()
		stop()
		if b := s.Books(); b.Concurrency != 1 || b.Charged.Replies != 200 {
			t.Errorf("at most %d at a time, %d charged", b.Concurrency, b.Charged.Replies)
		}
	}
}

func TestBusiest(t *testing.T) {
	start := time.Now()
	var b fake.Books
	for i, s := range []float64{0, 0.1, 0.2, 5, 5.5, 6, 6.4, 70} {
		r := fake.Request{Time: start.Add(time.Duration(s * float64(time.Second)))}
		r.Usage.Prompt, r.AtOnce = 10, 9-i
		b.Requests = append(b.Requests, r)
	}
	for skip, want := range map[time.Duration]int{0: 9, time.Second: 6, 5 * time.Second: 6, time.Minute: 2, time.Hour: 0} {
		if got := b.AtOnce(skip); got != want {
			t.Errorf("at once after %v: %d, want %d", skip, got, want)
		}
	}
	for _, test := range []struct {
		window, after time.Duration
		requests      int
		tokens        int64
	}{
		{time.Second, 0, 3, 30},
		{time.Second, time.Second, 3, 30}, // 5.5, 6 and 6.4
		{2 * time.Second, time.Second, 4, 40},
		{time.Minute, 0, 7, 70},
		{time.Minute, time.Minute, 1, 10},
		{time.Minute, time.Hour, 0, 0},
	} {
		if n, tokens := b.Busiest(test.window, test.after); n != test.requests || tokens != test.tokens {
			t.Errorf("%v after %v: %d requests, %d tokens; want %d, %d", test.window, test.after, n, tokens, test.requests, test.tokens)
		}
	}
}

// Headers say how much is left, each provider in its own.
func TestLimitHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, stop := serve(t, fake.Config{Script: script(t, tenTokens), Limits: fake.Limits{RequestsPerMinute: 5, TokensPerMinute: 100}})
		defer stop()
		_, h, _ := post(t, client(l), "openai", simple("openai", "hello", 0))
		got := fmt.Sprint(h.Get("X-Ratelimit-Remaining-Requests"), " ", h.Get("X-Ratelimit-Remaining-Tokens"), " ", h.Get("X-Ratelimit-Reset-Requests"))
		if got != "4 90 1m0s" {
			t.Error(got)
		}
		_, h, _ = post(t, client(l), "anthropic", simple("anthropic", "hello", 0))
		got = fmt.Sprint(h.Get("Anthropic-Ratelimit-Requests-Remaining"), " ", h.Get("Anthropic-Ratelimit-Tokens-Remaining"), " ", h.Get("Anthropic-Ratelimit-Tokens-Reset"))
		if got != "3 80 2000-01-01T00:01:00Z" {
			t.Error(got)
		}
	})
}
