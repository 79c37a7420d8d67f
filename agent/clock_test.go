package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/retry"
	"github.com/minibench/mini/trajectories"
)

// timedSandbox is a sandbox whose commands take a given time.
type timedSandbox struct{ takes time.Duration }

func (s timedSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if c.Script != "work" {
		return env.Result{ExitCode: 1}, nil // no repository
	}
	start := time.Now()
	select {
	case <-time.After(s.takes):
		return env.Result{Output: []byte("done\n"), Duration: time.Since(start)}, nil
	case <-ctx.Done():
		return env.Result{ExitCode: -1, Duration: time.Since(start)}, context.Cause(ctx)
	}
}
func (timedSandbox) Info() env.Info              { return env.Info{Dir: "/"} }
func (timedSandbox) Close(context.Context) error { return nil }

// rateLimitedModel rejects every first request and asks to wait.
type rateLimitedModel struct {
	calls int
	after time.Duration
}

func (b *rateLimitedModel) Query(context.Context, []model.Message) (model.Reply, error) {
	b.calls++
	if b.calls%2 == 1 {
		return model.Reply{Tries: 1, Usage: model.Usage{Prompt: 1}, Cost: 0.5}, &model.Error{
			Status: model.RateLimited, HTTPStatus: 429, Retryable: true, RetryAfter: b.after, Err: errors.New("slow down"),
		}
	}
	return model.Reply{
		Tries: 1, Usage: model.Usage{Prompt: 10, Completion: 2}, Cost: 1,
		Message: model.Message{Role: model.Assistant, Content: bash("work")}, FinishReason: model.FinishStop,
	}, nil
}

// With a wall time limit of 100 seconds, commands of 30 seconds and waits of
// ten minutes, four commands start and the fourth is cut off.
func TestProviderWaitsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.WallTimeLimit, cfg.Timeout = 100, time.Hour
		a, err := agent.New(cfg)
		require.NoError(t, err)
		rec := newRecorder()
		start := time.Now()
		out := a.Run(t.Context(), agent.Session{
			Model:       retry.New(&rateLimitedModel{after: 10 * time.Minute}, retry.Policy{MaxWait: time.Hour}),
			Environment: timedSandbox{takes: 30 * time.Second}, Recorder: rec, Task: agent.Task{Text: "task"}, StartupTime: 7 * time.Second,
		})
		if out.ExitStatus != "TimeExceeded" || out.Class != trajectories.Limit || out.Steps != 4 {
			t.Errorf("%s after %d steps: %s", out.ExitStatus, out.Steps, out.Error)
		}
		assert.Equal(t, 40*time.Minute+100*time.Second, time.Since(start), "took")
		if out.Usage.Prompt != 44 || out.Cost != 6 {
			t.Errorf("usage %+v, cost %v: the refused requests took something too", out.Usage, out.Cost)
		}
		seconds := func(d time.Duration) trajectories.Seconds { return trajectories.Seconds(d) }
		spent := trajectories.Times{SandboxStart: seconds(7 * time.Second), Model: seconds(40 * time.Minute), Commands: seconds(100 * time.Second)}
		if out.Times != spent {
			t.Errorf("the time went to %+v", out.Times)
		}
		ended := len(rec.records) - 1
		for _, killed := range []bool{false, true} { // without an outcome only the sandbox's start is missing
			if killed {
				rec.records, spent.SandboxStart = rec.records[:ended], 0
			}
			if state, err := agent.ReadResumeState(rec.all()); err != nil || state.Attempt.Totals.Times != spent {
				t.Errorf("killed %v: recalled %+v, %v", killed, state.Attempt.Totals.Times, err)
			}
		}
		for _, r := range rec.records {
			if r.Type != trajectories.TypeCall {
				continue
			}
			var c trajectories.Call
			require.NoError(t, json.Unmarshal(r.Data, &c))
			if c.RequestCount != 2 || len(c.Requests) != 2 || time.Duration(c.Waited) != 10*time.Minute {
				t.Fatalf("%s", r.Data)
			}
			if a := c.Requests[0]; a.Code != 429 || time.Duration(a.RetryAfter) != 10*time.Minute || time.Duration(a.Waited) != 10*time.Minute || a.Error == "" || a.Start == nil {
				t.Errorf("first attempt in %s", r.Data)
			}
		}
	})
}
