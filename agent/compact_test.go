package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// compactionsOf returns the recorded compactions.
func compactionsOf(t *testing.T, rec *testRecorder) []trajectories.Compaction {
	t.Helper()
	var all []trajectories.Compaction
	for _, r := range rec.ofType(trajectories.TypeCompaction) {
		var c trajectories.Compaction
		require.NoError(t, json.Unmarshal(r.Data, &c))
		all = append(all, c)
	}
	return all
}

// checkAccepted returns what a provider would reject in a prompt: roles that do
// not alternate, calls without an answer, answers without a call.
func checkAccepted(messages []model.Message) error {
	var due []string
	for i, m := range messages {
		switch {
		case i == 0 && m.Role != model.System, i > 0 && m.Role == model.System:
			return fmt.Errorf("message %d is of the %s", i, m.Role)
		case m.Role == model.Tool:
			if len(due) == 0 || due[0] != m.ToolCallID {
				return fmt.Errorf("message %d answers %q, and %q are due", i, m.ToolCallID, due)
			}
			due = due[1:]
			continue
		case len(due) > 0:
			return fmt.Errorf("message %d comes before the answers to %q", i, due)
		case i > 0 && m.Role == messages[i-1].Role:
			return fmt.Errorf("messages %d and %d are both of the %s", i-1, i, m.Role)
		}
		for _, c := range m.ToolCalls {
			due = append(due, c.ID)
		}
	}
	if len(due) > 0 {
		return fmt.Errorf("no answers to %q", due)
	}
	return nil
}

// With summaries, every prompt is below the limit, a compaction makes one call,
// no message of the user is lost, each prompt starts with the previous one
// until the next compaction, and the records reproduce every prompt.
func TestSummariesOfALongAttempt(t *testing.T) {
	for _, name := range protocol.Names {
		for _, omitUsage := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " silent ", omitUsage), func(t *testing.T) {
				t.Parallel()
				cfg := compactionConfig(name)
				w := &workingModel{steps: 300, omitUsage: omitUsage, plainStep: 70, userMessages: map[int]string{40: "do not touch module_3", 41: "nor module_4", 200: "be quick now"}}
				c, rec := &summaryModel{}, newRecorder()
				out := runSession(t.Context(), t, cfg, w, agent.Session{SummaryModel: c}, rec)
				if out.Class != trajectories.Submitted || out.Steps != 300 || len(out.Warnings) != 1 { // there is no repository
					t.Fatalf("%s %s after %d steps: %s %q", out.Class, out.ExitStatus, out.Steps, out.Error, out.Warnings)
				}
				compactions := compactionsOf(t, rec)
				if len(compactions) < 5 || len(c.prompts) != len(compactions) || len(rec.ofType(trajectories.TypeSummary)) != len(compactions) {
					t.Errorf("%d compactions, %d calls for summaries, %d recorded", len(compactions), len(c.prompts), len(rec.ofType(trajectories.TypeSummary)))
				}
				if want := model.Cost(3 + 0.5*float64(len(compactions))); out.Cost < want-1e-9 || out.Cost > want+1e-9 {
					t.Errorf("it cost %v, want %v", out.Cost, want)
				}
				limit := cfg.CompactionTokens
				if omitUsage { // no provider count, and the estimate is inexact for this model
					limit = limit * 6 / 5
				}
				checkPrompts(t, w, limit, len(compactions))
				checkRecorded(t, w, rec)
			})
		}
	}
}

// checkRecorded checks that the records give the prompts that a model was sent.
func checkRecorded(t *testing.T, w *workingModel, rec *testRecorder) {
	t.Helper()
	if recorded := recordedPrompts(t, rec); !reflect.DeepEqual(w.prompts, recorded) { // cmp takes long for this
		t.Errorf("sent and recorded (-sent +recorded):\n%.3000s", cmp.Diff(w.prompts, recorded))
	}
}

