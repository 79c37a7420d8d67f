package agent

import (
	"context"

	"github.com/minibench/mini/trajectories"
)

// RunLoop is Run for another agent: loop works in the place of the steps. The preparation
// of the sandbox, the limits, the diff and the outcome are those of Run, and so are the
// errors that end an attempt. There are no prompts, tools or approvals.
func (a *Agent) RunLoop(ctx context.Context, s Session, loop func(ctx context.Context, a *Attempt) error) trajectories.Outcome {
	s.Tools, s.Approver = nil, nil
	return a.runSession(ctx, s, func(r *run, ctx context.Context) error {
		r.startPhase(PhaseRunning, "")
		return loop(ctx, &r.toolAttempt)
	})
}

// RecordCall records a model call that ReserveCall has reserved, as a step of the attempt
// itself.
func (a *Attempt) RecordCall(call trajectories.Call) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.startedCalls = max(a.startedCalls-1, a.spent.Steps)
	a.run.steps++
	a.run.usage = a.run.usage.Add(call.Usage)
	a.run.cost += call.Cost
	_, err := a.run.record(trajectories.TypeCall, call)
	return err
}

// Warn adds a warning to the outcome.
func (a *Attempt) Warn(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.run.warnings = append(a.run.warnings, text)
}
