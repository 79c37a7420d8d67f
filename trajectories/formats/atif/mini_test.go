package atif_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

var startTime = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// journalBuilder builds a journal with fixed times. Methods that add a record return its ID.
type journalBuilder struct {
	t       *testing.T
	records []trajectories.Record
}

func (b *journalBuilder) add(t trajectories.Type, data any) int {
	b.t.Helper()
	body, err := json.Marshal(data)
	require.NoError(b.t, err)
	n := len(b.records)
	b.records = append(b.records, trajectories.Record{
		ID: n + 1, Parent: n, Type: t, Time: startTime.Add(time.Duration(n) * time.Second), Data: body,
	})
	return n + 1
}

func (b *journalBuilder) message(cause trajectories.Cause, m model.Message, actions ...string) int {
	return b.add(trajectories.TypeMessage, trajectories.Message{Message: m, Cause: cause, Actions: actions})
}

func (b *journalBuilder) addCall(n int64, cost model.Cost) {
	b.add(trajectories.TypeCall, trajectories.Call{
		Usage: model.Usage{Prompt: 100 * n, Completion: 10 * n, CacheRead: 50 * n, CacheWrite: 7, CacheWriteHour: 3, Reasoning: 2},
		Cost:  cost, Finish: model.FinishToolCalls, Model: "model-2026", Start: b.nextTime(), Duration: trajectories.Seconds(time.Second), RequestCount: 1,
	})
}

func (b *journalBuilder) addExecution(command, output string, code int) {
	b.add(trajectories.TypeExecution, trajectories.Execution{
		Command: command, Output: trajectories.Bytes(output), Bytes: int64(len(output)), Chars: int64(len(output)),
		ExitCode: code, Start: b.nextTime(), Duration: trajectories.Seconds(250 * time.Millisecond),
	})
}

func (b *journalBuilder) nextTime() time.Time {
	return startTime.Add(time.Duration(len(b.records)) * time.Second)
}

func (b *journalBuilder) attempt() *trajectories.Attempt {
	b.t.Helper()
	t, err := trajectories.Fold(func(yield func(trajectories.Record, error) bool) {
		for _, r := range b.records {
			if !yield(r, nil) {
				return
			}
		}
	})
	require.NoError(b.t, err)
	return t
}

func (b *journalBuilder) addOutcome() {
	b.add(trajectories.TypeDiff, trajectories.Diff{Base: "abc", Patch: trajectories.Bytes("diff\xff\n"), Exact: true})
	o := trajectories.Outcome{
		Class: trajectories.Submitted, ExitStatus: "Submitted", Submission: trajectories.Bytes("diff --git a/x b/x\n"),
		Source: trajectories.SourceSubmitted, Start: startTime, End: b.nextTime(), Warnings: []string{"one"},
	}
	for _, r := range b.records {
		var c trajectories.Call
		if r.Type == trajectories.TypeCall && json.Unmarshal(r.Data, &c) == nil {
			o.Steps, o.Usage, o.Cost = o.Steps+1, o.Usage.Add(c.Usage), o.Cost+c.Cost
		}
	}
	b.add(trajectories.TypeOutcome, o)
}

func (b *journalBuilder) start(tools ...model.ToolDefinition) {
	b.add(trajectories.TypeHeader, trajectories.Header{
		Format: trajectories.Format, MiniVersion: "1.2", InstanceID: "demo__a-1", Attempt: 2, Repetition: 1, Image: "image:1",
		ModelClass: "openai", ModelName: "model", EnvironmentClass: "docker", Config: json.RawMessage(`{"agent":{"step_limit":3}}`), Tools: tools,
	})
	b.add(trajectories.TypeScrub, trajectories.Scrub{OK: true, Head: "abc"})
	b.addExecution("pip install .", "ok\n", 0)
	b.message(trajectories.CausePrompt, model.Message{Role: model.System, Content: "You <are> & \u2028 helpful."})
	b.message(trajectories.CausePrompt, model.Message{
		Role: model.User, Content: "Fix it.", Images: []model.Image{{MediaType: "image/png", Data: []byte("\x89PNG")}},
	})
}