// checkPrompts checks every prompt that a model was sent.
func checkPrompts(t *testing.T, w *workingModel, limit int64, compactions int) {
	t.Helper()
	broken := 0
	for i, sent := range w.prompts {
		if n := countTokens(sent); n > limit+limit/1000 { // the newest messages are estimated
			t.Errorf("the prompt of step %d has %d tokens, the limit is %d", i+1, n, limit)
		}
		// Steering follows an output. In two protocols both have the role user,
		// as without compactions.
		if err := checkAccepted(mergeUserMessages(sent)); err != nil {
			t.Errorf("the prompt of step %d: %v", i+1, err)
		}
		if sent[0].Content != "You work at /testbed." || !strings.HasPrefix(sent[1].Content, "mend method_7") {
			t.Errorf("step %d begins with %q, %q", i+1, sent[0].Content, sent[1].Content)
		}
		for step, text := range w.userMessages {
			if i+1 > step && !slices.ContainsFunc(sent, func(m model.Message) bool { return m.Role == model.User && strings.Contains(m.Content, text) }) {
				t.Errorf("the prompt of step %d has lost %q", i+1, text)
			}
		}
		if i > 0 && !reflect.DeepEqual(w.prompts[i-1], sent[:min(len(sent), len(w.prompts[i-1]))]) {
			broken++
		}
	}
	assert.Equal(t, compactions, broken, "prompts that do not begin as the one before, one for each compaction")
}

// mergeUserMessages merges steering messages with the output before them.
func mergeUserMessages(messages []model.Message) []model.Message {
	var all []model.Message
	for _, m := range messages {
		if n := len(all); n > 0 && m.Role == model.User && all[n-1].Role == model.User && len(m.Content) < 40 {
			continue
		}
		all = append(all, m)
	}
	return all
}

// An attempt stopped before a call and resumed has the same prompts as one that
// was not stopped, and makes no summary twice.
func TestResumeWithSummaries(t *testing.T) {
	const steps = 60
	userMessages := map[int]string{9: "not module_3", 30: "be quick"}
	cfg := compactionConfig(protocol.Tools)
	cfg.CompactionTokens, cfg.TailTemplate = 8_000, "{{range .errors}}{{.step}}: {{.command}} gave {{.returncode}}: {{.line}}\n{{end}}"
	whole, allSummaries := &workingModel{steps: steps, userMessages: userMessages}, &summaryModel{}
	rec := newRecorder()
	if out := runSession(t.Context(), t, cfg, whole, agent.Session{SummaryModel: allSummaries}, rec); out.Steps != steps || len(allSummaries.prompts) < 3 {
		t.Fatalf("%+v; %d summaries", out, len(allSummaries.prompts))
	}
	for stop := 1; stop < steps; stop += 1 {
		t.Run(fmt.Sprint(stop), func(t *testing.T) {
			w, c, rec := &workingModel{steps: steps, userMessages: userMessages}, &summaryModel{}, newRecorder()
			calls := 0
			out := runSession(t.Context(), t, cfg, w, agent.Session{SummaryModel: c, CheckBudget: nil, ReserveCall: func() error {
				if calls++; calls > stop {
					return agent.ErrBudgetExhausted
				}
				return nil
			}}, rec)
			require.Equal(t, "BudgetExhausted", out.ExitStatus, "%+v", out)
			state, err := agent.ReadResumeState(rec.all())
			require.NoError(t, err)
			n := len(rec.records)
			_, err = rec.Append(trajectories.TypeResume, trajectories.Resume{Record: state.LastRecord})
			require.NoError(t, err)
			rec.records[n].Parent = state.LastRecord
			if out = runSession(t.Context(), t, cfg, w, agent.Session{SummaryModel: c, Resume: state}, rec); out.Steps != steps {
				t.Fatalf("%+v", out)
			}
			assert.NoDiff(t, cmp.Diff(whole.prompts, w.prompts), "prompts (-never stopped +stopped)")
			assert.Equal(t, len(allSummaries.prompts), len(c.prompts), "summaries")
			if want := model.Cost(0.01*steps + 0.5*float64(len(allSummaries.prompts))); out.Cost < want-1e-9 || out.Cost > want+1e-9 {
				t.Errorf("it cost %v, want %v", out.Cost, want)
			}
			checkRecorded(t, w, rec)
		})
	}
}

