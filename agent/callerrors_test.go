package agent_test

import (
	"errors"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// The first call of an attempt has nothing to shorten: if it is too long although its
// messages fit, a setting is wrong, and there is no result.
func TestFirstCallTooLong(t *testing.T) {
	edit := bash("echo two >> a.txt")
	tooLong := func(prompt, window int64) error {
		return &model.Error{Status: model.ContextWindowExceeded, HTTPStatus: http.StatusBadRequest, PromptTokens: prompt, ContextTokens: window, Err: errors.New("no room")}
	}
	tests := map[string]struct {
		window agent.ContextWindow
		task   string
		err    error
		call   int // that fails, from 0
		class  trajectories.Class
		status string
	}{
		"the server's numbers say that it fits": {err: tooLong(2154, 32768), class: trajectories.Provider, status: "BadRequest"},
		"no numbers":                            {err: tooLong(0, 0), class: trajectories.Provider, status: "BadRequest"},
		"a window, and the estimate fits":       {err: tooLong(0, 4096), class: trajectories.Provider, status: "BadRequest"},
		"the numbers say that it is too long":   {err: tooLong(40000, 32768), class: trajectories.Limit, status: "ContextWindowExceeded"},
		"the estimate says so":                  {err: tooLong(0, 4096), task: strings.Repeat("word ", 9000), class: trajectories.Limit, status: "ContextWindowExceeded"},
		"the reserve is too large":              {window: agent.ContextWindow{Tokens: 1000, Reserve: 999}, class: trajectories.Provider, status: "BadRequest"},
		"the task is too long":                  {window: agent.ContextWindow{Tokens: 1000, Reserve: 10}, task: strings.Repeat("word ", 9000), class: trajectories.Limit, status: "ContextWindowExceeded"},
		"a later call":                          {err: tooLong(2154, 32768), call: 1, class: trajectories.Limit, status: "ContextWindowExceeded"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := replies(edit, edit)
			s.errs = map[int]error{test.call: test.err}
			cfg := config()
			cfg.Window, cfg.StepLimit = test.window, 2
			if test.task != "" {
				cfg.InstanceTemplate = test.task
			}
			out := run(t.Context(), t, cfg, s, &testRecorder{})
			if out.Class != test.class || out.ExitStatus != test.status {
				t.Errorf("%s %s: %s; want %s %s", out.Class, out.ExitStatus, out.Error, test.class, test.status)
			}
			if (out.Hint != "") != (test.class == trajectories.Provider) && test.err != nil {
				t.Errorf("hint is %q", out.Hint)
			}
		})
	}
}

// The settings of a resumed attempt may be others, but its context may be full, too.
func TestResumedCallTooLong(t *testing.T) {
	edit := bash("echo two >> a.txt")
	for prompt, want := range map[int64]string{2154: "BadRequest", 30000: "ContextWindowExceeded", 0: "ContextWindowExceeded"} {
		rec := newRecorder()
		killed := &scriptedModel{replies: replies(edit, edit).replies, errs: map[int]error{2: errors.New("killed")}}
		(&firstSession{cfg: config(), rec: rec, m: killed}).run(t)
		rec.records = rec.records[:len(rec.records)-3] // without the failed call, the diff and the outcome
		s := replies(edit)
		s.errs = map[int]error{0: &model.Error{Status: model.ContextWindowExceeded, PromptTokens: prompt, ContextTokens: 32768, Err: errors.New("no room")}}
		if out, _ := resume(t.Context(), t, config(), s, rec); out.ExitStatus != want {
			t.Errorf("prompt of %d tokens: %s: %s; want %s", prompt, out.ExitStatus, out.Error, want)
		}
	}
}

// A call that the model wrote and the provider could not read is a format error.
func TestMalformedCall(t *testing.T) {
	malformed := &model.Error{Status: model.MalformedCall, Err: errors.New("400 Bad Request: cannot parse the arguments")}
	for _, first := range []int{0, 1} {
		s := replies(bash("echo two >> a.txt"), bash("echo three >> a.txt"), bash(submit))
		s.errs = map[int]error{first: malformed}
		rec := &testRecorder{}
		out := run(t.Context(), t, config(), s, rec)
		if out.Class != trajectories.Submitted || out.Steps != 3 {
			t.Errorf("%s %s after %d steps: %s", out.Class, out.ExitStatus, out.Steps, out.Error)
		}
		last := s.prompts[first+1]
		if err := checkAccepted(last); err != nil || !strings.Contains(last[len(last)-1].Content, "cannot parse the arguments") {
			t.Errorf("the model is sent %+v: %v", last, err)
		}
	}
	s := replies()
	s.errs = map[int]error{0: malformed, 1: malformed, 2: malformed}
	assert.Equal(t, "RepeatedFormatError", run(t.Context(), t, config(), s, &testRecorder{}).ExitStatus, "three in a row")
}

// With compaction, a rejected prompt is shortened and sent again, once.
func TestRejectedPromptIsShortened(t *testing.T) {
	tooLong := &model.Error{Status: model.ContextWindowExceeded, HTTPStatus: 400, Err: errors.New("too long")}
	unknown := &model.Error{Status: model.BadRequest, HTTPStatus: 400, Err: errors.New("Internal error 7")}
	tests := map[string]struct {
		compaction string
		errs       []error // of the calls from the 40th on
		status     string
		text       string
	}{
		"too long":                {agent.CompactionElide, []error{tooLong}, "Submitted", ""},
		"an unknown reason":       {agent.CompactionElide, []error{unknown}, "Submitted", ""},
		"summaries":               {agent.CompactionSummarize, []error{tooLong}, "Submitted", ""},
		"no compaction":           {agent.CompactionOff, []error{unknown}, "BadRequest", "Internal error 7"},
		"again after it":          {agent.CompactionElide, []error{unknown, unknown}, "BadRequest", "Internal error 7"},
		"too long again after it": {agent.CompactionElide, []error{tooLong, tooLong}, "ContextWindowExceeded", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := compactionConfig("text")
			cfg.Compaction, cfg.CompactionTokens = test.compaction, 100_000
			w := &workingModel{steps: 45, errs: map[int]error{}}
			for i, err := range test.errs {
				w.errs[40+i] = err
			}
			rec := newRecorder()
			out := runSession(t.Context(), t, cfg, w, agent.Session{SummaryModel: &summaryModel{}}, rec)
			if out.ExitStatus != test.status || !strings.Contains(out.Error, test.text) {
				t.Fatalf("%s %s after %d steps: %s", out.Class, out.ExitStatus, out.Steps, out.Error)
			}
			if test.compaction == agent.CompactionOff {
				return
			}
			all := compactionsOf(t, rec)
			if len(all) != 1 || all[0].Policy != test.compaction || all[0].TokensAfter >= all[0].TokensBefore {
				t.Errorf("compactions: %+v", all)
			}
			if n := countTokens(w.prompts[40]); n >= countTokens(w.prompts[39]) {
				t.Errorf("the prompt after the rejected one has %d tokens", n)
			}
		})
	}
}

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
