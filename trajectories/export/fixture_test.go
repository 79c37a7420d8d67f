package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// builder builds an attempt from messages.
type builder struct {
	t *trajectories.Attempt
}

// newAttempt returns an attempt with two prompts.
func newAttempt(modelName string, tools bool) *builder {
	s := &builder{&trajectories.Attempt{Header: trajectories.Header{Format: trajectories.Format, ModelName: modelName}}}
	if tools {
		s.t.Header.Tools = []model.ToolDefinition{{Name: "bash", Description: "Run a command.", Parameters: json.RawMessage(
			`{"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"], "additionalProperties": false}`)}}
	}
	s.add(trajectories.CausePrompt, model.Message{Role: model.System, Content: "You work by bash."})
	return s.add(trajectories.CausePrompt, model.Message{Role: model.User, Content: "Mend <it> & say \"done\"\u2028ü."})
}

func (s *builder) add(c trajectories.Cause, m model.Message) *builder {
	e := trajectories.Entry{Record: len(s.t.Entries) + 2, Message: trajectories.Message{Message: m, Cause: c}}
	if c == trajectories.CauseReply {
		e.Call = &trajectories.Call{Usage: model.Usage{Prompt: int64(100 * len(s.t.Entries)), Completion: 10}}
	}
	s.t.Entries = append(s.t.Entries, e)
	return s
}

func (s *builder) reply(reasoning, text string, calls ...model.ToolCall) *builder {
	return s.add(trajectories.CauseReply, model.Message{Role: model.Assistant, Content: text, Reasoning: reasoning, ToolCalls: calls})
}

func (s *builder) message(c trajectories.Cause, text string) *builder {
	return s.add(c, model.Message{Role: model.User, Content: text})
}

func (s *builder) result(id, text string) *builder {
	return s.add(trajectories.CauseObservation, model.Message{Role: model.Tool, ToolCallID: id, Content: text})
}

func (s *builder) withOutcome(status string) *builder {
	s.t.Outcome = &trajectories.Outcome{
		Class: trajectories.Submitted, ExitStatus: status, Submission: trajectories.Bytes("diff of " + s.t.Header.ModelName + "\n"),
		End: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	return s
}

// withExecutions adds times, commands and executions to the entries.
func (s *builder) withExecutions() *builder {
	h := &s.t.Header
	h.MiniVersion, h.Attempt, h.Repetition, h.ModelClass, h.EnvironmentClass = "1.2.3", 1, 1, "openai", "docker"
	h.Config = json.RawMessage(`{"agent":{"step_limit":9},"model":{"model_name":"` + h.ModelName + `"}}`)
	start := s.t.Outcome.End.Add(-time.Minute)
	var executions *[]trajectories.Execution // of the newest reply
	observed := 0                            // number of executions with an observation
	for i := range s.t.Entries {
		e := &s.t.Entries[i]
		e.Time = start.Add(time.Duration(i) * time.Second)
		switch e.Cause {
		case trajectories.CauseReply:
			e.Call.Start, e.Call.RequestCount, e.Call.Cost, e.Call.Model = e.Time, 1, 0.25, h.ModelName
			e.Actions = commandsOf(e.Message.Message)
			for n, command := range e.Actions {
				x := trajectories.Execution{Command: command, Output: trajectories.Bytes(fmt.Sprintf("output %d\n", n)), Start: e.Time}
				x.Bytes = int64(len(x.Output))
				x.Record, x.ObservationEntry = 100+10*i+n, -1
				e.Executions = append(e.Executions, x)
			}
			executions, observed = &e.Executions, 0
			s.t.Outcome.Steps++
			s.t.Outcome.Cost += e.Call.Cost
			s.t.Outcome.Usage = s.t.Outcome.Usage.Add(e.Call.Usage)
		case trajectories.CauseObservation:
			(*executions)[observed].ObservationEntry = i
			observed++
		}
	}
	s.t.Outcome.Start = start
	return s
}

// commandsOf returns the commands in the tool calls and in the code block of a reply.
func commandsOf(m model.Message) []string {
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

// textAttempt returns an attempt with commands in the text of replies, and a format error.
func textAttempt() *builder {
	return newAttempt("model-a", false).
		reply("Where is it?", "I look.\n```bash\nls\n```").
		message(trajectories.CauseObservation, "<returncode>0</returncode>\na.py").
		reply("", "Two blocks: bad.").
		message(trajectories.CauseFormatError, "Exactly one block.").
		reply("Now.", "```bash\nsed -i s/a/b/ a.py\n```").
		message(trajectories.CauseObservation, "<returncode>0</returncode>").
		reply("", "```bash\nsubmit\n```").
		withOutcome("Submitted")
}

// callAttempt returns an attempt with tool calls. The first reply has two tool calls, and
// text.
func callAttempt() *builder {
	return newAttempt("model-b", true).
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

// item returns the attempt s of an instance.
func item(id string, number int, verdict string, s *builder) *export.Item {
	s.t.Header.InstanceID = id
	return &export.Item{
		Attempt: s.t, InstanceID: id, Number: number, Repetition: number, Verdict: verdict,
		SHA256: string(bytes.Repeat([]byte{byte('a' + number)}, 64)), Journal: id, Tokens: export.ProviderTokens(s.t),
	}
}

// attempts returns sources for Run.
func attempts(items ...*export.Item) []export.AttemptSource {
	var list []export.AttemptSource
	for _, it := range items {
		list = append(list, export.AttemptSource{
			InstanceID: it.InstanceID, Number: it.Number,
			Read: func() (*export.Item, error) { return it, nil },
		})
	}
	return list
}

// allAttempts returns the attempts of the golden files: two with commands in text on one
// instance, and two with tool calls on another, with different verdicts.
func allAttempts() []*export.Item {
	other := newAttempt("model-a", false).
		reply("", "I know it already.\n```bash\nsubmit\n```").withOutcome("Submitted")
	called := newAttempt("model-b", true).
		reply("", "", call("x1", "submit")).withOutcome("Submitted")
	return []*export.Item{
		item("owner__lib-1", 1, "resolved", textAttempt()), item("owner__lib-1", 2, "unresolved", other),
		item("owner__lib-2", 1, "unresolved", called), item("owner__lib-2", 2, "resolved", callAttempt()),
	}
}

// run exports attempts to a temporary folder, and returns the folder.
func run(t *testing.T, o export.Options, items ...*export.Item) (string, export.Report) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	tools, err := export.EncodeTools(callAttempt().t.Header.Tools)
	require.NoError(t, err)
	r, err := export.Run(t.Context(), export.Config{Options: o, Dir: dir, Workers: 3, Tools: []json.RawMessage{tools}}, attempts(items...))
	require.NoError(t, err)
	return dir, r
}

// rows returns the decoded lines of a file.
func rows(t *testing.T, path string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
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
