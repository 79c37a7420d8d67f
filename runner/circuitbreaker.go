package runner

import (
	"context"
	"errors"
	"sync"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/runs"
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
	tripped       *runs.HaltError // the error that stopped the batch, or nil
	hasAnswered   bool            // at least one call succeeded
	misconfigured bool            // no call succeeded, and the last failed attempt suggests a wrong setting
}

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

// onAttemptEnd records the error that ended an attempt. It ignores errors of other types
// than *model.Error.
func (c *circuitBreaker) onAttemptEnd(err error) {
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
	c.tripped = &runs.HaltError{Failures: c.failures, ExitStatus: out.ExitStatus, Reason: out.Error, Hint: out.Hint}
	c.stop(c.tripped)
}

// err returns the error that stopped the batch, or nil.
func (c *circuitBreaker) err() *runs.HaltError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tripped
}
