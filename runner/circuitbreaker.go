package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// circuitBreaker stops a batch when maxFailures instances have failed at the
// model's provider without a successful call between them, or when the cluster refuses
// its sandboxes.
type circuitBreaker struct {
	maxFailures int // 0: no limit

	mu            sync.Mutex
	stop          context.CancelCauseFunc
	failures      int
	tripped       *HaltError // the error that stopped the batch, or nil
	hasAnswered   bool       // at least one call succeeded
	misconfigured bool       // no call succeeded, and the last failure suggests a wrong setting
}

// HaltError reports that the circuit breaker stopped a batch. It interrupts the
// running attempts; the next start of mini on the folder retries them.
type HaltError struct {
	Failures   int    `json:"failures"` // consecutive instances
	ExitStatus string `json:"exit_status"`
	Reason     string `json:"error"`          // of the last failure
	Hint       string `json:"hint,omitempty"` // instruction for the user
}

func (h *HaltError) Error() string {
	if h.ExitStatus == string(env.SandboxRefused) {
		return "stopped: " + withHint(h.Reason, h.Hint)
	}
	instances := fmt.Sprintf("%d instances in a row", h.Failures)
	if h.Failures == 1 {
		instances = "an instance"
	}
	text := fmt.Sprintf("stopped: %s failed at the model's provider, the last with %s", instances, h.Reason)
	return withHint(text, h.Hint)
}

func withHint(text, hint string) string {
	if hint != "" {
		text += "; " + hint
	}
	return text
}

// Unwrap returns agent.ErrInterrupted: attempts that HaltError ends are
// interrupted.
func (h *HaltError) Unwrap() error { return agent.ErrInterrupted }

// reset clears the state for a new run. stop cancels that run.
func (c *circuitBreaker) reset(maxFailures int, stop context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maxFailures, c.stop, c.failures, c.tripped = maxFailures, stop, 0, nil
	c.hasAnswered, c.misconfigured = false, false
}

// onAnswer records a successful call.
func (c *circuitBreaker) onAnswer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures, c.hasAnswered, c.misconfigured = 0, true, false
}

// onFailure records the error of a call. It ignores nil and errors of other types
// than *model.Error.
func (c *circuitBreaker) onFailure(err error) {
	if e, ok := errors.AsType[*model.Error](err); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.misconfigured = !c.hasAnswered && (e.MaybeMisconfigured || !e.Retryable)
	}
}

// isRetryUseless reports whether a retry would fail again: the provider has never
// answered, and its failure suggests a wrong setting.
func (c *circuitBreaker) isRetryUseless(out trajectories.Outcome) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return out.Class == trajectories.Provider && c.misconfigured
}

// onInstanceEnd counts an instance whose final outcome is a failure at the
// provider, and stops the batch when maxFailures is reached, or at once if the cluster
// refuses the sandbox. It ignores other outcomes, and scripted models that have run out
// of replies.
func (c *circuitBreaker) onInstanceEnd(out trajectories.Outcome) {
	refused := out.ExitStatus == string(env.SandboxRefused)
	if !refused && (out.Class != trajectories.Provider || out.ExitStatus == string(model.ScriptExhausted)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	if !refused && (c.maxFailures <= 0 || c.failures < c.maxFailures) || c.tripped != nil {
		return
	}
	c.tripped = &HaltError{Failures: c.failures, ExitStatus: out.ExitStatus, Reason: out.Error, Hint: out.Hint}
	c.stop(c.tripped)
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
	if models, ok := m.Models.(SummaryModels); ok {
		return models.SummaryModel(in)
	}
	return nil, nil //nolint:nilnil // the attempt's own model makes summaries
}

// monitoredModel reports failed calls to the circuit breaker, including those of
// subagents, which use the same model.
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

// err returns the error that stopped the batch, or nil.
func (c *circuitBreaker) err() *HaltError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tripped
}
