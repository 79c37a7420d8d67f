package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// toolSandbox is a sandbox whose commands only call tools: each line "mini-tool ..." is
// a call, lines that end with & run concurrently, and other lines are output.
type toolSandbox struct{}

func (toolSandbox) Info() env.Info              { return env.Info{Dir: "/", Tools: true} }
func (toolSandbox) Close(context.Context) error { return nil }
func (toolSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	var out strings.Builder
	var mu sync.Mutex
	var calls sync.WaitGroup
	for line := range strings.Lines(c.Script) {
		line, concurrent := strings.CutSuffix(strings.TrimSpace(line), "&")
		args := strings.Fields(line)
		if len(args) == 0 || args[0] != env.ToolProgram || c.Tools == nil {
			out.WriteString(line + "\n")
			continue
		}
		calls.Go(func() {
			a := c.Tools.Handle(ctx, env.ToolRequest{Args: args[1:]})
			mu.Lock()
			defer mu.Unlock()
			out.Write(append(a.Stdout, a.Stderr...))
		})
		if !concurrent {
			calls.Wait()
		}
	}
	calls.Wait()
	return env.Result{Output: []byte(out.String()), Bytes: int64(out.Len()), Chars: int64(out.Len())}, nil
}

// scriptedModel is a model that replies with texts in order.
type scriptedModel struct{ texts []string }

func (s *scriptedModel) Query(ctx context.Context, _ []model.Message) (model.Reply, error) {
	if len(s.texts) == 0 {
		<-ctx.Done()
		return model.Reply{}, ctx.Err()
	}
	text := s.texts[0]
	s.texts = s.texts[1:]
	return model.Reply{Message: model.Message{Role: model.Assistant, Content: text}, FinishReason: model.FinishStop, Tries: 1}, nil
}

// commandReply returns a reply with a command.
func commandReply(command string) string { return "I think.\n```bash\n" + command + "\n```" }

const submit = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

// config returns the configuration of all attempts.
func config() agent.Config {
	return agent.Config{
		SystemTemplate: "system", InstanceTemplate: "{{.task}}", ObservationTemplate: "{{.output}}", FormatErrorTemplate: "{{.error}}",
		MaxFormatErrors: 3, StepLimit: 10_000, Observation: agent.ObservationConfig{MaxChars: 1_000_000},
	}
}

// runAttempt runs one command per step and returns the outputs. It adds the records to rec.
func runAttempt(t *testing.T, state *agent.ResumeState, rec *agent.MemoryRecorder, list []tools.Tool, commands ...string) []string {
	t.Helper()
	return runAttemptWith(t, config(), state, rec, list, commands...)
}

// runAttemptWith is runAttempt with a configuration.
func runAttemptWith(t *testing.T, cfg agent.Config, state *agent.ResumeState, rec *agent.MemoryRecorder, list []tools.Tool, commands ...string) []string {
	t.Helper()
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := &scriptedModel{}
	for _, c := range commands {
		m.texts = append(m.texts, commandReply(c))
	}
	out := a.Run(t.Context(), agent.Session{
		Model: m, Environment: toolSandbox{}, Recorder: rec, Resume: state, Task: agent.Task{Text: "the task"}, Tools: newRegistry(t, list...),
	})
	if out.Error != "" {
		t.Fatalf("%+v", out)
	}
	var outputs []string
	for r, err := range rec.Records() {
		if err != nil || r.Type != trajectories.TypeExecution {
			continue
		}
		var x trajectories.Execution
		if err := json.Unmarshal(r.Data, &x); err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, string(x.Output))
	}
	return outputs
}

