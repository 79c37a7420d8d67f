package agent_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/scripts"
)

func toolsConfig() agent.Config {
	cfg := config()
	cfg.Protocol = protocol.Tools
	return cfg
}

// toolReply is a reply with one call per command. If a command starts with "!",
// the rest is the arguments of the call.
func toolReply(commands ...string) model.Reply {
	r := model.Reply{Message: model.Message{Role: model.Assistant, Content: "hm"}, FinishReason: model.FinishToolCalls, Cost: 0.25, Tries: 1}
	for i, c := range commands {
		call := protocol.NewToolCall(c)
		if arguments, ok := strings.CutPrefix(c, "!"); ok {
			call.Arguments = arguments
		}
		call.ID = "c" + string(rune('1'+i))
		r.Message.ToolCalls = append(r.Message.ToolCalls, call)
	}
	return r
}

// history returns the recorded messages.
func (m *testRecorder) history(t *testing.T) []trajectories.Message {
	t.Helper()
	var list []trajectories.Message
	for _, r := range m.records {
		if r.Type == trajectories.TypeMessage {
			var msg trajectories.Message
			if err := json.Unmarshal(r.Data, &msg); err != nil {
				t.Fatal(err)
			}
			list = append(list, msg)
		}
	}
	return list
}

// checkAnswers checks a history as servers do: calls are followed by one answer
// each, in order, before anything else. It returns the role and content of the
// other messages.
func checkAnswers(t *testing.T, history []trajectories.Message) []string {
	t.Helper()
	var open []string
	for i, m := range history {
		if m.Role != model.Tool {
			if len(open) > 0 {
				t.Errorf("message %d (%s) comes before the answers to %v", i, m.Role, open)
			}
			open = nil
			for _, c := range m.ToolCalls {
				open = append(open, c.ID)
			}
			continue
		}
		at := slices.Index(open, m.ToolCallID)
		if at < 0 {
			t.Errorf("message %d answers %q, and %v are asked", i, m.ToolCallID, open)
			continue
		}
		if open = slices.Delete(open, at, at+1); len(open) == 0 {
			open = nil
		}
	}
	return open
}

