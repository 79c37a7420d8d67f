package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// compactionsOf are those on record.
func compactionsOf(t *testing.T, rec *memory) []trajectories.Compaction {
	t.Helper()
	var all []trajectories.Compaction
	for _, r := range rec.of(trajectories.TypeCompaction) {
		var c trajectories.Compaction
		if err := json.Unmarshal(r.Data, &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// acceptable says what a provider would refuse in a prompt: roles that do not take
// turns, calls without an answer, answers without a call.
func acceptable(messages []model.Message) error {
	var due []string
	for i, m := range messages {
		switch {
		case i == 0 && m.Role != model.System, i > 0 && m.Role == model.System:
			return fmt.Errorf("message %d is of the %s", i, m.Role)
		case m.Role == model.Tool:
			if len(due) == 0 || due[0] != m.CallID {
				return fmt.Errorf("message %d answers %q, and %q are due", i, m.CallID, due)
			}
			due = due[1:]
			continue
		case len(due) > 0:
			return fmt.Errorf("message %d comes before the answers to %q", i, due)
		case i > 0 && m.Role == messages[i-1].Role:
			return fmt.Errorf("messages %d and %d are both of the %s", i-1, i, m.Role)
		}
		for _, c := range m.Calls {
			due = append(due, c.ID)
		}
	}
	if len(due) > 0 {
		return fmt.Errorf("no answers to %q", due)
	}
	return nil
}

// TestThreeHundredSteps is the promise of summaries: every prompt is below the
// limit, a compaction makes one call, nothing that a person said is lost, prompts
// begin as the ones before did until the next compaction, and the records say each
// of them to the byte.
func TestThreeHundredSteps(t *testing.T) {
	for _, speaks := range protocol.Names {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprint(speaks, " silent ", silent), func(t *testing.T) {
				t.Parallel()
				cfg := longConfig(speaks)
				if silent { // nobody counts, so that the estimate must be right
					cfg.Estimate = counted
				}
				w := &worker{steps: 300, silent: silent, refused: 70, told: map[int]string{40: "do not touch module_3", 41: "nor module_4", 200: "be quick now"}}
				c, rec := &clerk{}, begun()
				out := long(t.Context(), t, cfg, w, agent.Session{Summary: c}, rec)
				if out.Class != trajectories.Submitted || out.Steps != 300 || len(out.Warnings) != 1 { // that there is no repository
					t.Fatalf("%s %s after %d steps: %s %q", out.Class, out.ExitStatus, out.Steps, out.Error, out.Warnings)
				}
				made := compactionsOf(t, rec)
				if len(made) < 5 || len(c.asked) != len(made) || len(rec.of(trajectories.TypeSummary)) != len(made) {
					t.Errorf("%d compactions, %d calls for summaries, %d on record", len(made), len(c.asked), len(rec.of(trajectories.TypeSummary)))
				}
				if want := model.Cost(3 + 0.5*float64(len(made))); out.Cost < want-1e-9 || out.Cost > want+1e-9 {
					t.Errorf("it cost %v, want %v", out.Cost, want)
				}
				judge(t, w, cfg.CompactionTokens, len(made))
				if diff := cmp.Diff(w.seen, onRecord(t, rec)); diff != "" {
					t.Errorf("the model was sent, and the records say (-sent +records):\n%s", diff)
				}
			})
		}
	}
}

// judge looks at every prompt that a worker was sent.
func judge(t *testing.T, w *worker, limit int64, compactions int) {
	t.Helper()
	broken := 0
	for i, sent := range w.seen {
		if n := counted(sent); n > limit+limit/1000 { // the newest messages are estimated
			t.Errorf("the prompt of step %d has %d tokens, the limit is %d", i+1, n, limit)
		}
		// What is said in the midst of the work stands behind an output in two
		// protocols: there are two messages of the user then, as without compactions.
		if err := acceptable(merged(sent)); err != nil {
			t.Errorf("the prompt of step %d: %v", i+1, err)
		}
		if sent[0].Content != "You work at /testbed." || !strings.HasPrefix(sent[1].Content, "mend method_7") {
			t.Errorf("step %d begins with %q, %q", i+1, sent[0].Content, sent[1].Content)
		}
		for step, text := range w.told {
			if i+1 > step && !slices.ContainsFunc(sent, func(m model.Message) bool { return m.Role == model.User && strings.Contains(m.Content, text) }) {
				t.Errorf("the prompt of step %d has lost %q", i+1, text)
			}
		}
		if i > 0 && !cmp.Equal(w.seen[i-1], sent[:min(len(sent), len(w.seen[i-1]))]) {
			broken++
		}
	}
	if broken != compactions {
		t.Errorf("%d prompts do not begin as the one before, and there are %d compactions", broken, compactions)
	}
}

// merged puts steers to the output before them.
func merged(messages []model.Message) []model.Message {
	var all []model.Message
	for _, m := range messages {
		if n := len(all); n > 0 && m.Role == model.User && all[n-1].Role == model.User && len(m.Content) < 40 {
			continue
		}
		all = append(all, m)
	}
	return all
}

// TestResumedInTheMiddle stops an attempt before a call and goes on: the prompts
// are those of one that was never stopped, and no summary is made twice.
func TestResumedInTheMiddle(t *testing.T) {
	const steps = 60
	said := map[int]string{9: "not module_3", 30: "be quick"}
	cfg := longConfig(protocol.Tools)
	cfg.CompactionTokens, cfg.TailTemplate = 8_000, "{{range .errors}}{{.step}}: {{.command}} gave {{.returncode}}: {{.line}}\n{{end}}"
	whole, all := &worker{steps: steps, told: said}, &clerk{}
	rec := begun()
	if out := long(t.Context(), t, cfg, whole, agent.Session{Summary: all}, rec); out.Steps != steps || len(all.asked) < 3 {
		t.Fatalf("%+v; %d summaries", out, len(all.asked))
	}
	for stop := 1; stop < steps; stop += stride(5) {
		t.Run(fmt.Sprint(stop), func(t *testing.T) {
			w, c, rec := &worker{steps: steps, told: said}, &clerk{}, begun()
			made := 0
			out := long(t.Context(), t, cfg, w, agent.Session{Summary: c, Afford: nil, Allow: func() error {
				if made++; made > stop {
					return agent.ErrBudgetExhausted
				}
				return nil
			}}, rec)
			if out.ExitStatus != "BudgetExhausted" {
				t.Fatalf("%+v", out)
			}
			past, err := agent.Recall(rec.all())
			if err != nil {
				t.Fatal(err)
			}
			n := len(rec.records)
			if _, err := rec.Append(trajectories.TypeResume, trajectories.Resume{Record: past.Record}); err != nil {
				t.Fatal(err)
			}
			rec.records[n].Parent = past.Record
			if out = long(t.Context(), t, cfg, w, agent.Session{Summary: c, Past: past}, rec); out.Steps != steps {
				t.Fatalf("%+v", out)
			}
			if diff := cmp.Diff(whole.seen, w.seen); diff != "" {
				t.Errorf("prompts (-never stopped +stopped):\n%.3000s", diff)
			}
			if len(c.asked) != len(all.asked) {
				t.Errorf("%d summaries, want %d", len(c.asked), len(all.asked))
			}
			if want := model.Cost(0.01*steps + 0.5*float64(len(all.asked))); out.Cost < want-1e-9 || out.Cost > want+1e-9 {
				t.Errorf("it cost %v, want %v", out.Cost, want)
			}
			if diff := cmp.Diff(w.seen, onRecord(t, rec)); diff != "" {
				t.Errorf("sent, and on record (-sent +records):\n%.3000s", diff)
			}
		})
	}
}

// A compaction whose call was lost with the mini that made it holds, and is not
// paid twice.
func TestACompactionOutlivesItsCall(t *testing.T) {
	cfg := longConfig(protocol.Text)
	cfg.CompactionTokens = 8_000
	w, c, rec := &worker{steps: 60}, &clerk{}, begun()
	ctx, cancel := context.WithCancelCause(t.Context())
	m := &worker{steps: 60}
	lost := modelFunc(func(ctx context.Context, messages []model.Message) (model.Reply, error) {
		if len(c.asked) > 0 {
			cancel(agent.ErrInterrupted)
			return model.Reply{}, context.Cause(ctx)
		}
		return m.Query(ctx, messages)
	})
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.speaks, _ = cfg.Speaks()
	out := a.Run(ctx, agent.Session{Model: lost, Summary: c, Environment: office{}, Recorder: rec, Task: agent.Task{Text: "mend method_7"}})
	if out.ExitStatus != "Interrupted" || len(c.asked) != 1 {
		t.Fatalf("%+v", out)
	}
	past, err := agent.Recall(rec.all())
	if err != nil {
		t.Fatal(err)
	}
	if rec.records[past.Record-1].Type != trajectories.TypeCompaction {
		t.Errorf("it goes on from a record of the type %s", rec.records[past.Record-1].Type)
	}
	n := len(rec.records)
	_, _ = rec.Append(trajectories.TypeResume, trajectories.Resume{Record: past.Record})
	rec.records[n].Parent = past.Record
	cfg.StepLimit = past.Steps + 1
	w.step = past.Steps - 1
	long(t.Context(), t, cfg, w, agent.Session{Summary: c, Past: past}, rec)
	if len(c.asked) != 1 || len(w.seen) != 1 || !strings.Contains(w.seen[0][1].Content, "Summary number 1") {
		t.Errorf("%d summaries, %d calls after it went on", len(c.asked), len(w.seen))
	}
}

// modelFunc is a function as a model.
type modelFunc func(ctx context.Context, messages []model.Message) (model.Reply, error)

func (f modelFunc) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	return f(ctx, messages)
}

