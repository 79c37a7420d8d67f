package atif_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/atif"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var began = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// book writes a journal by hand: records with ids and times of their own.
type book struct {
	t       *testing.T
	records []trajectories.Record
}

func (b *book) add(t trajectories.Type, data any) int {
	b.t.Helper()
	body, err := json.Marshal(data)
	if err != nil {
		b.t.Fatal(err)
	}
	n := len(b.records)
	b.records = append(b.records, trajectories.Record{
		ID: n + 1, Parent: n, Type: t, Time: began.Add(time.Duration(n) * time.Second), Data: body,
	})
	return n + 1
}

func (b *book) say(cause trajectories.Cause, m model.Message, actions ...string) int {
	return b.add(trajectories.TypeMessage, trajectories.Message{Message: m, Cause: cause, Actions: actions})
}

func (b *book) call(n int64, cost model.Cost) {
	b.add(trajectories.TypeCall, trajectories.Call{
		Usage: model.Usage{Prompt: 100 * n, Completion: 10 * n, CacheRead: 50 * n, CacheWrite: 7, CacheWriteHour: 3, Reasoning: 2},
		Cost:  cost, Finish: model.FinishTools, Model: "model-2026", Start: b.now(), Duration: trajectories.Seconds(time.Second), Tries: 1,
	})
}

func (b *book) ran(command, output string, code int) {
	b.add(trajectories.TypeExecution, trajectories.Execution{
		Command: command, Output: trajectories.Bytes(output), Bytes: int64(len(output)), Chars: int64(len(output)),
		ExitCode: code, Start: b.now(), Duration: trajectories.Seconds(250 * time.Millisecond),
	})
}

func (b *book) now() time.Time { return began.Add(time.Duration(len(b.records)) * time.Second) }

