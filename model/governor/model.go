package governor

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minibench/mini/model"
)

// Model is a provider whose requests wait for their turn. One Query of it is
// one request, and Reply.Waited the wait before that.
func (g *Governor) Model(provider model.Model) model.Model { return governed{provider, g} }

type governed struct {
	provider model.Model
	g        *Governor
}

// Query implements model.Model.
func (m governed) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	begun := time.Now()
	t, err := m.g.acquire(ctx, model.EstimateTokens(messages))
	waited := time.Since(begun)
	if err != nil {
		return model.Reply{Waited: waited}, err
	}
	var r result
	defer func() { m.g.done(t, r) }() // also when the provider panics
	var sent atomic.Bool
	reply, err := m.provider.Query(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { sent.Store(true) },
	}), messages)
	reply.Waited += waited
	r.cancelled, r.sent = err != nil && ctx.Err() != nil, sent.Load()
	r.answered, r.limits = err == nil, reply.Limits
	r.tokens = reply.Usage.Prompt + reply.Usage.Completion
	if e, ok := errors.AsType[*model.Error](err); ok && e.Overloaded() {
		r.refused, r.after = true, e.RetryAfter
	}
	return reply, err
}

// Governors are those of a process, by endpoint. The zero value is ready.
type Governors struct {
	mu  sync.Mutex
	all map[endpoint]*Governor
}

// endpoint is what a provider counts by. Keys are kept as hashes, and in
// memory only.
type endpoint struct {
	baseURL string
	key     [sha256.Size]byte
}

// For returns the governor of an endpoint; it is made of c for who asks first.
func (s *Governors) For(baseURL, key string, c Config) *Governor {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := endpoint{baseURL, sha256.Sum256([]byte(key))}
	g, ok := s.all[e]
	if !ok {
		if s.all == nil {
			s.all = map[endpoint]*Governor{}
		}
		g = New(c)
		s.all[e] = g
	}
	return g
}
