package fake

import (
	"errors"
	"fmt"
	"time"
)

// Limits bound the requests of clients. 0 means no limit.
type Limits struct {
	// RequestsPerMinute and TokensPerMinute bound the accepted requests in any
	// 60 seconds. Tokens are those of the prompt and the reply.
	RequestsPerMinute int   `yaml:"requests_per_minute"`
	TokensPerMinute   int64 `yaml:"tokens_per_minute"`
	// Concurrent bounds the requests in progress.
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
	// concurrentWait is the Retry-After of a request over the concurrency limit:
	// a guess, since it is unknown when another request ends.
	concurrentWait = time.Second
)

// accepted is a request within the window.
type accepted struct {
	at     time.Time
	tokens int64
}

// limiter enforces Limits. The caller holds a lock.
type limiter struct {
	Limits
	recent     []accepted
	tokens     int64 // sum over recent
	inProgress int
}

func newLimiter(l Limits) *limiter { return &limiter{Limits: l} }

// limitExceeded is the reason to refuse a request.
type limitExceeded struct {
	limit string        // requests, tokens or concurrent
	wait  time.Duration // 0 if waiting does not help
	text  string        // for the error message
}

// admit counts a request, or returns the reason to refuse it. The caller calls release
// when a counted request ends.
func (l *limiter) admit(now time.Time, tokens int64) *limitExceeded {
	for len(l.recent) > 0 && now.Sub(l.recent[0].at) >= window {
		l.tokens -= l.recent[0].tokens
		l.recent = l.recent[1:]
	}
	if l.Concurrent > 0 && l.inProgress >= l.Concurrent {
		return &limitExceeded{"concurrent", concurrentWait, fmt.Sprintf("on concurrent requests: Limit %d, Used %d, Requested 1", l.Concurrent, l.inProgress)}
	}
	if l.RequestsPerMinute > 0 && len(l.recent) >= l.RequestsPerMinute {
		return &limitExceeded{"requests", l.untilExpiry(now, len(l.recent)-l.RequestsPerMinute), fmt.Sprintf(
			"on requests per min (RPM): Limit %d, Used %d, Requested 1", l.RequestsPerMinute, len(l.recent))}
	}
	if l.TokensPerMinute > 0 && l.tokens+tokens > l.TokensPerMinute {
		exceeded := &limitExceeded{"tokens", 0, fmt.Sprintf(
			"on tokens per min (TPM): Limit %d, Used %d, Requested %d", l.TokensPerMinute, l.tokens, tokens)}
		if tokens <= l.TokensPerMinute {
			left := l.tokens
			for i, r := range l.recent {
				if left -= r.tokens; left+tokens <= l.TokensPerMinute {
					exceeded.wait = l.untilExpiry(now, i)
					break
				}
			}
		}
		return exceeded
	}
	l.recent = append(l.recent, accepted{now, tokens})
	l.tokens += tokens
	l.inProgress++
	return nil
}

// untilExpiry returns how long until the i-th recent request leaves the window.
func (l *limiter) untilExpiry(now time.Time, i int) time.Duration {
	return l.recent[i].at.Add(window).Sub(now)
}

func (l *limiter) release() { l.inProgress-- }

// limitStatus is the state of the limits reported in response headers.
type limitStatus struct {
	Limits
	requests, tokens int64         // remaining
	untilReset       time.Duration // until all are available again
}

func (l *limiter) status(now time.Time) limitStatus {
	s := limitStatus{Limits: l.Limits}
	s.requests = max(0, int64(l.RequestsPerMinute)-int64(len(l.recent)))
	s.tokens = max(0, l.TokensPerMinute-l.tokens)
	if n := len(l.recent); n > 0 {
		s.untilReset = max(0, l.untilExpiry(now, n-1))
	}
	return s
}
