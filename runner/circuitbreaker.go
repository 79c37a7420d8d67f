package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// circuitBreaker stops a batch after consecutive instances have failed at the
// model's provider.
type circuitBreaker struct {
	maxFailures int // consecutive failures; 0: no limit

	mu            sync.Mutex
	stop          context.CancelCauseFunc
	failures      int
	tripped       *HaltError // why the batch was stopped, or nil
	hasAnswered   bool       // at least one call succeeded
	misconfigured bool       // no call succeeded, and the last failure suggests a wrong setting
}

// HaltError is why a batch was stopped early. Attempts that it ends are
// interrupted and retried by the next start.
type HaltError struct {
	Failures   int    `json:"failures"` // consecutive instances
	ExitStatus string `json:"exit_status"`
	Reason     string `json:"error"`          // of the last failure
	Hint       string `json:"hint,omitempty"` // what the user can do
}

func (h *HaltError) Error() string {
	instances := fmt.Sprintf("%d instances in a row", h.Failures)
	if h.Failures == 1 {
		instances = "an instance"
	}
	text := fmt.Sprintf("stopped: %s failed at the model's provider, the last with %s", instances, h.Reason)
	if h.Hint != "" {
		text += "; " + h.Hint
	}
	return text
}

// Unwrap makes it an interruption.
func (h *HaltError) Unwrap() error { return agent.ErrInterrupted }

// reset prepares for a run; stop cancels it.
func (s *circuitBreaker) reset(maxFailures int, stop context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxFailures, s.stop, s.failures, s.tripped = maxFailures, stop, 0, nil
	s.hasAnswered, s.misconfigured = false, false
}

// onAnswer records a successful call.
func (s *circuitBreaker) onAnswer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.hasAnswered, s.misconfigured = 0, true, false
}

// onFailure records a failed call.
func (s *circuitBreaker) onFailure(err error) {
	if e, ok := errors.AsType[*model.Error](err); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.misconfigured = !s.hasAnswered && (e.MaybeMisconfigured || !e.Retryable)
	}
}

// isRetryUseless reports whether a retry would fail again: the provider has never
// answered, and its failure suggests a wrong setting.
func (s *circuitBreaker) isRetryUseless(out trajectories.Outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return out.Class == trajectories.Provider && s.misconfigured
}

// onInstanceEnd counts the final outcome of an instance.
func (s *circuitBreaker) onInstanceEnd(out trajectories.Outcome) {
	if out.Class != trajectories.Provider || out.ExitStatus == string(model.ScriptExhausted) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	if s.maxFailures <= 0 || s.failures < s.maxFailures || s.tripped != nil {
		return
	}
	s.tripped = &HaltError{Failures: s.failures, ExitStatus: out.ExitStatus, Reason: out.Error, Hint: out.Hint}
	s.stop(s.tripped)
}

// monitoredModels reports failures of models to the circuit breaker.
type monitoredModels struct {
	Models
	breaker *circuitBreaker
}

// For implements Models.
func (m monitoredModels) For(in datasets.Instance) (model.Model, error) {
	inner, err := m.Models.For(in)
	return monitoredModel{inner, m.breaker}, err
}

// SummaryModel implements SummaryModels.
func (m monitoredModels) SummaryModel(in datasets.Instance) (model.Model, error) {
	if s, ok := m.Models.(SummaryModels); ok {
		return s.SummaryModel(in)
	}
	return nil, nil //nolint:nilnil // the attempt's own model makes summaries
}

// monitoredModel reports failures to the circuit breaker. Subagents use the same
// model.
type monitoredModel struct {
	model.Model
	breaker *circuitBreaker
}

// Query implements model.Model.
func (m monitoredModel) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	reply, err := m.Model.Query(ctx, messages)
	m.breaker.onFailure(err)
	return reply, err
}

// err returns why the batch was stopped, or nil.
func (s *circuitBreaker) err() *HaltError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tripped
}
