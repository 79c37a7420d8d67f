package export_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

var update = flag.Bool("update", false, "rewrite golden files")

// script builds a transcript from messages.
type script struct {
	t *trajectories.Transcript
}

func newScript(modelName string, tools bool) *script {
	s := &script{&trajectories.Transcript{Header: trajectories.Header{Format: trajectories.Format, ModelName: modelName}}}
	if tools {
		s.t.Header.Tools = []model.ToolDefinition{{Name: "bash", Description: "Run a command.", Parameters: json.RawMessage(
			`{"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"], "additionalProperties": false}`)}}
	}
	s.add(trajectories.CausePrompt, model.Message{Role: model.System, Content: "You work by bash."})
	return s.add(trajectories.CausePrompt, model.Message{Role: model.User, Content: "Mend <it> & say \"done\"\u2028ü."})
}

func (s *script) add(c trajectories.Cause, m model.Message) *script {
	e := trajectories.Entry{Record: len(s.t.Entries) + 2, Message: trajectories.Message{Message: m, Cause: c}}
	if c == trajectories.CauseReply {
		e.Call = &trajectories.Call{Usage: model.Usage{Prompt: int64(100 * len(s.t.Entries)), Completion: 10}}
	}
	s.t.Entries = append(s.t.Entries, e)
	return s
}

func (s *script) reply(reasoning, text string, calls ...model.ToolCall) *script {
	return s.add(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: text, Reasoning: reasoning, ToolCalls: calls})
}

func (s *script) message(c trajectories.Cause, text string) *script {
	return s.add(c, model.Message{Role: model.User, Content: text})
}

func (s *script) result(id, text string) *script {
	return s.add(trajectories.CauseObservation, model.Message{Role: model.Tool, ToolCallID: id, Content: text})
}