// Where the model of summaries is down, the commands stand for one, bounded; what
// was paid is counted all the same.
func TestNoSummaryToBeHad(t *testing.T) {
	tests := map[string]*clerk{
		"down":          {err: &model.Error{Status: model.ProviderError, Err: errors.New("no route to host")}},
		"says nothing":  {reply: func(int, string) string { return " \n" }},
		"asks for more": {reply: func(int, string) string { return "" }},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := longConfig(protocol.Text)
			cfg.CompactionTokens, cfg.CompactionKeep, cfg.SummaryMaxChars = 9_000, 2, 1500
			w, rec := &worker{steps: 60, told: map[int]string{5: "not module_3"}}, begun()
			out := long(t.Context(), t, cfg, w, agent.Session{Summary: c}, rec)
			made := compactionsOf(t, rec)
			if out.Class != trajectories.Submitted || len(made) == 0 || len(c.asked) != len(made) {
				t.Fatalf("%s, %d compactions, %d calls", out.ExitStatus, len(made), len(c.asked))
			}
			failed := 0
			for _, one := range made {
				if one.Fallback == "" {
					t.Error("nothing says why there is no summary")
				}
				for _, r := range one.Replaced {
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
			if want := model.Cost(0.6 + 0.5*float64(len(made))); out.Cost < want-1e-9 || out.Cost > want+1e-9 {
				t.Errorf("it cost %v, want %v", out.Cost, want)
			}
			judge(t, w, cfg.CompactionTokens, len(made))
			if diff := cmp.Diff(w.seen, onRecord(t, rec)); diff != "" {
				t.Errorf("sent, and on record:\n%.2000s", diff)
			}
		})
	}
}