// toolRun returns an attempt with tool calls and all kinds of records.
func toolAttempt(t *testing.T) *trajectories.Attempt {
	b := &journalBuilder{t: t}
	b.start(model.ToolDefinition{Name: "bash", Description: "Run it.", Parameters: json.RawMessage(`{"type":"object"}`)})
	b.add(trajectories.TypeContext, trajectories.PromptContext{Sent: []trajectories.ContextPart{{From: 5, To: 5}}})
	b.add(trajectories.TypeCall, trajectories.Call{Error: "429", Start: b.nextTime(), RequestCount: 10, Cost: 0.001})
	b.addCall(1, 0.25)
	b.message(trajectories.CauseReply, model.Message{
		Role: model.Assistant, Content: "Look.", Reasoning: "hm", ProviderData: json.RawMessage(`[{"signature":"x"}]`),
		ToolCalls: []model.ToolCall{
			{ID: "a", Name: "bash", Arguments: `{"command": "ls"}`},
			{ID: "b", Name: "bash", Arguments: `{"command":"false"}`},
			{ID: "c", Name: "bash", Arguments: `{"command":"never"}`},
		},
	}, "ls", "false", "never")
	b.addExecution("ls", "x\xfe\n", 0)
	first := b.message(trajectories.CauseObservation, model.Message{Role: model.Tool, ToolCallID: "a", Content: "<returncode>0</returncode>"})
	b.addExecution("false", "", 1)
	b.message(trajectories.CauseObservation, model.Message{Role: model.Tool, ToolCallID: "b", Content: "<returncode>1</returncode>"})
	b.message(trajectories.CauseRejection, model.Message{Role: model.Tool, ToolCallID: "c", Content: "no"})
	b.addCall(2, 0.5)
	b.message(trajectories.CauseReply, model.Message{
		Role: model.Assistant, ToolCalls: []model.ToolCall{{ID: "d", Name: "python", Arguments: `{"x`}, {ID: "d", Name: "bash", Arguments: `{}`}},
	}, "")
	b.message(trajectories.CauseFormatError, model.Message{Role: model.Tool, ToolCallID: "d", Content: "no such tool"})
	b.add(trajectories.TypeContext, trajectories.PromptContext{Sent: []trajectories.ContextPart{
		{From: first - 6, To: first - 6}, {Message: &model.Message{Role: model.User, Content: "left out"}}, {From: first, To: first + 2},
	}})
	b.addCall(3, 1)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "Nothing to call."})
	b.message(trajectories.CauseFormatError, model.Message{Role: model.User, Content: "your reply has no tool call"})
	b.addCall(3, 0)
	b.message(trajectories.CauseReply, model.Message{
		Role: model.Assistant, Content: "Done.",
		ToolCalls: []model.ToolCall{{ID: "e", Name: "bash", Arguments: `{"command":"submit"}`}, {ID: "f", Name: "bash", Arguments: `{"command":"more"}`}},
	}, "submit", "more")
	b.addExecution("submit", "diff", 0)
	b.add(trajectories.TypePatchCheck, trajectories.PatchCheck{Bytes: 4, Applies: true})
	b.message(trajectories.CauseNotRun, model.Message{Role: model.Tool, ToolCallID: "f", Content: "Not run."})
	b.addOutcome()
	return b.attempt()
}

// textRun returns an attempt with commands in the text of replies.
func textAttempt(t *testing.T) *trajectories.Attempt {
	b := &journalBuilder{t: t}
	b.start()
	b.addCall(1, 0.25)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nls\n```"}, "ls")
	b.addExecution("ls", "x\n", 2)
	b.message(trajectories.CauseObservation, model.Message{Role: model.User, Content: "x\n"})
	b.addCall(1, 0.25)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "two blocks"}, "a", "b")
	b.message(trajectories.CauseFormatError, model.Message{Role: model.User, Content: "one block"})
	b.addCall(1, 0.25)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nrm -rf x\n```"}, "rm -rf x")
	b.message(trajectories.CauseRejection, model.Message{Role: model.User, Content: "no"})
	b.addCall(1, 0.25)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nsubmit\n```"}, "submit")
	b.addExecution("submit", "patch", 0)
	b.add(trajectories.TypePatchCheck, trajectories.PatchCheck{Bytes: 4, ReportedToModel: true})
	b.message(trajectories.CauseMalformedPatch, model.Message{Role: model.User, Content: "does not apply"})
	b.add(trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Interrupted, ExitStatus: "Interrupted", Steps: 4})
	last := len(b.records)
	b.add(trajectories.TypeResume, trajectories.Resume{MiniVersion: "1.3", Record: last - 2})
	b.add(trajectories.TypeReplay, trajectories.Replay{Record: 3, Match: "exact"})
	b.addCall(1, 0.25)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nsubmit\n```"}, "submit")
	b.addExecution("submit", "diff", 0)
	b.addOutcome()
	return b.attempt()
}