func TestGoals(t *testing.T) {
	outputs := runAttempt(t, nil, agent.NewMemoryRecorder(), []tools.Tool{memory.NewGoals()},
		"mini-tool goal list",
		"mini-tool goal add reproduce  the bug",
		"mini-tool goal add fix\x1b[2J it",
		"mini-tool goal add write docs",
		"mini-tool goal done 1\nmini-tool goal drop 3",
		"mini-tool goal list",
		"mini-tool goal done 4\nmini-tool goal done x\nmini-tool goal done\nmini-tool goal add\nmini-tool goal\nmini-tool goal finish 1\nmini-tool goal list 1",
		submit)
	for i, want := range []string{
		"there are no goals\n",
		"goal 1 is open: reproduce the bug\n1 goal: 1 open, 0 done\n",
		"goal 2 is open: fix\uFFFD[2J it\n2 goals: 2 open, 0 done\n",
		"goal 3 is open: write docs\n3 goals: 3 open, 0 done\n",
		"goal 1 is done: reproduce the bug\n3 goals: 2 open, 1 done\ngoal 3 is dropped: write docs\n3 goals: 1 open, 1 done, 1 dropped\n",
		"3 goals: 1 open, 1 done, 1 dropped\n  1 done     reproduce the bug\n  2 open     fix\uFFFD[2J it\n  3 dropped  write docs\n",
	} {
		checkEqual(t, want, outputs[i])
	}
	for _, want := range []string{
		`there is no goal "4"`, `there is no goal "x"`, "say the number of one goal", "the goal is missing", "say add, done, drop or list",
		`there is no goal "finish": say add`, "list takes nothing",
	} {
		if !strings.Contains(outputs[6], want) {
			t.Errorf("%q is not in %q", want, outputs[6])
		}
	}
}

// Goals are bounded and separate for each attempt; no goal of concurrent calls is lost.
func TestGoalsPerAttempt(t *testing.T) {
	goals := memory.NewGoals()
	var script strings.Builder
	for i := range memory.MaxGoals {
		fmt.Fprintf(&script, "mini-tool goal add number %d &\n", i)
	}
	rec := agent.NewMemoryRecorder()
	out := runAttempt(t, nil, rec, []tools.Tool{goals}, script.String(), "mini-tool goal list\nmini-tool goal add one more", submit)
	if !strings.HasPrefix(out[1], "100 goals: 100 open") || !strings.Contains(out[1], "100 open     number") || !strings.Contains(out[1], "there are 100 goals, and more are not kept") {
		t.Error(out[1])
	}
	if out := runAttempt(t, nil, agent.NewMemoryRecorder(), []tools.Tool{goals}, "mini-tool goal list", submit); out[0] != "there are no goals\n" {
		t.Error(out[0])
	}
	state, err := agent.ReadResumeState(rec.Records())
	if err != nil {
		t.Fatal(err)
	}
	last := len(state.Attempt.Entries) - 1
	state.Submitted = false
	state.Attempt.Rewind(state.Attempt.Entries[last-1].Record)
	resumed := runAttempt(t, state, agent.NewMemoryRecorder(), []tools.Tool{memory.NewGoals()}, "mini-tool goal list", submit)
	checkEqual(t, strings.Split(out[1], "mini-tool:")[0], resumed[0])
}