// A compaction stays in effect, and is not paid twice, if mini was stopped
// during the call after it.
func TestResumeAfterCompaction(t *testing.T) {
	cfg := compactionConfig(protocol.Text)
	cfg.CompactionTokens = 8_000
	w, c, rec := &workingModel{steps: 60}, &summaryModel{}, newRecorder()
	ctx, cancel := context.WithCancelCause(t.Context())
	m := &workingModel{steps: 60}
	failing := modelFunc(func(ctx context.Context, messages []model.Message) (model.Reply, error) {
		if len(c.prompts) > 0 {
			cancel(agent.ErrInterrupted)
			return model.Reply{}, context.Cause(ctx)
		}
		return m.Query(ctx, messages)
	})
	a, err := agent.New(cfg)
	require.NoError(t, err)
	m.protocol, _ = cfg.ParseProtocol()
	out := a.Run(ctx, agent.Session{Model: failing, SummaryModel: c, Environment: fakeSandbox{}, Recorder: rec, Task: agent.Task{Text: "mend method_7"}})
	if out.ExitStatus != "Interrupted" || len(c.prompts) != 1 {
		t.Fatalf("%+v", out)
	}
	state, err := agent.ReadResumeState(rec.all())
	require.NoError(t, err)
	assert.Equal(t, trajectories.TypeCompaction, rec.records[state.LastRecord-1].Type, "it resumes from")
	n := len(rec.records)
	_, _ = rec.Append(trajectories.TypeResume, trajectories.Resume{Record: state.LastRecord})
	rec.records[n].Parent = state.LastRecord
	cfg.StepLimit = state.Attempt.Totals.Own.Steps + 1
	w.step = state.Attempt.Totals.Own.Steps - 1
	runSession(t.Context(), t, cfg, w, agent.Session{SummaryModel: c, Resume: state}, rec)
	if len(c.prompts) != 1 || len(w.prompts) != 1 || !strings.Contains(w.prompts[0][1].Content, "Summary number 1") {
		t.Errorf("%d summaries, %d calls after resuming", len(c.prompts), len(w.prompts))
	}
}

// modelFunc is a model from a function.
type modelFunc func(ctx context.Context, messages []model.Message) (model.Reply, error)

func (f modelFunc) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	return f(ctx, messages)
}

// If no summary is available, an extract of the commands replaces it. The call
// is still paid for.
func TestExtracts(t *testing.T) {
	tests := map[string]*summaryModel{
		"down":          {err: &model.Error{Status: model.ProviderError, Err: errors.New("no route to host")}},
		"says nothing":  {reply: func(int, string) string { return " \n" }},
		"asks for more": {reply: func(int, string) string { return "" }},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := compactionConfig(protocol.Text)
			cfg.CompactionTokens, cfg.CompactionKeep, cfg.SummaryMaxChars = 9_000, 2, 1500
			w, rec := &workingModel{steps: 60, userMessages: map[int]string{5: "not module_3"}}, newRecorder()
			out := runSession(t.Context(), t, cfg, w, agent.Session{SummaryModel: c}, rec)
			compactions := compactionsOf(t, rec)
			if out.Class != trajectories.Submitted || len(compactions) == 0 || len(c.prompts) != len(compactions) {
				t.Fatalf("%s, %d compactions, %d calls", out.ExitStatus, len(compactions), len(c.prompts))
			}
			failed := 0
			for _, c := range compactions {
				if c.Fallback == "" {
					t.Error("the record has no reason for the missing summary")
				}
				for _, r := range c.Replaced {
					head, text, _ := strings.Cut(r.Message.Content, "\n\n")
					if !strings.Contains(head, "extract") || !strings.Contains(text, "$ sed -n") || utf8.RuneCountInString(text) > 1500 {
						t.Errorf("%d characters: %s", len(text), r.Message.Content)
					}
					failed += strings.Count(text, "exit code 1: AssertionError")
				}
			}
			if failed == 0 {
				t.Error("no extract tells of a failure")
			}
			if want := model.Cost(0.6 + 0.5*float64(len(compactions))); out.Cost < want-1e-9 || out.Cost > want+1e-9 {
				t.Errorf("it cost %v, want %v", out.Cost, want)
			}
			checkPrompts(t, w, cfg.CompactionTokens, len(compactions))
			checkRecorded(t, w, rec)
		})
	}
}