func (s *script) withOutcome(status string) *script {
	s.t.Outcome = &trajectories.Outcome{
		Class: trajectories.Submitted, ExitStatus: status, Submission: trajectories.Bytes("diff of " + s.t.Header.ModelName + "\n"),
		End: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	return s
}

// withExecutions adds times, commands and executions to the messages.
func (s *script) withExecutions() *script {
	h := &s.t.Header
	h.MiniVersion, h.Attempt, h.Repetition, h.ModelClass, h.EnvironmentClass = "1.2.3", 1, 1, "openai", "docker"
	h.Config = json.RawMessage(`{"agent":{"step_limit":9},"model":{"model_name":"` + h.ModelName + `"}}`)
	start := s.t.Outcome.End.Add(-time.Minute)
	var ran *[]trajectories.RecordedExecution // executions of the newest reply without an observation
	told := 0
	for i := range s.t.Entries {
		e := &s.t.Entries[i]
		e.Time = start.Add(time.Duration(i) * time.Second)
		switch e.Cause {
		case trajectories.CauseReply:
			e.Call.Start, e.Call.RequestCount, e.Call.Cost, e.Call.Model = e.Time, 1, 0.25, h.ModelName
			e.Actions = commandsIn(e.Message.Message)
			for n, command := range e.Actions {
				x := trajectories.Execution{Command: command, Output: trajectories.Bytes(fmt.Sprintf("output %d\n", n)), Start: e.Time}
				x.Bytes = int64(len(x.Output))
				e.Executions = append(e.Executions, trajectories.RecordedExecution{Record: 100 + 10*i + n, Execution: x, ObservationEntry: -1})
			}
			ran, told = &e.Executions, 0
			s.t.Outcome.Steps++
			s.t.Outcome.Cost += e.Call.Cost
			s.t.Outcome.Usage = s.t.Outcome.Usage.Add(e.Call.Usage)
		case trajectories.CauseObservation:
			(*ran)[told].ObservationEntry = i
			told++
		}
	}
	s.t.Outcome.Start = start
	return s
}

// commandsIn returns the commands of a reply: in its calls, or else in its only code
// block.
func commandsIn(m model.Message) []string {
	var commands []string
	for _, c := range m.ToolCalls {
		var args struct {
			Command string `json:"command"`
		}
		if json.Unmarshal([]byte(c.Arguments), &args) == nil && args.Command != "" {
			commands = append(commands, args.Command)
		}
	}
	if _, block, ok := strings.Cut(m.Content, "```bash\n"); ok {
		commands = append(commands, strings.TrimSuffix(block, "\n```"))
	}
	return commands
}

func call(id, command string) model.ToolCall {
	args, _ := json.Marshal(map[string]string{"command": command}) //nolint:errchkjson // a string
	return model.ToolCall{ID: id, Name: "bash", Arguments: string(args)}
}

// textual returns an attempt with commands in its text, one with a format error.
func textual() *script {
	return newScript("model-a", false).
		reply("Where is it?", "I look.\n```bash\nls\n```").
		message(trajectories.CauseObservation, "<returncode>0</returncode>\na.py").
		reply("", "Two blocks: bad.").
		message(trajectories.CauseFormatError, "Exactly one block.").
		reply("Now.", "```bash\nsed -i s/a/b/ a.py\n```").
		message(trajectories.CauseObservation, "<returncode>0</returncode>").
		reply("", "```bash\nsubmit\n```").
		withOutcome("Submitted")
}

// calling returns an attempt with tool calls, two of them in one reply, and text
// besides one.
func calling() *script {
	return newScript("model-b", true).
		reply("Where is it?", "I look.", call("c1", "ls"), call("c2", "pwd")).
		result("c1", "a.py").
		result("c2", "/repo").
		reply("", "", model.ToolCall{ID: "c3", Name: "bash", Arguments: "{}"}).
		add(trajectories.CauseFormatError, model.Message{Role: model.Tool, ToolCallID: "c3", Content: "No JSON."}).
		reply("Now.", "", call("c4", "sed -i s/a/b/ a.py")).
		result("c4", "done").
		reply("", "", call("c5", "submit")).
		withOutcome("Submitted")
}

// item returns an attempt of a run.
func item(id string, number int, verdict string, s *script) *export.Item {
	s.t.Header.InstanceID = id
	return &export.Item{
		Transcript: s.t, InstanceID: id, Attempt: number, Repetition: number, Verdict: verdict,
		SHA256: string(bytes.Repeat([]byte{byte('a' + number)}, 64)), Journal: id, Tokens: export.ProviderTokens(s.t),
	}
}

// attempts returns sources for Run.
func attempts(items ...*export.Item) []export.Source {
	var list []export.Source
	for _, it := range items {
		list = append(list, export.Source{
			InstanceID: it.InstanceID, Number: it.Attempt,
			Read: func() (*export.Item, error) { return it, nil },
		})
	}
	return list
}

// everything returns the attempts of the golden files: two of each kind on one
// instance, with different verdicts.
func everything() []*export.Item {
	other := newScript("model-a", false).
		reply("", "I know it already.\n```bash\nsubmit\n```").withOutcome("Submitted")
	called := newScript("model-b", true).
		reply("", "", call("x1", "submit")).withOutcome("Submitted")
	return []*export.Item{
		item("owner__lib-1", 1, "resolved", textual()), item("owner__lib-1", 2, "unresolved", other),
		item("owner__lib-2", 1, "unresolved", called), item("owner__lib-2", 2, "resolved", calling()),
	}
}

// run exports to a temporary folder.
func run(t *testing.T, o export.Options, items ...*export.Item) (string, export.Report) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	tools, err := export.EncodeTools(calling().t.Header.Tools)
	if err != nil {
		t.Fatal(err)
	}
	r, err := export.Run(t.Context(), export.Config{Options: o, Dir: dir, Workers: 3, Tools: []json.RawMessage{tools}}, attempts(items...))
	if err != nil {
		t.Fatal(err)
	}
	return dir, r
}

// rows returns the decoded lines of a file.
func rows(t *testing.T, path string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for line := range bytes.Lines(data) {
		var row map[string]any
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, row)
	}
	return all
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
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
