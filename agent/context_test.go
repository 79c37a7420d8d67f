package agent_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// characters stands for an estimate: a token each.
func characters(messages []model.Message) (n int64) {
	for _, m := range messages {
		n += int64(len(m.Content))
	}
	return n
}

func TestWindow(t *testing.T) {
	text := func(n int) model.Message { return model.Message{Role: model.User, Content: strings.Repeat("x", n)} }
	history := []model.Message{text(40), text(30), text(20)}
	tests := map[string]struct {
		messages []model.Message
		usage    model.Usage
		counted  int
		next     int64 // tokens of the next prompt
	}{
		"nothing is counted yet":    {history, model.Usage{}, 0, 90},                                                 // 40 + 30 + 20
		"all but the last":          {history, model.Usage{Prompt: 500, Completion: 60}, 2, 580},                     // 500 + 60 + 20
		"cached tokens are no more": {history, model.Usage{Prompt: 500, CacheRead: 400, Completion: 60}, 2, 580},     // they are among the 500
		"all":                       {history, model.Usage{Prompt: 500, Completion: 60}, 3, 560},                     // 500 + 60
		"thinking not sent again":   {history, model.Usage{Prompt: 500, Completion: 60, Reasoning: 50}, 2, 530},      // 500 + 60 - 50 + 20
		"thinking that is kept":     {kept(history, 1), model.Usage{Prompt: 9, Completion: 60, Reasoning: 5}, 2, 89}, // 9 + 60 + 20
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := agent.History{Messages: test.messages, Usage: test.usage, Counted: test.counted}
			fits := agent.Window{Tokens: test.next + 100, Reserve: 100, Estimate: characters}
			if sent, err := fits.Fit(t.Context(), h); sent != nil || err != nil {
				t.Errorf("a window that is large enough: %v, %v", sent, err)
			}
			small := agent.Window{Tokens: test.next + 100, Reserve: 101, Estimate: characters}
			_, err := small.Fit(t.Context(), h)
			if e, ok := errors.AsType[*model.Error](err); !ok || e.Status != model.ContextWindowExceeded || e.Hint == "" {
				t.Errorf("a window that is one token too small: %v", err)
			}
		})
	}
}

func kept(messages []model.Message, n int) []model.Message {
	messages = append([]model.Message(nil), messages...)
	messages[n].Kept = []byte(`"signed"`)
	return messages
}

// TestAttemptsEndBeforeTheWindow lets the model say what its calls took: the call
// that would be too long is never made, and what was done is handed in.
func TestAttemptsEndBeforeTheWindow(t *testing.T) {
	edit := bash("echo two >> a.txt")
	usage := func(prompt, completion int64) model.Usage { return model.Usage{Prompt: prompt, Completion: completion} }
	tests := map[string]struct {
		usage    []model.Usage
		attempts map[int][]model.Attempt
		calls    int
	}{
		// Of 1000, 100 are for the reply. Prompts are some 10 tokens, observations 4.
		"it grows":                     {usage: []model.Usage{usage(400, 90), usage(600, 90), usage(800, 97), usage(890, 1)}, calls: 3},
		"at once":                      {usage: []model.Usage{usage(899, 1), usage(900, 1)}, calls: 1},
		"a server that counts nothing": {usage: []model.Usage{usage(0, 0), usage(0, 0), usage(0, 0)}, calls: 3},
		"it counts only sometimes":     {usage: []model.Usage{usage(860, 1), usage(0, 0), usage(0, 0)}, calls: 2},
		// Two requests of one call were counted, and only the second is history.
		"a call that was tried again": {
			usage: []model.Usage{usage(1000, 50), usage(880, 30), usage(1, 1)}, calls: 2,
			attempts: map[int][]model.Attempt{0: {{Error: "cut", Usage: usage(500, 25)}, {Usage: usage(500, 25)}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &script{}
			for i, u := range test.usage {
				reply := says(edit).replies[0]
				reply.Usage, reply.Attempts = u, test.attempts[i]
				s.replies = append(s.replies, reply)
			}
			cfg := config()
			cfg.StepLimit = len(test.usage)
			cfg.Context = agent.Window{Tokens: 1000, Reserve: 100, Estimate: characters}
			rec := &memory{}
			out := run(t.Context(), t, cfg, s, rec)
			status, calls := "ContextWindowExceeded", strings.Count(rec.types(), "call")
			if test.calls == len(test.usage) {
				status = "LimitsExceeded"
			}
			if out.ExitStatus != status || out.Class != trajectories.Limit || len(s.seen) != test.calls || calls != test.calls || out.Steps != test.calls {
				t.Errorf("%s %s (%s) after %d calls, %d on record, %d steps; want %s after %d",
					out.Class, out.ExitStatus, out.Error, len(s.seen), calls, out.Steps, status, test.calls)
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

// shrink sends the prompts, a summary, and the last message.
type shrink struct{ seen []agent.History }

func (s *shrink) Fit(_ context.Context, h agent.History) ([]model.Message, error) {
	s.seen = append(s.seen, h)
	n := len(h.Messages)
	switch len(s.seen) {
	case 1: // all, in a list of its own
		return append([]model.Message(nil), h.Messages...), nil
	case 3, 4:
		return []model.Message{h.Messages[0], h.Messages[1], {Role: model.User, Content: "a summary"}, h.Messages[n-2], h.Messages[n-1]}, nil
	case 5:
		return h.Messages[n-1:], nil
	}
	return nil, nil
}

// TestWhatWasSentIsInTheJournal finds in the records, to the byte, what the model
// was sent, whatever a policy left out or put in.
func TestWhatWasSentIsInTheJournal(t *testing.T) {
	s := says(bash("echo 1"), bash("echo 1"), "no command", bash("echo 3"), bash("echo 4"), bash(submit))
	for i := range s.replies {
		s.replies[i].Usage.Prompt = int64(100 * (i + 1))
	}
	policy := &shrink{}
	cfg := config()
	cfg.Context = policy
	rec := &memory{}
	if out := run(t.Context(), t, cfg, s, rec); out.Class != trajectories.Submitted {
		t.Fatalf("%+v", out)
	}
	var sent [][]model.Message
	for p, err := range trajectories.Prompts(rec.all()) {
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, p.Messages)
	}
	if diff := cmp.Diff(s.seen, sent); diff != "" {
		t.Errorf("the model was sent, and the journal says (-sent +journal):\n%s", diff)
	}
	if n := strings.Count(rec.types(), string(trajectories.TypeContext)); n != 3 {
		t.Errorf("%d records of other prompts than the history, want 3: %s", n, rec.types())
	}
	for i, h := range policy.seen {
		if want := int64(100 * i); h.Usage.Prompt != want || len(h.Messages) != 2+2*i || i > 0 && h.Counted != 1+2*i {
			t.Errorf("before call %d: %d messages, %d of them counted as %d; want %d", i, len(h.Messages), h.Counted, h.Usage.Prompt, want)
		}
	}
}

// all are the records, as a journal gives them.
func (m *memory) all() iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for _, r := range m.records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// nothing is a policy that is wrong.
type nothing struct{}

func (nothing) Fit(context.Context, agent.History) ([]model.Message, error) {
	return []model.Message{}, nil
}

func TestAPolicyThatSendsNothing(t *testing.T) {
	cfg := config()
	cfg.Context = nothing{}
	s := says(bash(submit))
	if out := run(t.Context(), t, cfg, s, &memory{}); out.Class != trajectories.Internal || len(s.seen) > 0 {
		t.Errorf("%s after %d calls", out.Class, len(s.seen))
	}
}
