package agent_test

import (
	"iter"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// The call that would exceed the context window is not made, and the work so
// far is submitted.
func TestContextWindow(t *testing.T) {
	edit := bash("echo two >> a.txt")
	usage := func(prompt, completion int64) model.Usage { return model.Usage{Prompt: prompt, Completion: completion} }
	tests := map[string]struct {
		usage    []model.Usage
		attempts map[int][]model.Request
		calls    int
	}{
		// 100 of 1000 tokens are for the reply. Prompts have about 10 tokens,
		// observations 4.
		"it grows":                         {usage: []model.Usage{usage(400, 90), usage(600, 90), usage(800, 97), usage(890, 1)}, calls: 3},
		"cached tokens do not count twice": {usage: []model.Usage{{Prompt: 800, CacheRead: 700, Completion: 1}, usage(1, 1)}, calls: 2},
		"thinking is not sent again":       {usage: []model.Usage{{Prompt: 800, Completion: 200, Reasoning: 190}, usage(1, 1)}, calls: 2},
		"at once":                          {usage: []model.Usage{usage(899, 1), usage(900, 1)}, calls: 1},
		"a server that counts nothing":     {usage: []model.Usage{usage(0, 0), usage(0, 0), usage(0, 0)}, calls: 3},
		"it counts only sometimes":         {usage: []model.Usage{usage(882, 1), usage(0, 0), usage(0, 0)}, calls: 2},
		// A call had two requests, and only the second is history.
		"a call that was tried again": {
			usage: []model.Usage{usage(1000, 50), usage(880, 30), usage(1, 1)}, calls: 2,
			attempts: map[int][]model.Request{0: {{Error: "cut", Usage: usage(500, 25)}, {Usage: usage(500, 25)}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scriptedModel{}
			for i, u := range test.usage {
				reply := replies(edit).replies[0]
				reply.Usage, reply.Requests = u, test.attempts[i]
				s.replies = append(s.replies, reply)
			}
			cfg := config()
			cfg.StepLimit = len(test.usage)
			cfg.Window = agent.ContextWindow{Tokens: 1000, Reserve: 100}
			rec := &testRecorder{}
			out := run(t.Context(), t, cfg, s, rec)
			status, calls := "ContextWindowExceeded", strings.Count(rec.types(), "call")
			if test.calls == len(test.usage) {
				status = "LimitsExceeded"
			}
			if out.ExitStatus != status || out.Class != trajectories.Limit || len(s.prompts) != test.calls || calls != test.calls || out.Steps != test.calls {
				t.Errorf("%s %s (%s) after %d calls, %d recorded, %d steps; want %s after %d",
					out.Class, out.ExitStatus, out.Error, len(s.prompts), calls, out.Steps, status, test.calls)
			}
			if !out.Autosubmitted || !strings.Contains(string(out.Submission), "+two") {
				t.Errorf("the diff was not handed in: %q", out.Submission)
			}
			if strings.Contains(rec.types(), string(trajectories.TypeContext)) {
				t.Error("everything was sent, and a record says otherwise")
			}
		})
	}
}

// all yields the records like a journal.
func (m *testRecorder) all() iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for _, r := range m.records {
			if !yield(r, nil) {
				return
			}
		}
	}
}
