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

// asking is a sandbox whose commands only call tools: each line "mini-tool ..." is
// a call, lines that end with & run concurrently, and other lines are output.
type asking struct{}

func (asking) Info() env.Info              { return env.Info{Dir: "/", Tools: true} }
func (asking) Close(context.Context) error { return nil }
func (asking) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	var out strings.Builder
	var mu sync.Mutex
	var calls sync.WaitGroup
	for line := range strings.Lines(c.Script) {
		line, together := strings.CutSuffix(strings.TrimSpace(line), "&")
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
		if !together {
			calls.Wait()
		}
	}
	calls.Wait()
	return env.Result{Output: []byte(out.String()), Bytes: int64(out.Len()), Chars: int64(out.Len())}, nil
}

// saying is a model that replies with texts in order.
type saying struct{ texts []string }

func (s *saying) Query(ctx context.Context, _ []model.Message) (model.Reply, error) {
	if len(s.texts) == 0 {
		<-ctx.Done()
		return model.Reply{}, ctx.Err()
	}
	text := s.texts[0]
	s.texts = s.texts[1:]
	return model.Reply{Message: model.Message{Role: model.Assistant, Content: text}, FinishReason: model.FinishStop, Tries: 1}, nil
}

// runs returns a reply with a command.
func runs(command string) string { return "I think.\n```bash\n" + command + "\n```" }

const submit = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

// config returns the configuration of all attempts.
func config() agent.Config {
	return agent.Config{
		SystemTemplate: "system", InstanceTemplate: "{{.task}}", ObservationTemplate: "{{.output}}", FormatErrorTemplate: "{{.error}}",
		MaxFormatErrors: 3, StepLimit: 10_000, Observation: agent.Observation{MaxChars: 1_000_000},
	}
}

// attempt runs one command per step and returns their outputs and the records.
func attempt(t *testing.T, past *agent.ResumeState, rec *agent.MemoryRecorder, list []tools.Tool, commands ...string) []string {
	t.Helper()
	return attemptBy(t, config(), past, rec, list, commands...)
}

func attemptBy(t *testing.T, cfg agent.Config, past *agent.ResumeState, rec *agent.MemoryRecorder, list []tools.Tool, commands ...string) []string {
	t.Helper()
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := &saying{}
	for _, c := range commands {
		m.texts = append(m.texts, runs(c))
	}
	out := a.Run(t.Context(), agent.Session{
		Model: m, Environment: asking{}, Recorder: rec, Resume: past, Task: agent.Task{Text: "the task"}, Tools: box(t, list...),
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
	outputs := attempt(t, nil, agent.NewMemoryRecorder(), []tools.Tool{memory.NewGoals()},
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
		same(t, want, outputs[i])
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

// Goals are bounded and separate for each attempt; concurrent calls lose none.
func TestGoalsOfAttempts(t *testing.T) {
	goals := memory.NewGoals()
	var script strings.Builder
	for i := range memory.MaxGoals {
		fmt.Fprintf(&script, "mini-tool goal add number %d &\n", i)
	}
	rec := agent.NewMemoryRecorder()
	out := attempt(t, nil, rec, []tools.Tool{goals}, script.String(), "mini-tool goal list\nmini-tool goal add one more", submit)
	if !strings.HasPrefix(out[1], "100 goals: 100 open") || !strings.Contains(out[1], "100 open     number") || !strings.Contains(out[1], "there are 100 goals, and more are not kept") {
		t.Error(out[1])
	}
	if out := attempt(t, nil, agent.NewMemoryRecorder(), []tools.Tool{goals}, "mini-tool goal list", submit); out[0] != "there are no goals\n" {
		t.Error(out[0])
	}
	past, err := agent.ReadResumeState(rec.Records())
	if err != nil {
		t.Fatal(err)
	}
	past.Submitted, past.Entries = false, past.Entries[:len(past.Entries)-1]
	again := attempt(t, past, agent.NewMemoryRecorder(), []tools.Tool{memory.NewGoals()}, "mini-tool goal list", submit)
	same(t, strings.Split(out[1], "mini-tool:")[0], again[0])
}

// A resumed attempt has the goals of the step at which it resumes, not those of
// later steps.
func TestGoalsComeBack(t *testing.T) {
	rec := agent.NewMemoryRecorder()
	attempt(t, nil, rec, []tools.Tool{memory.NewGoals()},
		"mini-tool goal add one\nmini-tool goal add two", "mini-tool goal done 1", "mini-tool goal add three\nmini-tool goal drop 2", submit)
	var kept []trajectories.Record
	messages := 0
	for r, err := range rec.Records() { // as if mini had died in the third command
		if err != nil {
			t.Fatal(err)
		}
		if r.Type == trajectories.TypeMessage {
			messages++
		}
		if r.Type == trajectories.TypeExecution && messages == 7 {
			break
		}
		kept = append(kept, r)
	}
	if last := kept[len(kept)-1]; last.Type != trajectories.TypeTool {
		t.Fatalf("the last record is %s", last.Type)
	}
	past, err := agent.ReadResumeState(func(yield func(trajectories.Record, error) bool) {
		for _, r := range kept {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	goals := memory.NewGoals()
	out := attempt(t, past, agent.NewMemoryRecorder(), []tools.Tool{goals}, "mini-tool goal add four\nmini-tool goal list", submit)
	// The third command was not told of, and is run again before anything is asked.
	same(t, "goal 3 is open: three\n3 goals: 2 open, 1 done\ngoal 2 is dropped: two\n3 goals: 1 open, 1 done, 1 dropped\n", out[0])
	same(t, "goal 4 is open: four\n4 goals: 2 open, 1 done, 1 dropped\n4 goals: 2 open, 1 done, 1 dropped\n"+
		"  1 done     one\n  2 dropped  two\n  3 open     three\n  4 open     four\n", out[1])
}

// Records are untrusted: changes that no call can have made are skipped.
func TestGoalsOfStrangeRecords(t *testing.T) {
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
	out := attempt(t, &agent.ResumeState{LastRecord: 1, ToolCalls: calls}, agent.NewMemoryRecorder(), []tools.Tool{memory.NewGoals()}, "mini-tool goal list", submit)
	same(t, "1 goal: 0 open, 1 done\n  1 done     new\uFFFD[2J\n", out[0])
}

// tailed requests the tail variables, as the agent does between commands.
type tailed struct {
	*memory.Goals
	got []map[string]any
}

func (p *tailed) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	res, err := p.Goals.Call(ctx, c)
	p.got = append(p.got, p.TailVariables(c.Attempt))
	return res, err
}

func TestTail(t *testing.T) {
	p := &tailed{Goals: memory.NewGoals()}
	attempt(t, nil, agent.NewMemoryRecorder(), []tools.Tool{p, memory.RecallTool{}}, "mini-tool goal list\nmini-tool goal add one\nmini-tool goal done 1", submit)
	same(t, []map[string]any{
		{"goals": []map[string]any{}},
		{"goals": []map[string]any{{"id": 1, "text": "one", "state": "open"}}},
		{"goals": []map[string]any{{"id": 1, "text": "one", "state": "done"}}},
	}, p.got)
	same(t, map[string]any{"goals": []map[string]any{}}, box(t, p, memory.RecallTool{}).TailVariables(nil))
}