// userRun returns an attempt with messages and commands of the user.
func userAttempt(t *testing.T) *trajectories.Attempt {
	user := func(text string) model.Message { return model.Message{Role: model.User, Content: text} }
	b := &journalBuilder{t: t}
	b.start()
	b.add(trajectories.TypeExecution, trajectories.Execution{Command: "pwd", Output: []byte("/\n"), ByUser: true})
	b.message(trajectories.CauseUserCommand, user("The user ran a command: pwd"), "pwd")
	b.addCall(1, 0.25)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nls\n```"}, "ls")
	b.add(trajectories.TypeDecision, trajectories.CommandDecision{Command: "ls", Decision: trajectories.Decision{
		Action: trajectories.Allow, By: "user", Previous: []trajectories.Decision{{Action: trajectories.Ask, By: "rule", Rule: "ls"}},
	}})
	b.addExecution("ls", "x\n", 2)
	b.message(trajectories.CauseObservation, user("x\n"))
	b.message(trajectories.CauseInterruption, user("use find"))
	b.message(trajectories.CauseSteer, user("and be quick"))
	b.add(trajectories.TypeLimits, trajectories.Limits{Steps: 3})
	b.add(trajectories.TypeExecution, trajectories.Execution{Command: "ls -a", Output: []byte(".\n"), ByUser: true})
	b.message(trajectories.CauseUserCommand, user("The user ran a command: ls -a"), "ls -a")
	b.addCall(1, 0.25)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nsubmit\n```"}, "submit")
	b.addExecution("submit", "patch", 0)
	b.message(trajectories.CauseFollowUp, user("now the docs"))
	b.addCall(1, 0.25)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nsubmit\n```"}, "submit")
	b.addExecution("submit", "diff", 0)
	b.addOutcome()
	return b.attempt()
}

// checkRestored checks that writing and reading a document did not change an attempt, except
// for record IDs and the import record.
func checkRestored(t *testing.T, before, after *trajectories.Attempt) {
	t.Helper()
	opts := cmp.Options{
		cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(trajectories.Attempt{}, "Import", "Compactions", "Totals"),
		cmpopts.IgnoreUnexported(trajectories.Attempt{}),
		cmpopts.IgnoreFields(trajectories.Call{}, "Record", "Raw"),
		cmpopts.IgnoreFields(trajectories.ToolCall{}, "Record"),
		cmpopts.IgnoreFields(trajectories.Note{}, "Abandoned"),
		cmpopts.IgnoreFields(trajectories.Entry{}, "Record", "Context", "ContextRecord"),
		cmpopts.IgnoreFields(trajectories.Execution{}, "Record"),
		cmpopts.IgnoreFields(trajectories.Record{}, "ID", "Parent", "Data"),
	}
	assert.NoDiff(t, cmp.Diff(before, after, opts), "differs (-journal +read again)")
	for i, e := range before.Entries {
		o := after.Entries[i]
		require.Equal(t, o.Context == nil, e.Context == nil, "entry %d: context %v, then %v", i, e.Context, o.Context)
		if e.Context == nil {
			continue
		}
		for k, part := range e.Context.Sent {
			reread := o.Context.Sent[k]
			if entryIndex(before, part.From) != entryIndex(after, reread.From) ||
				entryIndex(before, part.To) != entryIndex(after, reread.To) {
				t.Errorf("entry %d: sent part %d: %v, then %v", i, k, part, reread)
			}
		}
	}
}

// entryIndex returns the index of the entry of a record, or -1.
func entryIndex(t *trajectories.Attempt, record int) int {
	for i, e := range t.Entries {
		if e.Record == record {
			return i
		}
	}
	return -1
}

func TestOwnRoundTrip(t *testing.T) {
	for name, tr := range map[string]*trajectories.Attempt{"tools": toolAttempt(t), "text": textAttempt(t), "watched": userAttempt(t)} {
		t.Run(name, func(t *testing.T) {
			doc, lost := write(t, tr, "resolved")
			assert.NoError(t, validate(t, doc))
			assert.Equal(t, 0, len(lost), "lost: %q", lost)
			f, reread := readAttempt(t, "a.json", doc)
			checkRestored(t, tr, reread)
			if f.Header.InstanceID != "demo__a-1" || len(f.Header.Tools) != len(tr.Header.Tools) {
				t.Errorf("header %+v", f.Header)
			}
			second, _ := write(t, reread, "resolved")
			_, third := readAttempt(t, "a.json", second)
			checkRestored(t, reread, third)
			golden.Check(t, filepath.Join("testdata", name+".json"), doc)
		})
	}
}

// TestCompactionRoundTrip checks that a document has a step for each compaction, and that
// reading it restores the prompts.
func TestCompactionRoundTrip(t *testing.T) {
	b := &journalBuilder{t: t}
	user := func(text string) model.Message { return model.Message{Role: model.User, Content: text} }
	b.add(trajectories.TypeHeader, trajectories.Header{Format: trajectories.Format, InstanceID: "i", Attempt: 1, MiniVersion: "1"})
	b.message(trajectories.CausePrompt, model.Message{Role: model.System, Content: "system"})
	b.message(trajectories.CausePrompt, user("task"))
	var replies, answers []int
	step := func(n int) {
		b.addCall(int64(n), 0.25)
		replies = append(replies, b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nls\n```"}, "ls"))
		b.addExecution("ls", "x\n", 0)
		answers = append(answers, b.message(trajectories.CauseObservation, user("x\n")))
	}
	step(1)
	step(2)
	b.add(trajectories.TypeSummary, trajectories.Call{Usage: model.Usage{Prompt: 9}, Cost: 0.5, Start: b.nextTime(), RequestCount: 1})
	b.add(trajectories.TypeCompaction, trajectories.Compaction{Policy: "summarize", TokensBefore: 9, TokensAfter: 3, Replaced: []trajectories.Replacement{
		{From: replies[0], To: answers[0], Join: true, Message: user("what happened")},
	}})
	b.add(trajectories.TypeContext, trajectories.PromptContext{Sent: []trajectories.ContextPart{{From: 2, To: answers[1]}}, Tail: "the goals"})
	step(3)
	b.addOutcome()
	tr := b.attempt()
	doc, lost := write(t, tr, "")
	assert.NoError(t, validate(t, doc))
	assert.Equal(t, 0, len(lost), "lost: %q", lost)
	for _, text := range []string{
		`"source":"system","message":"what happened"`, `"context_management":{"type":"compaction","boundary":"replace"}`,
		`"context_management":{"type":"injection","boundary":"append"}`,
	} {
		if !bytes.Contains(doc, []byte(text)) {
			t.Errorf("no %s in %s", text, doc)
		}
	}
	f, reread := readAttempt(t, "a.json", doc)
	checkRestored(t, tr, reread)
	var before, after [][]model.Message
	for p, err := range trajectories.Prompts(tr.Records()) {
		require.NoError(t, err)
		before = append(before, p.Messages)
	}
	for p, err := range trajectories.Prompts(f.Records) {
		require.NoError(t, err)
		after = append(after, p.Messages)
	}
	if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" || len(after) != 3 || len(after[2]) != 4 {
		t.Errorf("prompts (-written +read):\n%s", diff)
	}
}