// What a person says parts rounds; each has its part in the one prompt and in the
// one reply, and what was summed up before is part of what is summed up again.
func TestPartsOfSummaries(t *testing.T) {
	cfg := longConfig(protocol.Text)
	cfg.CompactionTokens, cfg.SummaryMaxChars = 8_000, 60
	w := &worker{steps: 60, told: map[int]string{4: "not module_3"}}
	c := &clerk{reply: func(_ int, prompt string) string {
		if strings.Contains(prompt, "=== Part 2") {
			return "=== Part 1 ===\nfirst of two\n\n**Part 2**\nsecond of two"
		}
		return strings.Repeat("é", 100)
	}}
	rec := begun()
	long(t.Context(), t, cfg, w, agent.Session{Summary: c}, rec)
	made := compactionsOf(t, rec)
	if len(made) < 3 || len(made[0].Replaced) != 2 || len(made[1].Replaced) != 1 {
		t.Fatalf("%d compactions: %+v", len(made), made)
	}
	texts := []string{
		made[0].Replaced[0].Message.Content, made[0].Replaced[1].Message.Content, made[1].Replaced[0].Message.Content,
	}
	if !strings.HasSuffix(texts[0], "]\n\nfirst of two") || !strings.HasSuffix(texts[1], "]\n\nsecond of two") || !strings.HasSuffix(texts[2], "]\n\n"+strings.Repeat("é", 56)+" ...") ||
		!strings.HasPrefix(texts[0], "[Steps 1 to 4 are shown in summary to save room]") || !strings.HasPrefix(texts[2], "[Steps 5 to ") {
		t.Errorf("%q", texts)
	}
	if !strings.Contains(c.asked[1], "[summary of what came before]\nsecond of two\n") || strings.Contains(c.asked[1], "first of two") {
		t.Errorf("the second prompt: %.400s", c.asked[1])
	}
	last := w.seen[len(w.seen)-1][1].Content
	if parts := strings.Split(last, "\n\n"); len(parts) != 6 || parts[0] != "mend method_7" || parts[2] != "first of two" || parts[3] != "not module_3" {
		t.Errorf("the first message is in the end %q", parts)
	}
}