// Messages of the user separate segments. All segments are in one prompt and
// one reply, and earlier summaries are part of the next summary.
func TestSummaryParts(t *testing.T) {
	cfg := compactionConfig(protocol.Text)
	cfg.CompactionTokens, cfg.SummaryMaxChars = 8_000, 60
	w := &workingModel{steps: 60, userMessages: map[int]string{4: "not module_3"}}
	c := &summaryModel{reply: func(_ int, prompt string) string {
		if strings.Contains(prompt, "=== Part 2") {
			return "=== Part 1 ===\nfirst of two\n\n**Part 2**\nsecond of two"
		}
		return strings.Repeat("é", 100)
	}}
	rec := newRecorder()
	runSession(t.Context(), t, cfg, w, agent.Session{SummaryModel: c}, rec)
	compactions := compactionsOf(t, rec)
	if len(compactions) < 3 || len(compactions[0].Replaced) != 2 || len(compactions[1].Replaced) != 1 {
		t.Fatalf("%d compactions: %+v", len(compactions), compactions)
	}
	texts := []string{
		compactions[0].Replaced[0].Message.Content, compactions[0].Replaced[1].Message.Content, compactions[1].Replaced[0].Message.Content,
	}
	if !strings.HasSuffix(texts[0], "]\n\nfirst of two") || !strings.HasSuffix(texts[1], "]\n\nsecond of two") || !strings.HasSuffix(texts[2], "]\n\n"+strings.Repeat("é", 56)+" ...") ||
		!strings.HasPrefix(texts[0], "[Steps 1 to 4 are shown in summary to save room]") || !strings.HasPrefix(texts[2], "[Steps 5 to ") {
		t.Errorf("%q", texts)
	}
	if !strings.Contains(c.prompts[1], "[summary of what came before]\nsecond of two\n") || strings.Contains(c.prompts[1], "first of two") {
		t.Errorf("the second prompt: %.400s", c.prompts[1])
	}
	last := w.prompts[len(w.prompts)-1][1].Content
	if parts := strings.Split(last, "\n\n"); len(parts) != 6 || parts[0] != "mend method_7" || parts[2] != "first of two" || parts[3] != "not module_3" {
		t.Errorf("the first message is in the end %q", parts)
	}
}

// An interruption during a summary ends the summary and not the attempt.
func TestInterruptedSummary(t *testing.T) {
	cfg := compactionConfig(protocol.Text)
	cfg.CompactionTokens = 8_000
	w, rec := &workingModel{steps: 60}, newRecorder()
	c := &summaryModel{}
	calls := 0
	interrupting := modelFunc(func(ctx context.Context, messages []model.Message) (model.Reply, error) {
		if calls++; calls == 1 {
			w.inbox.Interrupt(func(context.Context) (string, error) { return "stop that", nil })
			<-ctx.Done()
			return model.Reply{}, context.Cause(ctx)
		}
		return c.Query(ctx, messages)
	})
	out := runSession(t.Context(), t, cfg, w, agent.Session{SummaryModel: interrupting}, rec)
	compactions := compactionsOf(t, rec)
	if out.Class != trajectories.Submitted || len(compactions) == 0 || calls != len(compactions)+1 || compactions[0].Fallback != "" {
		t.Fatalf("%s, %d compactions, %d calls", out.ExitStatus, len(compactions), calls)
	}
	if !slices.ContainsFunc(w.prompts[len(w.prompts)-1], func(m model.Message) bool { return strings.Contains(m.Content, "stop that") }) {
		t.Error("the model was not sent the message")
	}
}

