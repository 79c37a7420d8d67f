// Package harborrun runs attempts at Harbor tasks: the agents oracle and nop, the
// preparation of the container, and the verification.
package harborrun

import (
	"context"
	"errors"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/trajectories"
)

// Nop is an agent that does nothing and submits nothing. Tests that pass after it do not
// test the task.
type Nop struct{}

// Run implements runner.Agent.
func (Nop) Run(_ context.Context, s agent.Session) trajectories.Outcome {
	return end(s, time.Now(), &agent.Submitted{Source: trajectories.SourceSubmitted}, nil)
}

// Oracle is an agent that knows the solution. It submits the gold patch of a row. Tests
// that fail after it reject the right solution.
type Oracle struct{}

// Run implements runner.Agent.
func (Oracle) Run(_ context.Context, s agent.Session) trajectories.Outcome {
	patch, _ := s.Task.Instance["patch"].(string)
	if patch == "" {
		return end(s, time.Now(), errors.New("run oracle: the row has no gold patch"), nil)
	}
	return end(s, time.Now(), &agent.Submitted{Patch: []byte(patch), Source: trajectories.SourceSubmitted}, nil)
}

// end records and returns the outcome of an attempt that ended with err.
func end(s agent.Session, start time.Time, err error, warnings []string) trajectories.Outcome {
	out := agent.OutcomeOf(start, err)
	out.Warnings, out.Times.SandboxStart = warnings, trajectories.Seconds(s.StartupTime)
	if _, recErr := s.Recorder.Append(trajectories.TypeOutcome, out); recErr != nil {
		out = agent.OutcomeOf(start, errors.Join(err, recErr))
	}
	s.Events.Publish(events.RunEnded{Outcome: out})
	return out
}