// A resumed attempt has the goals of the step at which it resumes, not those of
// later steps.
func TestGoalsAfterResume(t *testing.T) {
	rec := agent.NewMemoryRecorder()
	runAttempt(t, nil, rec, []tools.Tool{memory.NewGoals()},
		"mini-tool goal add one\nmini-tool goal add two", "mini-tool goal done 1", "mini-tool goal add three\nmini-tool goal drop 2", submit)
	var records []trajectories.Record
	messages := 0
	for r, err := range rec.Records() { // as if mini was killed during the third command
		if err != nil {
			t.Fatal(err)
		}
		if r.Type == trajectories.TypeMessage {
			messages++
		}
		if r.Type == trajectories.TypeExecution && messages == 7 {
			break
		}
		records = append(records, r)
	}
	if last := records[len(records)-1]; last.Type != trajectories.TypeTool {
		t.Fatalf("the last record is %s", last.Type)
	}
	state, err := agent.ReadResumeState(func(yield func(trajectories.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	goals := memory.NewGoals()
	out := runAttempt(t, state, agent.NewMemoryRecorder(), []tools.Tool{goals}, "mini-tool goal add four\nmini-tool goal list", submit)
	// The model has not seen the result of the third command, so the command runs
	// again before the first model call.
	checkEqual(t, "goal 3 is open: three\n3 goals: 2 open, 1 done\ngoal 2 is dropped: two\n3 goals: 1 open, 1 done, 1 dropped\n", out[0])
	checkEqual(t, "goal 4 is open: four\n4 goals: 2 open, 1 done, 1 dropped\n4 goals: 2 open, 1 done, 1 dropped\n"+
		"  1 done     one\n  2 dropped  two\n  3 open     three\n  4 open     four\n", out[1])
}

// Records are untrusted: changes that no call can have made are skipped.
func TestInvalidGoalRecords(t *testing.T) {
	calls := []trajectories.ToolCall{
		{Name: "goal", Details: []byte(`{"goal":{"id":1,"text":"new\u001b[2J","state":"done"},"revision":3}`)},
		{Name: "goal", Details: []byte(`{"goal":{"id":1,"text":"old","state":"open"},"revision":1}`)},
		{Name: "goal", Details: []byte(`[`)},
		{Name: "goal"},
		{Name: "note", Details: []byte(`{"goal":{"id":2,"text":"of another tool","state":"open"},"revision":9}`)},
		{Name: "goal", ExitCode: 1, Details: []byte(`{"goal":{"id":2,"text":"failed","state":"open"},"revision":9}`)},
		{Name: "goal", Details: []byte(`{"goal":{"id":2,"text":"strange","state":"huge"},"revision":4}`)},
		{Name: "goal", Details: []byte(`{"goal":{"id":-1,"text":"x","state":"open"},"revision":9}`)},
		{Name: "goal", Details: []byte(`{"goal":{"id":3,"text":"behind a gap","state":"open"},"revision":5}`)},
	}
	out := runAttempt(t, resumeWith(calls), agent.NewMemoryRecorder(), []tools.Tool{memory.NewGoals()}, "mini-tool goal list", submit)
	checkEqual(t, "1 goal: 0 open, 1 done\n  1 done     new\uFFFD[2J\n", out[0])
}

// resumeWith returns the state of an attempt whose start-up command made tool calls.
func resumeWith(calls []trajectories.ToolCall) *agent.ResumeState {
	a := &trajectories.Attempt{}
	for i, c := range calls {
		a.AddData(trajectories.Record{ID: i + 2, Type: trajectories.TypeTool}, c)
	}
	a.AddData(trajectories.Record{ID: len(calls) + 2, Type: trajectories.TypeExecution}, trajectories.Execution{})
	return &agent.ResumeState{Attempt: a, LastRecord: 1}
}

// tailCollector is the tool goal. It collects the tail variables after each call.
type tailCollector struct {
	*memory.Goals
	got []map[string]any
}

func (p *tailCollector) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	res, err := p.Goals.Call(ctx, c)
	p.got = append(p.got, p.TailVariables(c.Attempt))
	return res, err
}

func TestTail(t *testing.T) {
	p := &tailCollector{Goals: memory.NewGoals()}
	runAttempt(t, nil, agent.NewMemoryRecorder(), []tools.Tool{p, memory.RecallTool{}}, "mini-tool goal list\nmini-tool goal add one\nmini-tool goal done 1", submit)
	checkEqual(t, []map[string]any{
		{"goals": []map[string]any{}},
		{"goals": []map[string]any{{"id": 1, "text": "one", "state": "open"}}},
		{"goals": []map[string]any{{"id": 1, "text": "one", "state": "done"}}},
	}, p.got)
	checkEqual(t, map[string]any{"goals": []map[string]any{}}, newRegistry(t, p, memory.RecallTool{}).TailVariables(nil))
}