// An interruption while a summary is made ends that, and not the attempt.
func TestInterruptedSummary(t *testing.T) {
	cfg := longConfig(protocol.Text)
	cfg.CompactionTokens = 8_000
	w, rec := &worker{steps: 60}, begun()
	c := &clerk{}
	calls := 0
	halting := modelFunc(func(ctx context.Context, messages []model.Message) (model.Reply, error) {
		if calls++; calls == 1 {
			w.talk.Interrupt(func(context.Context) (string, error) { return "stop that", nil })
			<-ctx.Done()
			return model.Reply{}, context.Cause(ctx)
		}
		return c.Query(ctx, messages)
	})
	out := long(t.Context(), t, cfg, w, agent.Session{Summary: halting}, rec)
	made := compactionsOf(t, rec)
	if out.Class != trajectories.Submitted || len(made) == 0 || calls != len(made)+1 || made[0].Fallback != "" {
		t.Fatalf("%s, %d compactions, %d calls", out.ExitStatus, len(made), calls)
	}
	if !slices.ContainsFunc(w.seen[len(w.seen)-1], func(m model.Message) bool { return strings.Contains(m.Content, "stop that") }) {
		t.Error("the model was not told")
	}
}

// The limits of an attempt, and its batch, are held against what a summary took
// before the next call is made.
func TestSummariesCount(t *testing.T) {
	for name, test := range map[string]struct {
		limit  float64
		afford error
		status string
	}{"its own": {0.6, nil, "LimitsExceeded"}, "its batch's": {0, agent.ErrBudgetExhausted, "BudgetExhausted"}} {
		t.Run(name, func(t *testing.T) {
			cfg := longConfig(protocol.Text)
			cfg.CompactionTokens, cfg.CostLimit = 8_000, test.limit
			w, c, rec := &worker{steps: 60}, &clerk{}, begun()
			out := long(t.Context(), t, cfg, w, agent.Session{Summary: c, Afford: func() error { return test.afford }}, rec)
			if out.ExitStatus != test.status || len(c.asked) != 1 || out.Steps != len(w.seen) {
				t.Errorf("%s after %d steps and %d summaries", out.ExitStatus, out.Steps, len(c.asked))
			}
			if last := rec.records[len(rec.records)-3]; last.Type != trajectories.TypeCompaction {
				t.Errorf("a %s after the compaction", last.Type)
			}
		})
	}
}