func TestToolCallHistories(t *testing.T) {
	patch := "!" + `{"command":"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo no patch"}`
	tests := []struct {
		name    string
		change  func(*agent.Config)
		script  *scriptedModel
		reject  int // number of the rejected command; 0 for none
		status  string
		steps   int
		history string // role and start of each message after the prompts
		open    []string
	}{
		{
			name: "one call", script: &scriptedModel{replies: []model.Reply{toolReply("echo a"), toolReply(submit)}}, status: "Submitted", steps: 2,
			history: "assistant hm | tool c1 [0] a | assistant hm", open: []string{"c1"},
		},
		{
			name:   "several in order",
			script: &scriptedModel{replies: []model.Reply{toolReply("echo a > f", "cat f", "false"), toolReply(submit)}}, status: "Submitted", steps: 2,
			history: "assistant hm | tool c1 [0]  | tool c2 [0] a | tool c3 [1]  | assistant hm", open: []string{"c1"},
		},
		{
			name:   "submission in the middle ends",
			script: &scriptedModel{replies: []model.Reply{toolReply("echo a", submit, "touch never")}}, status: "Submitted", steps: 1,
			history: "assistant hm | tool c1 [0] a | tool c3 Not run: the call before it handed in the work.", open: []string{"c2"},
		},
		{
			name: "several are refused", change: func(c *agent.Config) { c.ToolCalls = agent.ToolCallsOne },
			script: &scriptedModel{replies: []model.Reply{toolReply("echo a > f", "cat f"), toolReply(submit)}}, status: "Submitted", steps: 2,
			history: "assistant hm | tool c1 your reply has 2 tool calls, and exactly one is needed | " +
				"tool c2 Nothing was run: your reply has 2 tool calls, and exactly one is needed. | assistant hm",
			open: []string{"c1"},
		},
		{
			name: "a wrong one keeps the others from being run", script: &scriptedModel{replies: []model.Reply{toolReply("echo a", "!{}"), toolReply(submit)}},
			status: "Submitted", steps: 2,
			history: "assistant hm | tool c1 Nothing was run: another call of the same reply is wrong. | " +
				"tool c2 the argument command is missing | assistant hm",
			open: []string{"c1"},
		},
		{
			name: "no call", script: &scriptedModel{replies: append(replies(bash("echo a")).replies, toolReply(submit))}, status: "Submitted", steps: 2,
			history: "assistant thought | user your reply has no tool call | assistant hm", open: []string{"c1"},
		},
		{
			name: "format errors in a row", script: &scriptedModel{replies: []model.Reply{toolReply("!1"), replies("x").replies[0], toolReply("true", "!{")}},
			status: "RepeatedFormatError", steps: 3,
			history: "assistant hm | tool c1 the arguments are no JSON object | assistant x | user your reply has no tool call | assistant hm | " +
				"tool c1 Not run to its end: the attempt is over. | tool c2 Not run to its end: the attempt is over.",
		},
		{
			name: "a limit between calls", change: func(c *agent.Config) { c.WallTimeLimit = 3 },
			script: &scriptedModel{replies: []model.Reply{toolReply("echo a", "sleep 600", "echo b")}}, status: "TimeExceeded", steps: 1,
			history: "assistant hm | tool c1 [0] a | tool c2 Not run to its end: the attempt is over. | tool c3 Not run to its end: the attempt is over.",
		},
		{
			name: "steps are replies", change: func(c *agent.Config) { c.StepLimit = 1 },
			script: &scriptedModel{replies: []model.Reply{toolReply("echo a", "echo b")}}, status: "LimitsExceeded", steps: 1,
			history: "assistant hm | tool c1 [0] a | tool c2 [0] b",
		},
		{
			name: "the user refuses one", reject: 2,
			script: &scriptedModel{replies: []model.Reply{toolReply("echo a", "echo b", "echo c"), toolReply(submit)}}, status: "Submitted", steps: 2,
			history: "assistant hm | tool c1 [0] a | tool c2 The user did not let this command run. The user says: no | " +
				"tool c3 Not run, since the call before it did not go through. | assistant hm",
			open: []string{"c1"},
		},
		{
			name: "a patch that does not apply", change: func(c *agent.Config) { c.Submission = agent.SubmissionPatch },
			script: &scriptedModel{replies: []model.Reply{toolReply(patch, "echo b"), toolReply(submit)}}, status: "Submitted", steps: 2,
			history: "assistant hm | tool c1 The work is not handed in yet: what followed the submit line is no patch that git apply takes on a clean checkout. It says: | " +
				"tool c2 Not run, since the call before it did not go through. | assistant hm",
			open: []string{"c1"},
		},
		{
			name: "the provider fails", script: &scriptedModel{replies: []model.Reply{toolReply("echo a")}, errs: map[int]error{1: &model.Error{Status: model.RateLimited}}},
			status: "RateLimited", steps: 2, history: "assistant hm | tool c1 [0] a",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := toolsConfig()
			if tt.change != nil {
				tt.change(&cfg)
			}
			a, err := agent.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			rec, asked := &testRecorder{}, 0
			repo := agenttest.NewRepository(t)
			out := a.Run(t.Context(), agent.Session{
				Model: tt.script, Environment: untimed{repo.Sandbox}, Repository: repo, Recorder: rec, Task: agent.Task{Text: "task"},
				Approver: approverFunc(func(agent.ApprovalRequest) agent.Decision {
					if asked++; asked == tt.reject {
						return agent.Decision{Action: agent.Deny, By: agent.ByUser, Reason: "no"}
					}
					return agent.Decision{Action: agent.Allow}
				}),
			})
			if out.ExitStatus != tt.status || out.Steps != tt.steps {
				t.Errorf("%s after %d steps: %s", out.ExitStatus, out.Steps, out.Error)
			}
			history := rec.history(t)
			if diff := cmp.Diff(tt.history, summarize(history[min(2, len(history)):])); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.open, checkAnswers(t, history)); diff != "" {
				t.Errorf("calls without an answer (-want +got):\n%s", diff)
			}
			for i, seen := range tt.script.prompts {
				var sent []trajectories.Message
				for _, m := range seen {
					sent = append(sent, trajectories.Message{Message: m})
				}
				if open := checkAnswers(t, sent); len(open) > 0 {
					t.Errorf("request %d lacks answers to %v", i, open)
				}
			}
		})
	}
}

