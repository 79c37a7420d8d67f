package fake

import (
	"errors"
	"fmt"
	"time"
)

// Limits are what a client may ask for. 0 is no limit.
type Limits struct {
	// RequestsPerMinute and TokensPerMinute bound what is accepted in any sixty
	// seconds; what is refused does not count. Tokens are those of the prompt
	// and of the reply.
	RequestsPerMinute int   `yaml:"requests_per_minute"`
	TokensPerMinute   int64 `yaml:"tokens_per_minute"`
	// Concurrent bounds the requests that are being answered.
	Concurrent int `yaml:"concurrent"`
}

func (l Limits) validate() error {
	if l.RequestsPerMinute < 0 || l.TokensPerMinute < 0 || l.Concurrent < 0 {
		return errors.New("limits cannot be negative")
	}
	return nil
}

const (
	window = time.Minute
	// concurrentWait is what a client over the limit of requests at a time is
	// asked to wait, for nobody knows when one of them ends.
	concurrentWait = time.Second
)

// accepted is a request within the window.
type accepted struct {
	at     time.Time
	tokens int64
}

// limiter enforces Limits; its owner locks it.
type limiter struct {
	Limits
	recent []accepted
	tokens int64 // of recent
	atOnce int
}

func newLimiter(l Limits) *limiter { return &limiter{Limits: l} }

// over is why a request is refused.
type over struct {
	limit string
	wait  time.Duration // 0 where waiting does not help
	text  string
}

// admit takes a request, whose owner calls leave when it has ended, or says why
// not.
func (l *limiter) admit(now time.Time, tokens int64) *over {
	for len(l.recent) > 0 && now.Sub(l.recent[0].at) >= window {
		l.tokens -= l.recent[0].tokens
		l.recent = l.recent[1:]
	}
	if l.Concurrent > 0 && l.atOnce >= l.Concurrent {
		return &over{"concurrent", concurrentWait, fmt.Sprintf("on concurrent requests: Limit %d, Used %d, Requested 1", l.Concurrent, l.atOnce)}
	}
	if l.RequestsPerMinute > 0 && len(l.recent) >= l.RequestsPerMinute {
		return &over{"requests", l.leaves(now, len(l.recent)-l.RequestsPerMinute), fmt.Sprintf(
			"on requests per min (RPM): Limit %d, Used %d, Requested 1", l.RequestsPerMinute, len(l.recent))}
	}
	if l.TokensPerMinute > 0 && l.tokens+tokens > l.TokensPerMinute {
		o := &over{"tokens", 0, fmt.Sprintf(
			"on tokens per min (TPM): Limit %d, Used %d, Requested %d", l.TokensPerMinute, l.tokens, tokens)}
		if tokens <= l.TokensPerMinute {
			left := l.tokens
			for i, r := range l.recent {
				if left -= r.tokens; left+tokens <= l.TokensPerMinute {
					o.wait = l.leaves(now, i)
					break
				}
			}
		}
		return o
	}
	l.recent = append(l.recent, accepted{now, tokens})
	l.tokens += tokens
	l.atOnce++
	return nil
}

// leaves is how long it takes until the i-th of the recent is so no more.
func (l *limiter) leaves(now time.Time, i int) time.Duration {
	return l.recent[i].at.Add(window).Sub(now)
}

func (l *limiter) leave() { l.atOnce-- }

// standing is what the headers of an answer say of the limits.
type standing struct {
	Limits
	requests, tokens int64         // that remain
	reset            time.Duration // until all are there again
}

func (l *limiter) standing(now time.Time) standing {
	s := standing{Limits: l.Limits}
	s.requests = max(0, int64(l.RequestsPerMinute)-int64(len(l.recent)))
	s.tokens = max(0, l.TokensPerMinute-l.tokens)
	if n := len(l.recent); n > 0 {
		s.reset = max(0, l.leaves(now, n-1))
	}
	return s
}