// shortAttempt returns an attempt with one message and one command.
func shortAttempt(t *testing.T, h trajectories.Header, command string, calls ...trajectories.ToolCall) *trajectories.Attempt {
	t.Helper()
	b := &journalBuilder{t: t}
	h.Format, h.InstanceID, h.Attempt = trajectories.Format, "a__b-1", 1
	b.add(trajectories.TypeHeader, h)
	b.message(trajectories.CausePrompt, model.Message{Role: model.System, Content: "system"})
	b.message(trajectories.CausePrompt, model.Message{Role: model.User, Content: "task"})
	b.addCall(1, 0.5)
	b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "do"}, command)
	for _, c := range calls {
		b.add(trajectories.TypeTool, c)
	}
	b.addExecution(command, "out", 0)
	b.message(trajectories.CauseObservation, model.Message{Role: model.User, Content: "out"})
	b.addOutcome()
	return b.attempt()
}

// childTool returns a tool call that started the given children.
func childTool(children ...int) trajectories.ToolCall {
	var list []trajectories.ChildResult
	for _, n := range children {
		list = append(list, trajectories.ChildResult{Child: n, Task: "x", Class: trajectories.Submitted, ExitStatus: "Submitted"})
	}
	details, _ := json.Marshal(map[string]any{"children": list})
	return trajectories.ToolCall{Name: "delegate", Details: details}
}