func (b *book) transcript() *trajectories.Transcript {
	b.t.Helper()
	t, err := trajectories.Gather(func(yield func(trajectories.Record, error) bool) {
		for _, r := range b.records {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

func (b *book) outcome() {
	b.add(trajectories.TypeDiff, trajectories.Diff{Base: "abc", Patch: trajectories.Bytes("diff\xff\n"), Exact: true})
	o := trajectories.Outcome{
		Class: trajectories.Submitted, ExitStatus: "Submitted", Submission: trajectories.Bytes("diff --git a/x b/x\n"),
		Source: trajectories.SourceSubmitted, Start: began, End: b.now(), Warnings: []string{"one"},
	}
	for _, r := range b.records {
		var c trajectories.Call
		if r.Type == trajectories.TypeCall && json.Unmarshal(r.Data, &c) == nil {
			o.Steps, o.Usage, o.Cost = o.Steps+1, o.Usage.Add(c.Usage), o.Cost+c.Cost
		}
	}
	b.add(trajectories.TypeOutcome, o)
}

func (b *book) begin(tools ...model.Definition) {
	b.add(trajectories.TypeHeader, trajectories.Header{
		Format: trajectories.Format, MiniVersion: "1.2", InstanceID: "demo__a-1", Attempt: 2, Sample: 1, Image: "image:1",
		ModelClass: "openai", ModelName: "model", EnvironmentClass: "docker", Config: json.RawMessage(`{"agent":{"step_limit":3}}`), Tools: tools,
	})
	b.add(trajectories.TypeScrub, trajectories.Scrub{OK: true, Head: "abc"})
	b.ran("pip install .", "ok\n", 0)
	b.say(trajectories.CausePrompt, model.Message{Role: model.System, Content: "You <are> & \u2028 helpful."})
	b.say(trajectories.CausePrompt, model.Message{
		Role: model.User, Content: "Fix it.", Images: []model.Image{{MediaType: "image/png", Data: []byte("\x89PNG")}},
	})
}

// toolRun is an attempt with tool calls, and with all that may happen to them.
func toolRun(t *testing.T) *trajectories.Transcript {
	b := &book{t: t}
	b.begin(model.Definition{Name: "bash", Description: "Run it.", Parameters: json.RawMessage(`{"type":"object"}`)})
	b.add(trajectories.TypeContext, trajectories.Context{Sent: []trajectories.ContextPart{{From: 5, To: 5}}})
	b.add(trajectories.TypeCall, trajectories.Call{Error: "429", Start: b.now(), Tries: 10, Cost: 0.001})
	b.call(1, 0.25)
	b.say(trajectories.CauseReply, model.Message{
		Role: model.Assistant, Content: "Look.", Reasoning: "hm", Kept: json.RawMessage(`[{"signature":"x"}]`),
		Calls: []model.Call{
			{ID: "a", Name: "bash", Arguments: `{"command": "ls"}`},
			{ID: "b", Name: "bash", Arguments: `{"command":"false"}`},
			{ID: "c", Name: "bash", Arguments: `{"command":"never"}`},
		},
	}, "ls", "false", "never")
	b.ran("ls", "x\xfe\n", 0)
	first := b.say(trajectories.CauseObservation, model.Message{Role: model.Tool, CallID: "a", Content: "<returncode>0</returncode>"})
	b.ran("false", "", 1)
	b.say(trajectories.CauseObservation, model.Message{Role: model.Tool, CallID: "b", Content: "<returncode>1</returncode>"})
	b.say(trajectories.CauseRejection, model.Message{Role: model.Tool, CallID: "c", Content: "no"})
	b.call(2, 0.5)
	b.say(trajectories.CauseReply, model.Message{
		Role: model.Assistant, Calls: []model.Call{{ID: "d", Name: "python", Arguments: `{"x`}, {ID: "d", Name: "bash", Arguments: `{}`}},
	}, "")
	b.say(trajectories.CauseFormatError, model.Message{Role: model.Tool, CallID: "d", Content: "no such tool"})
	b.add(trajectories.TypeContext, trajectories.Context{Sent: []trajectories.ContextPart{
		{From: first - 6, To: first - 6}, {Message: &model.Message{Role: model.User, Content: "left out"}}, {From: first, To: first + 2},
	}})
	b.call(3, 1)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "Nothing to call."})
	b.say(trajectories.CauseFormatError, model.Message{Role: model.User, Content: "your reply has no tool call"})
	b.call(3, 0)
	b.say(trajectories.CauseReply, model.Message{
		Role: model.Assistant, Content: "Done.",
		Calls: []model.Call{{ID: "e", Name: "bash", Arguments: `{"command":"submit"}`}, {ID: "f", Name: "bash", Arguments: `{"command":"more"}`}},
	}, "submit", "more")
	b.ran("submit", "diff", 0)
	b.add(trajectories.TypeCheck, trajectories.Check{Bytes: 4, Applies: true})
	b.say(trajectories.CauseNotRun, model.Message{Role: model.Tool, CallID: "f", Content: "Not run."})
	b.outcome()
	return b.transcript()
}

// textRun is an attempt whose commands stand in the replies.
func textRun(t *testing.T) *trajectories.Transcript {
	b := &book{t: t}
	b.begin()
	b.call(1, 0.25)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nls\n```"}, "ls")
	b.ran("ls", "x\n", 2)
	b.say(trajectories.CauseObservation, model.Message{Role: model.User, Content: "x\n"})
	b.call(1, 0.25)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "two blocks"}, "a", "b")
	b.say(trajectories.CauseFormatError, model.Message{Role: model.User, Content: "one block"})
	b.call(1, 0.25)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nrm -rf x\n```"}, "rm -rf x")
	b.say(trajectories.CauseRejection, model.Message{Role: model.User, Content: "no"})
	b.call(1, 0.25)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nsubmit\n```"}, "submit")
	b.ran("submit", "patch", 0)
	b.add(trajectories.TypeCheck, trajectories.Check{Bytes: 4, Returned: true})
	b.say(trajectories.CauseMalformedPatch, model.Message{Role: model.User, Content: "does not apply"})
	b.add(trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Interrupted, ExitStatus: "Interrupted", Steps: 4})
	last := len(b.records)
	b.add(trajectories.TypeResume, trajectories.Resume{MiniVersion: "1.3", Record: last - 2})
	b.add(trajectories.TypeReplay, trajectories.Replay{Record: 3, Match: "exact"})
	b.call(1, 0.25)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nsubmit\n```"}, "submit")
	b.ran("submit", "diff", 0)
	b.outcome()
	return b.transcript()
}

// watchedRun is one that a person took part in.
func watchedRun(t *testing.T) *trajectories.Transcript {
	user := func(text string) model.Message { return model.Message{Role: model.User, Content: text} }
	b := &book{t: t}
	b.begin()
	b.add(trajectories.TypeExecution, trajectories.Execution{Command: "pwd", Output: []byte("/\n"), Person: true})
	b.say(trajectories.CauseCommand, user("The user ran a command: pwd"), "pwd")
	b.call(1, 0.25)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nls\n```"}, "ls")
	b.add(trajectories.TypeDecision, trajectories.Decision{Command: "ls", Ruling: trajectories.Ruling{
		Action: trajectories.Allow, By: "user", Before: []trajectories.Ruling{{Action: trajectories.Ask, By: "rule", Rule: "ls"}},
	}})
	b.ran("ls", "x\n", 2)
	b.say(trajectories.CauseObservation, user("x\n"))
	b.say(trajectories.CauseInterruption, user("use find"))
	b.say(trajectories.CauseSteer, user("and be quick"))
	b.add(trajectories.TypeLimits, trajectories.Limits{Steps: 3})
	b.add(trajectories.TypeExecution, trajectories.Execution{Command: "ls -a", Output: []byte(".\n"), Person: true})
	b.say(trajectories.CauseCommand, user("The user ran a command: ls -a"), "ls -a")
	b.call(1, 0.25)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nsubmit\n```"}, "submit")
	b.ran("submit", "patch", 0)
	b.say(trajectories.CauseFollowUp, user("now the docs"))
	b.call(1, 0.25)
	b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nsubmit\n```"}, "submit")
	b.ran("submit", "diff", 0)
	b.outcome()
	return b.transcript()
}

// compareOwn looks for what is another in an attempt that was written and read:
// nothing but the numbers of records, and the import record that is new.
func compareOwn(t *testing.T, before, after *trajectories.Transcript) {
	t.Helper()
	opts := cmp.Options{
		cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(trajectories.Transcript{}, "Import", "Compactions"),
		cmpopts.IgnoreFields(trajectories.Entry{}, "Record", "Context", "Recorded"),
		cmpopts.IgnoreFields(trajectories.Call{}, "Raw"),
		cmpopts.IgnoreFields(trajectories.Ran{}, "Record"),
		cmpopts.IgnoreFields(trajectories.Record{}, "ID", "Parent", "Data"),
	}
	if diff := cmp.Diff(before, after, opts); diff != "" {
		t.Errorf("differs (-journal +read again):\n%s", diff)
	}
	for i, e := range before.Entries {
		o := after.Entries[i]
		if (e.Context == nil) != (o.Context == nil) {
			t.Fatalf("entry %d: context %v, then %v", i, e.Context, o.Context)
		}
		if e.Context == nil {
			continue
		}
		for k, part := range e.Context.Sent {
			again := o.Context.Sent[k]
			if where(before, part.From) != where(after, again.From) || where(before, part.To) != where(after, again.To) {
				t.Errorf("entry %d: part %d of what was sent: %v, then %v", i, k, part, again)
			}
		}
	}
}

// where is the entry of a record.
func where(t *trajectories.Transcript, record int) int {
	for i, e := range t.Entries {
		if e.Record == record {
			return i
		}
	}
	return -1
}

func TestOwnRoundTrip(t *testing.T) {
	for name, tr := range map[string]*trajectories.Transcript{"tools": toolRun(t), "text": textRun(t), "watched": watchedRun(t)} {
		t.Run(name, func(t *testing.T) {
			doc, lost := write(t, tr, "resolved")
			if len(lost) > 0 {
				t.Errorf("lost: %q", lost)
			}
			f, again := gather(t, "a.json", doc)
			compareOwn(t, tr, again)
			if f.Header.InstanceID != "demo__a-1" || len(f.Header.Tools) != len(tr.Header.Tools) {
				t.Errorf("header %+v", f.Header)
			}
			second, _ := write(t, again, "resolved")
			_, third := gather(t, "a.json", second)
			compareOwn(t, again, third)
			golden(t, name+".json", doc)
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s (-golden +written; -update rewrites it):\n%s", name, diff)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"no JSON":   {`{"a`, "read trajectory f.json: trajectory: not JSON: line 1: unexpected end of JSON input"},
		"two":       {`{"schema_version":"ATIF-v2.0"}`, `trajectory.schema_version: ATIF-v1.0 to ATIF-v1.8 are known, got "ATIF-v2.0" (and 2 more)`},
		"no UTF-8":  {"{\"a\":\"\xff\"}", "not UTF-8"},
		"a journal": {`{"id":1}` + "\n" + `{"id":2}`, "not JSON: line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := atif.Read("f.json", []byte(c.data))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestReadNewer takes a newer version as far as it is known.
func TestReadNewer(t *testing.T) {
	f, err := atif.Read("f.json", []byte(`{"schema_version":"ATIF-v1.12","agent":{"name":"a","version":"1","soul":1},"steps":[{"step_id":1,"source":"user","message":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"the version ATIF-v1.12 is newer than what is known; it was read as 1.8",
		`"trajectory.agent.soul" is not known and left out`,
	}, f.Lost); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := trajectories.Gather(f.All())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := atif.Write(&out, again, ""); err != nil {
		t.Fatal(err)
	}
	if problems := atif.Check(out.Bytes(), atif.Newest); len(problems) != 0 || !bytes.Contains(out.Bytes(), []byte(`"ATIF-v1.8"`)) {
		t.Errorf("written again: %v\n%s", problems, out.Bytes())
	}
}

// TestCompactionRoundTrip writes an attempt whose conversation was shortened: the
// document says so in a step of its own, and what is read of it again tells of the
// same prompts.
func TestCompactionRoundTrip(t *testing.T) {
	b := &book{t: t}
	user := func(text string) model.Message { return model.Message{Role: model.User, Content: text} }
	b.add(trajectories.TypeHeader, trajectories.Header{Format: trajectories.Format, InstanceID: "i", Attempt: 1, MiniVersion: "1"})
	b.say(trajectories.CausePrompt, model.Message{Role: model.System, Content: "system"})
	b.say(trajectories.CausePrompt, user("task"))
	var replies, answers []int
	step := func(n int) {
		b.call(int64(n), 0.25)
		replies = append(replies, b.say(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: "```bash\nls\n```"}, "ls"))
		b.ran("ls", "x\n", 0)
		answers = append(answers, b.say(trajectories.CauseObservation, user("x\n")))
	}
	step(1)
	step(2)
	b.add(trajectories.TypeSummary, trajectories.Call{Usage: model.Usage{Prompt: 9}, Cost: 0.5, Start: b.now(), Tries: 1})
	b.add(trajectories.TypeCompaction, trajectories.Compaction{Policy: "summarize", TokensBefore: 9, TokensAfter: 3, Replaced: []trajectories.Replacement{
		{From: replies[0], To: answers[0], Join: true, Message: user("what happened")},
	}})
	b.add(trajectories.TypeContext, trajectories.Context{Sent: []trajectories.ContextPart{{From: 2, To: answers[1]}}, Tail: "the goals"})
	step(3)
	b.outcome()
	tr := b.transcript()
	doc, lost := write(t, tr, "")
	if len(lost) > 0 {
		t.Errorf("lost: %q", lost)
	}
	for _, text := range []string{
		`"source":"system","message":"what happened"`, `"context_management":{"type":"compaction","boundary":"replace"}`,
		`"context_management":{"type":"injection","boundary":"append"}`,
	} {
		if !bytes.Contains(doc, []byte(text)) {
			t.Errorf("there is no %s in %s", text, doc)
		}
	}
	f, again := gather(t, "a.json", doc)
	compareOwn(t, tr, again)
	var before, after [][]model.Message
	for p, err := range trajectories.Prompts(tr.Records()) {
		if err != nil {
			t.Fatal(err)
		}
		before = append(before, p.Messages)
	}
	for p, err := range trajectories.Prompts(f.All()) {
		if err != nil {
			t.Fatal(err)
		}
		after = append(after, p.Messages)
	}
	if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" || len(after) != 3 || len(after[2]) != 4 {
		t.Errorf("prompts (-written +read):\n%s", diff)
	}
}