// Elide takes out outputs first, and says how to get them back; then steps. It asks
// nobody, and does the same each time.
func TestElide(t *testing.T) {
	for _, recall := range []bool{false, true} {
		t.Run(fmt.Sprint("recall ", recall), func(t *testing.T) {
			cfg := longConfig(protocol.Tools)
			cfg.Compaction, cfg.CompactionKeep = agent.CompactElide, 6
			s := agent.Session{Environment: office{tools: true}}
			if recall {
				s.Tools = abilities{Tools: []agent.Ability{{Name: "recall"}}}
			}
			w, rec := &worker{steps: 300, told: map[int]string{40: "do not touch module_3"}}, begun()
			bus := events.NewBus()
			sub := bus.Subscribe(1 << 20)
			s.Events = bus
			out := long(t.Context(), t, cfg, w, s, rec)
			bus.Close()
			made := compactionsOf(t, rec)
			if out.Steps != 300 || len(made) < 5 || len(rec.of(trajectories.TypeSummary)) > 0 {
				t.Fatalf("%d steps, %d compactions", out.Steps, len(made))
			}
			told := 0
			for e := range sub.All(t.Context()) {
				if c, ok := e.Event.(events.Compacted); ok {
					if told++; c.Policy != agent.CompactElide || c.TokensAfter >= c.TokensBefore || c.MessagesAfter > c.MessagesBefore {
						t.Errorf("%+v", c)
					}
				}
			}
			if told != len(made) {
				t.Errorf("%d events of %d compactions", told, len(made))
			}
			first := made[0].Replaced[0]
			want := "; run the command again to see it]"
			if recall {
				want = "; mini-tool recall 1 shows it]"
			}
			if first.From != first.To || first.Join || first.Message.Role != model.Tool || first.Message.CallID != "c1" ||
				!strings.HasPrefix(first.Message.Content, "[What this command gave, ") || !strings.HasSuffix(first.Message.Content, want) {
				t.Errorf("%+v", first)
			}
			var taken []string
			for _, c := range made {
				for _, r := range c.Replaced {
					if r.Join {
						taken = append(taken, r.Message.Content)
					}
				}
			}
			if len(taken) < 2 || !strings.HasPrefix(taken[0], "[Steps 1 to ") || !strings.HasPrefix(taken[len(taken)-1], "[Steps 41 to ") {
				t.Errorf("steps that were taken out in the end: %q", taken)
			}
			judge(t, w, cfg.CompactionTokens, len(made))
			if diff := cmp.Diff(w.seen, onRecord(t, rec)); diff != "" {
				t.Errorf("sent, and on record:\n%.2000s", diff)
			}
			again, second := &worker{steps: 300, told: w.told}, begun()
			s.Events = nil
			long(t.Context(), t, cfg, again, s, second)
			if !cmp.Equal(w.seen, again.seen) {
				t.Error("the same attempt was shortened in another way")
			}
		})
	}
}

// abilities is a toolbox that is only told of.
type abilities agent.Abilities

func (a abilities) Abilities() agent.Abilities { return agent.Abilities(a) }

func (abilities) Answer(context.Context, agent.Asked) agent.ToolAnswer { return agent.ToolAnswer{} }

