// Package harborrun runs attempts at Harbor tasks: the agents oracle and nop, the images
// and containers, and the verification.
//
// The verification is part of an attempt, because tests look at the container that the agent
// has left. The outcome of an attempt is recorded after it, so that an attempt with a result
// has a verdict.
package harborrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/datasets/harbor"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// Nop is an agent that does nothing and submits nothing. Tests that pass after it do not
// test the task.
type Nop struct{}

// Run implements runner.Agent.
func (Nop) Run(_ context.Context, s agent.Session) trajectories.Outcome {
	return end(s, time.Now(), &agent.Submitted{Source: trajectories.SourceSubmitted}, nil)
}

// Oracle is an agent that knows the solution: it runs solution/solve.sh of a task, and
// submits the gold patch of another row. Tests that fail after it reject the right solution.
type Oracle struct {
	task *harbor.Task // nil for rows of other datasets
	step harbor.Step
	env  map[string]string // of solve.sh
}

// Run implements runner.Agent.
func (o Oracle) Run(ctx context.Context, s agent.Session) trajectories.Outcome {
	start := time.Now()
	if o.task != nil {
		warnings, err := o.solve(ctx, s.Environment)
		if err == nil {
			err = &agent.Submitted{Source: trajectories.SourceSubmitted}
		}
		return end(s, start, err, warnings)
	}
	patch, _ := s.Task.Instance["patch"].(string)
	if patch == "" {
		return end(s, start, errors.New("run oracle: the row has no gold patch"), nil)
	}
	return end(s, start, &agent.Submitted{Patch: []byte(patch), Source: trajectories.SourceSubmitted}, nil)
}

// solve copies the solution into the container and runs it. The exit code is only a warning,
// since the tests decide.
func (o Oracle) solve(ctx context.Context, e env.Environment) (warnings []string, err error) {
	failed := func(err error) error { return &env.Error{Status: env.SetupFailed, Op: "run the oracle", Err: err} }
	if err := putFolder(ctx, e, "/", filepath.Join(o.task.Dir, o.step.Dir, "solution")); err != nil {
		return nil, failed(err)
	}
	if err := runRoot(ctx, e, "chmod -R a+rX /solution && chmod a+x /solution/solve.sh"); err != nil {
		return nil, failed(err)
	}
	variables := map[string]string{"DEBIAN_FRONTEND": "noninteractive"}
	maps.Copy(variables, o.env)
	res, err := e.Execute(ctx, env.Command{Script: "/solution/solve.sh", Env: variables, Timeout: maxCommand})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case res.Failure != "":
		return nil, failed(errors.New(res.Failure))
	case res.ExitCode != 0:
		warnings = append(warnings, fmt.Sprintf("solve.sh ended with exit code %d: %.300q", res.ExitCode, lastBytes(res.Output, 300)))
	}
	return warnings, nil
}

// end records and returns the outcome of an attempt that ended with err.
func end(s agent.Session, start time.Time, err error, warnings []string) trajectories.Outcome {
	out := agent.OutcomeOf(start, err)
	out.Warnings, out.Times.SandboxStart = warnings, trajectories.Seconds(s.StartupTime)
	if _, recErr := s.Recorder.Append(trajectories.TypeOutcome, out); recErr != nil {
		out = agent.OutcomeOf(start, errors.Join(err, recErr))
	}
	s.Events.Publish(events.Recorded{Data: out})
	return out
}

func lastBytes(b []byte, n int) []byte { return b[max(0, len(b)-n):] }
