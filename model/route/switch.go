package route

import (
	"context"
	"sync"

	"github.com/minibench/mini/model"
)

// Switch is a model.Model that passes the calls of an attempt to one model, until Set
// replaces it.
type Switch struct {
	mu    sync.Mutex
	route Route // all models so far; the last one answers
}

var _ model.Model = (*Switch)(nil)

// NewSwitch returns a Switch with the first model.
func NewSwitch(first Named) *Switch { return &Switch{route: Route{models: []Named{first}}} }

// Set replaces the model for later calls. A call under way is not affected.
func (s *Switch) Set(next Named) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.route.models = append(s.route.models, next)
}

// Query implements model.Model.
func (s *Switch) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	s.mu.Lock()
	current := len(s.route.models) - 1
	m := s.route.models[current]
	messages = s.route.messagesFor(messages, current)
	s.mu.Unlock()
	reply, err := m.Query(ctx, messages)
	if current > 0 && reply.Model == "" {
		reply.Model = m.Name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.route.remember(reply.Message.ProviderData, current)
	return reply, err
}