// Where what stays is longer than the limit, that is said, and no call is wasted.
func TestNothingToTakeOut(t *testing.T) {
	for _, policy := range []string{agent.CompactElide, agent.CompactSummarize} {
		t.Run(policy, func(t *testing.T) {
			cfg := longConfig(protocol.Text)
			cfg.Compaction, cfg.CompactionTokens, cfg.CompactionKeep = policy, 1000, 40
			w, c, rec := &worker{steps: 60}, &clerk{}, begun()
			out := long(t.Context(), t, cfg, w, agent.Session{Summary: c}, rec)
			if out.Class != trajectories.Submitted || !slices.ContainsFunc(out.Warnings, func(s string) bool { return strings.Contains(s, "agent.compaction_tokens") }) {
				t.Errorf("%s: %q", out.ExitStatus, out.Warnings)
			}
			if len(c.asked) > 4 {
				t.Errorf("%d calls for summaries", len(c.asked))
			}
		})
	}
}

// A tail stands at the end of one prompt and in no history; where the last message
// is the user's it is part of that.
func TestTail(t *testing.T) {
	for _, speaks := range protocol.Names {
		t.Run(speaks, func(t *testing.T) {
			cfg := longConfig(speaks)
			cfg.Compaction, cfg.TailTemplate = "", "{{range .goals}}goal: {{.}}\n{{end}}{{range .errors}}{{.command}} gave {{.returncode}}: {{.line}}\n{{end}}"
			w, rec := &worker{steps: 30}, begun()
			out := long(t.Context(), t, cfg, w, agent.Session{Environment: office{tools: true}, Tools: goals{}}, rec)
			if out.Steps != 30 || len(rec.of(trajectories.TypeContext)) != 30 {
				t.Fatalf("%d steps, %d contexts", out.Steps, len(rec.of(trajectories.TypeContext)))
			}
			failures := 0
			for i, sent := range w.seen {
				last := sent[len(sent)-1]
				_, tail, ok := strings.Cut(last.Content, fmt.Sprintf("goal: after %d", i))
				if !ok || last.Role != model.User || strings.Count(tail, "\n") > 3 {
					t.Errorf("step %d ends with %q", i+1, last.Content)
				}
				failures += strings.Count(tail, "gave 1: AssertionError")
				if err := acceptable(sent); speaks != protocol.Tools && err != nil {
					t.Errorf("step %d: %v", i+1, err)
				}
				if i > 0 {
					before := w.seen[i-1][:len(w.seen[i-1])-1]
					if !cmp.Equal(before, sent[:len(before)]) {
						t.Errorf("step %d does not begin as the one before, up to its tail", i+1)
					}
				}
			}
			if failures == 0 {
				t.Error("no failure was told of")
			}
			for _, m := range said(t, rec) {
				if strings.Contains(m.Content, "goal: ") {
					t.Errorf("a tail has become history: %q", m.Content)
				}
			}
			if diff := cmp.Diff(w.seen, onRecord(t, rec)); diff != "" {
				t.Errorf("sent, and on record:\n%.2000s", diff)
			}
		})
	}
}

// goals is a toolbox that has something for tails.
type goals struct{ abilities }

func (goals) Tail(a *agent.Attempt) map[string]any {
	return map[string]any{"goals": []string{fmt.Sprint("after ", a.Step())}}
}

func TestWrongSettingsOfCompaction(t *testing.T) {
	tests := map[string]func(*agent.Config){
		"compaction":        func(c *agent.Config) { c.Compaction = "zip" },
		"compaction_tokens": func(c *agent.Config) { c.CompactionTokens = -1 },
		"compaction_keep":   func(c *agent.Config) { c.CompactionKeep = -1 },
		"summary_max_chars": func(c *agent.Config) { c.SummaryMaxChars = 1 << 30 },
		"summary_template":  func(c *agent.Config) { c.SummaryTemplate = "" },
		"tail_template":     func(c *agent.Config) { c.TailTemplate = "{{.nobody}}" },
	}
	for field, change := range tests {
		cfg := longConfig(protocol.Text)
		change(&cfg)
		_, err := agent.New(cfg)
		if e, ok := errors.AsType[*agent.FieldError](err); !ok || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