// The limits of the attempt and the budget are checked after a summary, before
// the next call.
func TestLimitsAfterSummary(t *testing.T) {
	for name, test := range map[string]struct {
		limit  float64
		afford error
		status string
	}{"its own": {0.6, nil, "LimitsExceeded"}, "its batch's": {0, agent.ErrBudgetExhausted, "BudgetExhausted"}} {
		t.Run(name, func(t *testing.T) {
			cfg := compactionConfig(protocol.Text)
			cfg.CompactionTokens, cfg.CostLimit = 8_000, test.limit
			w, c, rec := &workingModel{steps: 60}, &summaryModel{}, newRecorder()
			out := runSession(t.Context(), t, cfg, w, agent.Session{SummaryModel: c, CheckBudget: func() error { return test.afford }}, rec)
			if out.ExitStatus != test.status || len(c.prompts) != 1 || out.Steps != len(w.prompts) {
				t.Errorf("%s after %d steps and %d summaries", out.ExitStatus, out.Steps, len(c.prompts))
			}
			assert.Equal(t, trajectories.TypeCompaction, rec.records[len(rec.records)-3].Type, "after the compaction")
		})
	}
}

// Elide replaces outputs first and says how to see them again, then steps. It
// makes no model call and is deterministic.
func TestElide(t *testing.T) {
	for _, recall := range []bool{false, true} {
		t.Run(fmt.Sprint("recall ", recall), func(t *testing.T) {
			cfg := compactionConfig(protocol.Tools)
			cfg.Compaction, cfg.CompactionKeep = agent.CompactionElide, 6
			s := agent.Session{Environment: fakeSandbox{tools: true}}
			if recall {
				s.Tools = capabilityServer{Tools: []agent.Capability{{Name: "recall"}}}
			}
			w, rec := &workingModel{steps: 300, userMessages: map[int]string{40: "do not touch module_3"}}, newRecorder()
			bus := events.NewBus()
			sub := bus.Subscribe(1 << 20)
			s.Events = bus
			out := runSession(t.Context(), t, cfg, w, s, rec)
			bus.Close()
			compactions := compactionsOf(t, rec)
			if out.Steps != 300 || len(compactions) < 5 || len(rec.ofType(trajectories.TypeSummary)) > 0 {
				t.Fatalf("%d steps, %d compactions", out.Steps, len(compactions))
			}
			published := 0
			for e := range sub.All(t.Context()) {
				if c, ok := events.Content(e.Event).(trajectories.Compaction); ok {
					if published++; c.Policy != agent.CompactionElide || c.TokensAfter >= c.TokensBefore || c.MessagesAfter > c.MessagesBefore {
						t.Errorf("%+v", c)
					}
				}
			}
			assert.Equal(t, len(compactions), published, "events of compactions")
			first := compactions[0].Replaced[0]
			want := "; run the command again to see it]"
			if recall {
				want = "; mini-tool recall 1 shows it]"
			}
			if first.From != first.To || first.Join || first.Message.Role != model.Tool || first.Message.ToolCallID != "c1" ||
				!strings.HasPrefix(first.Message.Content, "[What this command gave, ") || !strings.HasSuffix(first.Message.Content, want) {
				t.Errorf("%+v", first)
			}
			var taken []string
			for _, c := range compactions {
				for _, r := range c.Replaced {
					if r.Join {
						taken = append(taken, r.Message.Content)
					}
				}
			}
			if len(taken) < 2 || !strings.HasPrefix(taken[0], "[Steps 1 to ") || !strings.HasPrefix(taken[len(taken)-1], "[Steps 41 to ") {
				t.Errorf("steps that were taken out in the end: %q", taken)
			}
			checkPrompts(t, w, cfg.CompactionTokens, len(compactions))
			checkRecorded(t, w, rec)
			repeated, second := &workingModel{steps: 300, userMessages: w.userMessages}, newRecorder()
			s.Events = nil
			runSession(t.Context(), t, cfg, repeated, s, second)
			if !reflect.DeepEqual(w.prompts, repeated.prompts) {
				t.Error("the same attempt was shortened in another way")
			}
		})
	}
}

// capabilityServer is a ToolServer with capabilities and no tools.
type capabilityServer agent.Capabilities

