package ratelimit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minibench/mini/model"
)

// Wrap wraps a provider with the limiter. One Query is one request; Reply.Waited
// is the wait before it.
func (l *Limiter) Wrap(provider model.Model) model.Model { return limitedModel{provider, l} }

type limitedModel struct {
	provider model.Model
	limiter  *Limiter
}

// Query implements model.Model.
func (m limitedModel) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	start := time.Now()
	t, err := m.limiter.acquire(ctx, model.EstimateTokens(messages))
	waited := time.Since(start)
	if err != nil {
		return model.Reply{Waited: waited}, err
	}
	var r result
	defer func() { m.limiter.release(t, r) }() // even if the provider panics
	var sent atomic.Bool
	reply, err := m.provider.Query(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { sent.Store(true) },
	}), messages)
	reply.Waited += waited
	r.cancelled, r.sent = err != nil && ctx.Err() != nil, sent.Load()
	r.answered, r.rateLimits = err == nil, reply.RateLimits
	r.tokens = reply.Usage.Prompt + reply.Usage.Completion
	if e, ok := errors.AsType[*model.Error](err); ok && e.IsOverloaded() {
		r.refused, r.retryAfter = true, e.RetryAfter
	}
	return reply, err
}

// Limiters holds the limiters of a process. The zero value is ready to use.
type Limiters struct {
	mu       sync.Mutex
	limiters map[endpointKey]*Limiter
}

// endpointKey identifies a limit of a provider: providers count requests by URL
// and API key. The API key is stored as a hash, in memory only.
type endpointKey struct {
	baseURL string
	key     [sha256.Size]byte
}

// For returns the limiter of an endpoint. The first call for the endpoint creates the
// limiter from c; later calls ignore c.
func (s *Limiters) For(baseURL, key string, c Config) *Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	endpoint := endpointKey{baseURL, sha256.Sum256([]byte(key))}
	limiter, ok := s.limiters[endpoint]
	if !ok {
		if s.limiters == nil {
			s.limiters = map[endpointKey]*Limiter{}
		}
		limiter = New(c)
		s.limiters[endpoint] = limiter
	}
	return limiter
}

// EndpointState is the state of one endpoint's Limiter.
type EndpointState struct {
	BaseURL string
	State
}

// States returns the states of all endpoints, sorted by URL. A URL that is used with
// several keys occurs once for each.
func (s *Limiters) States() []EndpointState {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]EndpointState, 0, len(s.limiters))
	for endpoint, limiter := range s.limiters {
		all = append(all, EndpointState{endpoint.baseURL, limiter.State()})
	}
	slices.SortFunc(all, func(a, b EndpointState) int {
		return cmp.Or(cmp.Compare(a.BaseURL, b.BaseURL), cmp.Compare(b.Limit, a.Limit))
	})
	return all
}
