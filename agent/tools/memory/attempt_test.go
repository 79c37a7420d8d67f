package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
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
	require.NoError(t, err)
	m := &scriptedModel{}
	for _, c := range commands {
		m.texts = append(m.texts, commandReply(c))
	}
	out := a.Run(t.Context(), agent.Session{
		Model: m, Environment: toolSandbox{}, Recorder: rec, Resume: state, Task: agent.Task{Text: "the task"}, Tools: newRegistry(t, list...),
	})
	require.Equal(t, "", out.Error, "%+v", out)
	var outputs []string
	for r, err := range rec.Records() {
		if err != nil || r.Type != trajectories.TypeExecution {
			continue
		}
		var x trajectories.Execution
		require.NoError(t, json.Unmarshal(r.Data, &x))
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
		assert.Contains(t, outputs[6], want)
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
	assert.Equal(t, "there are no goals\n", runAttempt(t, nil, agent.NewMemoryRecorder(), []tools.Tool{goals}, "mini-tool goal list", submit)[0])
	state, err := agent.ReadResumeState(rec.Records())
	require.NoError(t, err)
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
		require.NoError(t, err)
		if r.Type == trajectories.TypeMessage {
			messages++
		}
		if r.Type == trajectories.TypeExecution && messages == 7 {
			break
		}
		records = append(records, r)
	}
	require.Equal(t, trajectories.TypeTool, records[len(records)-1].Type, "the last record")
	state, err := agent.ReadResumeState(func(yield func(trajectories.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	})
	require.NoError(t, err)
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

// callTool calls a tool as a command does.
func callTool(t *testing.T, registry *tools.Registry, input string, args ...string) (output string, code int, details string) {
	t.Helper()
	a := registry.Handle(t.Context(), agent.ToolRequest{ToolRequest: env.ToolRequest{Args: args, Stdin: []byte(input)}})
	data, err := json.Marshal(a.Details)
	require.NoError(t, err)
	return string(a.Stdout) + string(a.Stderr), a.ExitCode, string(data)
}

func newRegistry(t *testing.T, list ...tools.Tool) *tools.Registry {
	t.Helper()
	r, err := tools.New(tools.Config{Tools: list})
	require.NoError(t, err)
	return r
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\dZ)?`)

func TestNoteTools(t *testing.T) {
	registry := newRegistry(t, memory.NoteTools(newStore(t))...)
	for _, tt := range []struct {
		args    string // separated by |
		input   string
		code    int
		output  string // its beginning
		details string
	}{
		{"notes", "", 0, "there are no notes\n", `{"notes":0}`},
		{"note|add|--category|Build|make helper|first", "", 0, "noted as 1 in build\n", `{"note":{"id":1,"category":"build","text":"make helper first","time":"TIME"}}`},
		{"note|add|-", "two\nlines \x1b[2J\u202e\n", 0, "noted as 2 in general\n", ""},
		{"note|add|--category=build|make helper first", "", 0, "note 1 in build says so already\n", ""},
		{"note|add|--|--dashes first", "", 0, "noted as 3 in general\n", ""},
		{"notes", "", 0, "3 notes, times in UTC\n\nbuild\n  1  TIME  make helper first\n\n" +
			"general\n  2  TIME  two\n      lines \uFFFD[2J\uFFFD\n  3  TIME  --dashes first\n", `{"notes":3}`},
		{"notes|--category|BUILD", "", 0, "1 note, times in UTC\n\nbuild\n", `{"notes":1}`},
		{"notes|--limit|1", "", 0, "1 note, times in UTC; 2 notes left out, the oldest (--limit and --category choose)\n\ngeneral\n  3", ""},
		{"note|remove|2", "", 0, "note 2 is removed\n", `{"removed":{"id":2,"category":"general","text":"two\nlines \u001b[2J` + "\u202e" + `","time":"TIME"}}`},
		{"note|remove|2", "", 2, "mini-tool: note: there is no note 2\n", "null"},
		{"note|remove|x", "", 2, `mini-tool: note: "x" is no number of a note`, "null"},
		{"note|remove", "", 2, "mini-tool: note: remove takes the number of a note", "null"},
		{"note", "", 2, "mini-tool: note: say add or remove", "null"},
		{"note|ad|x", "", 2, `mini-tool: note: there is no note "ad": say add or remove`, "null"},
		{"note|add", "", 2, "mini-tool: note: the note is missing", "null"},
		{"note|add|-", " \n", 2, "mini-tool: note: the note is missing", "null"},
		{"note|add|--category|a b|x", "", 2, `mini-tool: note: "a b" is no category`, "null"},
		{"note|add|--categry|a|x", "", 2, `mini-tool: note: there is no flag "--categry"; did you mean --category?`, "null"},
		{"note|add|-", strings.Repeat("x", 5000), 2, "mini-tool: note: the note has 5000 bytes", "null"},
		{"notes|all", "", 2, `mini-tool: notes: notes takes flags only, not "all"`, "null"},
		{"notes|--limit|0", "", 2, "mini-tool: notes: --limit is a whole number from 1 to 500", "null"},
		{"notes|--category|a/b", "", 2, `mini-tool: notes: "a/b" is no category`, "null"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			output, code, details := callTool(t, registry, tt.input, strings.Split(tt.args, "|")...)
			output, details = times.ReplaceAllString(output, "TIME"), times.ReplaceAllString(details, "TIME")
			if code != tt.code || !strings.HasPrefix(output, tt.output) {
				t.Errorf("%d %q, not %q", code, output, tt.output)
			}
			if tt.details != "" && details != tt.details {
				t.Errorf("details %s, not %s", details, tt.details)
			}
			if code == 2 && !strings.Contains(output, "mini-tool note") {
				t.Errorf("there is no usage in %q", output)
			}
		})
	}
}

// A listing has the newest notes that fit, even if the file has more.
func TestListIsBounded(t *testing.T) {
	s := newStore(t)
	writeFile(t, s.Path(), `{"version":1,"next":1,"notes":[`+encodedNotes(60, 4096)+"]}")
	output, _, _ := callTool(t, newRegistry(t, memory.NoteTools(s)...), "", "notes")
	if !strings.HasPrefix(output, "11 notes, times in UTC; 49 notes left out, the oldest") || len(output) > 50<<10 {
		t.Errorf("%d bytes: %.100s", len(output), output)
	}
}

// The model sees the error, but not the path of the file.
func TestErrorsHideHostPaths(t *testing.T) {
	s := newStore(t)
	writeFile(t, s.Path(), "no notes")
	registry := newRegistry(t, memory.NoteTools(s)...)
	output, code, details := callTool(t, registry, "", "notes")
	if code != 1 || !strings.Contains(output, "read notes: invalid JSON: invalid character") {
		t.Errorf("%d %q %s", code, output, details)
	}
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	registry = newRegistry(t, memory.NoteTools(memory.NewStore(filepath.Join(file, "notes.json")))...)
	for _, args := range [][]string{{"note", "add", "x"}, {"notes"}} {
		output, code, details = callTool(t, registry, "", args...)
		if code != 1 || !strings.Contains(output, "notes cannot be kept: not a directory") || strings.Contains(output, "/") || !strings.Contains(details, file) {
			t.Errorf("%d %q %s", code, output, details)
		}
	}
}

func FuzzFile(f *testing.F) {
	for _, text := range []string{"", fullFile(), fileWithNote(`{"id":1,"category":"a","text":"x\u001b[0m","time":"2026-11-22T17:00:00Z"}`), `{"version":2}`, "[]"} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "notes.json")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		s := memory.NewStore(path)
		before, err := s.Notes()
		if err != nil {
			return
		}
		// Notes that can be read stay unchanged when a note is added.
		if list := memory.FormatNotes(before, memory.MaxNotes); strings.ContainsAny(list, "\x1b\r\x00\u202e") || len(list) > 80<<10 {
			t.Errorf("%d bytes: %q", len(list), list)
		}
		_, err = s.Add(t.Context(), "fuzz", "added")
		if err != nil && len(before) < memory.MaxNotes {
			t.Fatal(err)
		}
		after, err := s.Notes()
		require.NoError(t, err)
		if len(after) < len(before) {
			t.Errorf("%d notes of %d are left", len(after), len(before))
		}
		for i, n := range before {
			if !n.Time.Equal(after[i].Time) || n.ID != after[i].ID || n.Text != after[i].Text {
				t.Errorf("note %d was %+v, and is %+v", i, n, after[i])
			}
		}
	})
}

func TestRecall(t *testing.T) {
	var long strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&long, "line %d of the log\n", i+1)
	}
	out := runAttempt(t, nil, agent.NewMemoryRecorder(), []tools.Tool{memory.RecallTool{}},
		"hello wide World",
		long.String(),
		"é"+strings.Repeat("ü", 9000),
		"mini-tool recall 1",
		"mini-tool recall 2",
		"mini-tool recall 2 --full",
		"mini-tool recall 2 --offset 6005 --limit 2\nmini-tool recall 2 --offset 6010",
		"mini-tool recall 3",
		"mini-tool recall 9",
		"mini-tool recall --search=WORLD",
		"mini-tool recall --search nowhere-to-be-found",
		"mini-tool recall --search line",
		"mini-tool recall 99\nmini-tool recall x\nmini-tool recall\nmini-tool recall 1 2\nmini-tool recall --search a b\nmini-tool recall --search\nmini-tool recall 1 --limit 0\nmini-tool recall 0",
		submit)

	checkEqual(t, "step 1 of 4\n--- your reply\nI think.\n```bash\nhello wide World\n```\n--- what came of it\nhello wide World\n", out[3])

	if s := out[4]; len(s) > 14<<10 || !strings.HasPrefix(s, "step 2 of 5\n--- your reply\nI think.\n```bash\nline 1 of the log\n") ||
		strings.Count(s, " lines left out; mini-tool recall 2 --full shows them]\n") != 2 || !strings.HasSuffix(s, "line 3000 of the log\n") {
		t.Errorf("%d bytes: %.300s", len(s), s)
	}
	if s := out[5]; !strings.HasPrefix(s, "step 2 of 6, lines 1 to 400 of 6006\n") || !strings.HasSuffix(s, "[mini-tool recall 2 --offset 401 goes on]\n") || strings.Count(s, "\n") != 402 {
		t.Errorf("%d bytes: %.100s", len(s), s)
	}
	checkEqual(t, "step 2 of 7, lines 6005 to 6006 of 6006\nline 2999 of the log\nline 3000 of the log\n"+
		"mini-tool: recall: step 2 has 6006 lines\n", strings.SplitAfter(out[6], "6006 lines\n")[0])
	if s := out[7]; strings.Count(s, "ü") < 4000 || strings.Contains(s, "\uFFFD") || len(longLines(s, 2000)) > 0 {
		t.Errorf("%d bytes, %d letters, long lines: %v", len(s), strings.Count(s, "ü"), longLines(s, 2000))
	}
	checkEqual(t, "step 9 of 9\n--- your reply\nI think.\n```bash\nmini-tool recall 9\n```\n--- what came of it\nnothing yet\n", out[8])
	checkEqual(t, "\"WORLD\" is in 2 steps\nstep 1\n  hello wide World\n  hello wide World\nstep 4\n  hello wide World\n  hello wide World\n", out[9])
	checkEqual(t, "no step before this one has \"nowhere-to-be-found\"\n", out[10])
	if s := out[11]; !strings.Contains(s, "step 2\n  line 1 of the log\n  line 2 of the log\n  line 3 of the log\n  and 5997 lines more\n") || len(s) > 10<<10 {
		t.Errorf("%d bytes: %.300s", len(s), s)
	}
	for _, want := range []string{
		`there is no step "99"; there are 13 so far`, `there is no step "x"`, `there is no step "0"`, "say the number of one step, or --search TEXT",
		"--search takes one text, in quotes", "--search needs a value", "--limit is a whole number from 1 to 5000",
	} {
		assert.Contains(t, out[12], want)
	}
}

// longLines returns the lengths of the lines longer than limit.
func longLines(s string, limit int) (lengths []int) {
	for line := range strings.Lines(s) {
		if len(line) > limit+1 {
			lengths = append(lengths, len(line))
		}
	}
	return lengths
}

// Steps that a compaction removed can be recalled, also in a resumed session.
func TestRecallAfterCompaction(t *testing.T) {
	cfg := config()
	cfg.Compaction, cfg.CompactionTokens, cfg.CompactionKeep = agent.CompactionElide, 1, 2
	rec := agent.NewMemoryRecorder()
	const want = "step 1 of 4\n--- your reply\nI think.\n```bash\nfirst things\n```\n--- what came of it\nfirst things\n"
	out := runAttemptWith(t, cfg, nil, rec, []tools.Tool{memory.RecallTool{}}, "first things", "second", "third", "mini-tool recall 1", submit)
	checkEqual(t, want, out[3])
	state, err := agent.ReadResumeState(rec.Records())
	require.NoError(t, err)
	last := len(state.Attempt.Entries) - 1
	state.Submitted = false
	state.Attempt.Rewind(state.Attempt.Entries[last-1].Record)
	resumed := runAttemptWith(t, cfg, state, agent.NewMemoryRecorder(), []tools.Tool{memory.RecallTool{}}, "mini-tool recall 1", submit)
	checkEqual(t, strings.Replace(want, "of 4", "of 5", 1), resumed[0])
}

// The pages of a step together contain the whole step.
func TestPagesContainTheWholeStep(t *testing.T) {
	var text strings.Builder
	for i := 1; i < 700; i++ {
		fmt.Fprintf(&text, "%d %s\n", i, strings.Repeat("y", i))
	}
	next := regexp.MustCompile(`\[mini-tool recall 1 --offset (\d+) goes on\]\n$`)
	var got strings.Builder
	for offset := 1; offset > 0; {
		out := runAttempt(t, nil, agent.NewMemoryRecorder(), []tools.Tool{memory.RecallTool{}}, text.String(), fmt.Sprint("mini-tool recall 1 --offset ", offset), submit)[1]
		if len(out) > 33<<10 {
			t.Fatalf("a page of %d bytes", len(out))
		}
		_, out, _ = strings.Cut(out, "\n")
		offset = 0
		if m := next.FindStringSubmatch(out); m != nil {
			offset, _ = strconv.Atoi(m[1])
		}
		got.WriteString(next.ReplaceAllString(out, ""))
	}
	want := "--- your reply\nI think.\n```bash\n" + text.String() + "\n```\n--- what came of it\n" + text.String()
	if got.String() != want {
		at := 0
		for at < min(len(want), got.Len()) && want[at] == got.String()[at] {
			at++
		}
		t.Errorf("%d bytes came, not %d; at %d %.80q is not %.80q", got.Len(), len(want), at, got.String()[at:], want[at:])
	}
}

// The result of a search is bounded.
func TestSearchIsBounded(t *testing.T) {
	var commands []string
	for i := range 60 {
		commands = append(commands, fmt.Sprintf("%d the needle %s", i, strings.Repeat("z", 5000)))
	}
	out := runAttempt(t, nil, agent.NewMemoryRecorder(), []tools.Tool{memory.RecallTool{}}, append(commands, "mini-tool recall --search needle", submit)...)
	s := out[60]
	if !strings.HasPrefix(s, "\"needle\" is in 60 steps\nstep 1\n  0 the needle zzz") || !strings.HasSuffix(s, "and 30 steps more; search for something rarer\n") || len(s) > 20<<10 {
		t.Errorf("%d bytes: %.200s", len(s), s)
	}
}