func (a capabilityServer) Capabilities() agent.Capabilities { return agent.Capabilities(a) }

func (capabilityServer) Handle(context.Context, agent.ToolRequest) agent.ToolResponse {
	return agent.ToolResponse{}
}

// A tail is at the end of one prompt and not in the history. It is part of the
// last message if that is the user's.
func TestTail(t *testing.T) {
	for _, name := range protocol.Names {
		t.Run(name, func(t *testing.T) {
			cfg := compactionConfig(name)
			cfg.Compaction, cfg.TailTemplate = "", "{{range .goals}}goal: {{.}}\n{{end}}{{range .errors}}{{.command}} gave {{.returncode}}: {{.line}}\n{{end}}"
			w, rec := &workingModel{steps: 30}, newRecorder()
			out := runSession(t.Context(), t, cfg, w, agent.Session{Environment: fakeSandbox{tools: true}, Tools: goalServer{}}, rec)
			if out.Steps != 30 || len(rec.ofType(trajectories.TypeContext)) != 30 {
				t.Fatalf("%d steps, %d contexts", out.Steps, len(rec.ofType(trajectories.TypeContext)))
			}
			failures := 0
			for i, sent := range w.prompts {
				last := sent[len(sent)-1]
				_, tail, ok := strings.Cut(last.Content, fmt.Sprintf("goal: after %d", i))
				if !ok || last.Role != model.User || strings.Count(tail, "\n") > 3 {
					t.Errorf("step %d ends with %q", i+1, last.Content)
				}
				failures += strings.Count(tail, "gave 1: AssertionError")
				if err := checkAccepted(sent); name != protocol.Tools && err != nil {
					t.Errorf("step %d: %v", i+1, err)
				}
				if i > 0 {
					before := w.prompts[i-1][:len(w.prompts[i-1])-1]
					if !cmp.Equal(before, sent[:len(before)]) {
						t.Errorf("step %d does not begin as the one before, up to its tail", i+1)
					}
				}
			}
			if failures == 0 {
				t.Error("no failure in a tail")
			}
			for _, m := range conversation(t, rec) {
				if strings.Contains(m.Content, "goal: ") {
					t.Errorf("a tail has become history: %q", m.Content)
				}
			}
			checkRecorded(t, w, rec)
		})
	}
}

// goalServer is a ToolServer with variables for tails.
type goalServer struct{ capabilityServer }

func (goalServer) TailVariables(a *agent.Attempt) map[string]any {
	return map[string]any{"goals": []string{fmt.Sprint("after ", a.Step())}}
}

// A compaction that the user wants has extracts too, if the summary has no parts.
func TestRequestedExtract(t *testing.T) {
	cfg := compactionConfig(protocol.Text)
	cfg.Compaction, cfg.TailTemplate = agent.CompactionOff, ""
	w, rec, inbox := &workingModel{steps: 6, userMessages: map[int]string{2: "not module_3"}}, newRecorder(), agent.NewInbox()
	w.inbox = inbox
	w.protocol, _ = cfg.ParseProtocol()
	m := modelFunc(func(ctx context.Context, messages []model.Message) (model.Reply, error) {
		if len(w.prompts) == 4 {
			inbox.Compact("", func() { t.Error("there is nothing to compact") })
		}
		return w.Query(ctx, messages)
	})
	a, err := agent.New(cfg)
	require.NoError(t, err)
	c := &summaryModel{reply: func(int, string) string { return "all in one" }}
	a.Run(t.Context(), agent.Session{Model: m, SummaryModel: c, Environment: fakeSandbox{}, Recorder: rec, Inbox: inbox, Task: agent.Task{Text: "mend method_7"}})
	found := compactionsOf(t, rec)
	if len(found) != 1 || found[0].Fallback == "" || len(found[0].Replaced) != 2 {
		t.Fatalf("%+v", found)
	}
	if first, last := found[0].Replaced[0].Message.Content, found[0].Replaced[1].Message.Content; !strings.Contains(first, "$ sed -n") || !strings.Contains(last, "all in one") {
		t.Errorf("%s\n%s", first, last)
	}
}
