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

// tenTokens is a script with two replies of ten tokens; the second is slow.
const tenTokens = `
- {content: x, usage: {prompt_tokens: 8, completion_tokens: 2}}
- {content: y, usage: {prompt_tokens: 8, completion_tokens: 2}, latency: 10}
`

// TestLimits sends requests at given times of a fake clock and checks the
// responses.
func TestLimits(t *testing.T) {
	type request struct {
		at    time.Duration
		want  int    // status
		retry string // Retry-After
	}
	tests := map[string]struct {
		limits fake.Limits
		sent   []request
	}{
		"requests": {fake.Limits{RequestsPerMinute: 2}, []request{
			{0, 200, ""},
			{10 * time.Second, 200, ""},
			{20 * time.Second, 429, "40"},
			{59500 * time.Millisecond, 429, "1"},
			{60 * time.Second, 200, ""}, // the first has left the window
			{61 * time.Second, 429, "9"},
			{70 * time.Second, 200, ""},
		}},
		"tokens": {fake.Limits{TokensPerMinute: 25}, []request{
			{0, 200, ""},
			{5 * time.Second, 200, ""},
			{6 * time.Second, 429, "54"}, // 20 and 10 are more than 25
			{60 * time.Second, 200, ""},
		}},
		"never": {fake.Limits{TokensPerMinute: 9}, []request{{0, 429, ""}, {time.Hour, 429, ""}}},
	}
	for name, test := range tests {
		for _, api := range []string{"openai", "anthropic"} {
			t.Run(name+" "+api, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, l, stop := serve(t, fake.Config{Script: script(t, tenTokens), Limits: test.limits})
					defer stop()
					start, refused := time.Now(), 0
					for _, r := range test.sent {
						time.Sleep(time.Until(start.Add(r.at))) // of the bubble's clock
						status, header, answer := post(t, client(l), api, simple(api, "hello", 0))
						if status != r.want || header.Get("Retry-After") != r.retry {
							t.Errorf("after %v: %d, Retry-After %q, want %d and %q\n%s", r.at, status, header.Get("Retry-After"), r.want, r.retry, answer)
						}
						if status == http.StatusTooManyRequests {
							refused++
							if !strings.Contains(answer, "rate_limit_e") {
								t.Errorf("answer %s", answer)
							}
						}
					}
					if stats := s.Stats(); stats.Limited != refused || stats.Charged.Replies != len(test.sent)-refused {
						t.Errorf("statistics: %d refused, %d charged", stats.Limited, stats.Charged.Replies)
					}
				})
			})
		}
	}
}

// Of three concurrent requests with a limit of one, the server refuses two.
func TestConcurrentLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, stop := serve(t, fake.Config{Script: script(t, tenTokens), Limits: fake.Limits{Concurrent: 1}})
		defer stop()
		var wg sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for range 3 {
			wg.Go(func() {
				status, _, _ := post(t, client(l), "openai", simple("openai", "hello", 1))
				mu.Lock()
				statuses[status]++
				mu.Unlock()
			})
		}
		wg.Wait()
		if b := s.Stats(); statuses[200] != 1 || statuses[429] != 2 || b.Requests[0].Elapsed < 10*time.Second && b.Requests[1].Elapsed == 0 {
			t.Errorf("statuses %v", statuses)
		}
		if status, _, _ := post(t, client(l), "openai", simple("openai", "hello", 0)); status != 200 {
			t.Errorf("afterwards: %d", status)
		}
	})
}

// Response headers report the remaining quota in the provider's form.
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
