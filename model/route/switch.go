package route

import (
	"context"
	"errors"
	"sync"

	"github.com/minibench/mini/model"
)

// Switch is a model.Model that passes the calls of an attempt to one model, until Set
// replaces it. A new model that refuses its first call, because of its name or its key,
// is dropped, and the model before it answers.
type Switch struct {
	// OnDrop is called for each dropped model; may be nil.
	OnDrop func(dropped, used Named, err error)

	mu       sync.Mutex
	route    Route // all models so far; the last one answers
	answered int   // index of the last model that has answered
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
	for {
		reply, current, err := s.query(ctx, messages)
		if err == nil || !s.drop(current, err) {
			return reply, err
		}
	}
}

// drop drops model i if it is the last one, has never answered, and err is a refusal.
func (s *Switch) drop(i int, err error) bool {
	e, ok := errors.AsType[*model.Error](err)
	if !ok || e.Status != model.AuthenticationError && e.Status != model.BadRequest {
		return false
	}
	s.mu.Lock()
	if i != len(s.route.models)-1 || i <= s.answered {
		s.mu.Unlock()
		return false
	}
	dropped, used := s.route.models[i], s.route.models[i-1]
	s.route.models = s.route.models[:i]
	s.mu.Unlock()
	if s.OnDrop != nil {
		s.OnDrop(dropped, used, err)
	}
	return true
}

// query passes a call to the last model, and returns its index.
func (s *Switch) query(ctx context.Context, messages []model.Message) (model.Reply, int, error) {
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
	if err == nil {
		s.answered = max(s.answered, current)
	}
	s.route.remember(reply.Message.ProviderData, current)
	return reply, current, err
}