// childHeader returns the header of child n, which parentChild started.
func childHeader(n, parentChild int) trajectories.Header {
	return trajectories.Header{Parent: &trajectories.Parent{Child: n, ParentChild: parentChild, Depth: 1 + min(parentChild, 1), Step: 1, Task: "x"}}
}

func TestChildren(t *testing.T) {
	tr := shortAttempt(t, trajectories.Header{}, "mini-tool delegate x; mini-tool delegate y", childTool(1), childTool(3))
	tr.Children = []*trajectories.Attempt{
		shortAttempt(t, childHeader(3, 0), "c"), shortAttempt(t, childHeader(1, 0), "mini-tool delegate z", childTool(2)), shortAttempt(t, childHeader(2, 1), "b"),
	}
	data, losses := write(t, tr, "")
	assert.Equal(t, 0, len(losses), "lost: %v", losses)
	assert.NoError(t, validate(t, data))
	var doc validTrajectory
	require.NoError(t, json.Unmarshal(data, &doc))
	var got []string
	refs := func(doc validTrajectory) {
		for _, s := range doc.Steps {
			for _, r := range s.Observation.Results {
				for _, ref := range r.Refs {
					got = append(got, ref.ID)
				}
			}
		}
	}
	refs(doc)
	for _, sub := range doc.Subagents {
		got = append(got, "in "+sub.ID)
		refs(sub)
		for _, inner := range sub.Subagents {
			got = append(got, "in "+inner.ID)
		}
	}
	if want := []string{"child-1", "child-3", "in child-1", "child-2", "in child-2", "in child-3"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	f, restored := readAttempt(t, "a.json", data)
	for _, c := range f.Children {
		tr2, err := trajectories.Fold(c)
		require.NoError(t, err)
		restored.Children = append(restored.Children, tr2)
	}
	rewritten, _ := write(t, restored, "")
	if !bytes.Equal(rewritten, data) && len(f.Children) == 3 {
		// Reading may only add the import record.
		var a, b any
		_, _ = json.Unmarshal(data, &a), json.Unmarshal(rewritten, &b)
		dropImport(a)
		dropImport(b)
		assert.Equal(t, a, b, "b")
	}
	assert.Equal(t, 3, len(f.Children), "children after reading")
}

// dropImport removes the import record, and all record IDs, which it shifts.
func dropImport(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"import", "record", "execution", "records", "id", "parent_id"} {
			delete(v, key)
		}
		for _, element := range v {
			dropImport(element)
		}
	case []any:
		for _, element := range v {
			dropImport(element)
		}
	}
}

// TestUnknownNumbers checks that counts and costs that no server reported are missing, not 0.
func TestUnknownNumbers(t *testing.T) {
	for name, call := range map[string]*trajectories.Call{
		"no call":       nil,
		"no usage":      {Usage: model.Usage{Unpriced: 1}},
		"without price": {Usage: model.Usage{Prompt: 9, Completion: 3, Unpriced: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &journalBuilder{t: t}
			b.start()
			if call != nil {
				b.add(trajectories.TypeCall, *call)
				b.message(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "I stop."})
			}
			b.addOutcome()
			data, _ := write(t, b.attempt(), "")
			assert.NoError(t, validate(t, data))
			var doc struct {
				Extra struct {
					Usage *model.Usage `json:"usage"`
					Cost  *float64     `json:"cost"`
				} `json:"extra"`
				Totals map[string]any `json:"final_metrics"`
			}
			require.NoError(t, json.Unmarshal(data, &doc))
			if doc.Extra.Cost != nil || (doc.Extra.Usage == nil) != (call == nil) {
				t.Errorf("extra: usage %v, cost %v", doc.Extra.Usage, doc.Extra.Cost)
			}
			isCounted := call != nil && call.Usage.Prompt > 0
			for key, want := range map[string]bool{
				"total_prompt_tokens": isCounted, "total_completion_tokens": isCounted, "total_cached_tokens": false, "total_cost_usd": false,
			} {
				if n, ok := doc.Totals[key]; ok != want {
					t.Errorf("%s is %v", key, n)
				}
			}
		})
	}
}