// summarize returns a history in short: role, call and first line of each
// message.
func summarize(history []trajectories.Message) string {
	var list []string
	for _, m := range history {
		line, _, _ := strings.Cut(m.Content, "\n")
		who := string(m.Role)
		if m.ToolCallID != "" {
			who += " " + m.ToolCallID
		}
		list = append(list, who+" "+line)
	}
	return strings.Join(list, " | ")
}

// A full disk while the answers are written is reported.
func TestFullDiskWhileSkipping(t *testing.T) {
	full := errors.New("no room")
	n := 0
	rec := &testRecorder{fail: func(typ trajectories.Type) error {
		if typ == trajectories.TypeMessage {
			if n++; n > 3 {
				return full
			}
		}
		return nil
	}}
	out := run(t.Context(), t, toolsConfig(), &scriptedModel{replies: []model.Reply{toolReply("echo a", "echo b")}}, rec)
	if out.Class != trajectories.Internal || !strings.Contains(out.Error, "no room") {
		t.Errorf("%+v", out)
	}
}

// The .traj.json of an attempt with tool calls is that of mini-swe-agent, and
// an attempt that replays it gives the same one.
func TestToolCallTrajectory(t *testing.T) {
	first := &scriptedModel{replies: []model.Reply{
		toolReply("echo one; exit 3"), toolReply("!{"), replies("no call").replies[0],
		toolReply("echo two >> a.txt", "cat a.txt"), toolReply("echo a", submit+" && git diff", "echo never"),
	}}
	got, file := trajectory(t, first)
	golden := filepath.Join("testdata", "tools.traj.json.golden")
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("trajectory (-want +got):\n%s", diff)
	}
	script, err := scripts.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	again, err := script.For("any")
	if err != nil {
		t.Fatal(err)
	}
	got, _ = trajectory(t, again)
	others := regexp.MustCompile(`"(instance_)?cost":[0-9.]+|"model":"\w+",|"response":\{"usage":\{[^}]*\}\},`)
	if diff := cmp.Diff(others.ReplaceAllString(string(want), ""), others.ReplaceAllString(string(got), "")); diff != "" {
		t.Errorf("said again (-want +got):\n%s", diff)
	}
}

// trajectory returns the .traj.json of an attempt, without times.
func trajectory(t *testing.T, m model.Model) ([]byte, string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.traj.json")
	j, err := trajectories.Create(filepath.Join(dir, "j"), trajectories.Header{InstanceID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(toolsConfig())
	if err != nil {
		t.Fatal(err)
	}
	cfg := agent.Session{Model: m, Environment: gitSandbox(t), Recorder: j, Task: agent.Task{Text: "task"}}
	if out := a.Run(t.Context(), cfg); out.Class != trajectories.Submitted {
		t.Fatalf("%+v", out)
	}
	if err := errors.Join(j.Close(), trajectories.WriteTrajFile(filepath.Join(dir, "j"), path)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data = regexp.MustCompile(`"timestamp":[0-9.]+`).ReplaceAll(data, []byte(`"timestamp":0`))
	return regexp.MustCompile(`at /[^"]*`).ReplaceAll(data, []byte("at /")), path
}
