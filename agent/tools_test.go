package agent_test

import (
	"context"
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
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/trajectories"
)

func toolsConfig() agent.Config {
	cfg := config()
	cfg.Protocol = protocol.Tools
	return cfg
}

// calls is a reply with one call for each command; a command that begins with
// "!" is the arguments of its call instead.
func calls(commands ...string) model.Reply {
	r := model.Reply{Message: model.Message{Role: model.Assistant, Content: "hm"}, Finish: model.FinishTools, Cost: 0.25, Tries: 1}
	for i, c := range commands {
		call := protocol.Call(c)
		if arguments, ok := strings.CutPrefix(c, "!"); ok {
			call.Arguments = arguments
		}
		call.ID = "c" + string(rune('1'+i))
		r.Message.Calls = append(r.Message.Calls, call)
	}
	return r
}

// history is what the attempt recorded as messages.
func (m *memory) history(t *testing.T) []trajectories.Message {
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

// unanswered checks a history as servers do: calls are followed by one answer
// to each, in their order, before anything else. It returns the calls without.
func unanswered(t *testing.T, history []trajectories.Message) []string {
	t.Helper()
	var open []string
	for i, m := range history {
		if m.Role != model.Tool {
			if len(open) > 0 {
				t.Errorf("message %d (%s) comes before the answers to %v", i, m.Role, open)
			}
			open = nil
			for _, c := range m.Calls {
				open = append(open, c.ID)
			}
			continue
		}
		at := slices.Index(open, m.CallID)
		if at < 0 {
			t.Errorf("message %d answers %q, and %v are asked", i, m.CallID, open)
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
		name   string
		change func(*agent.Config)
		script *script
		reject int // the how manieth command is refused; 0 is none
		status string
		steps  int
		told   string // role and beginning of what follows the prompts, by line
		open   []string
	}{
		{
			name: "one call", script: &script{replies: []model.Reply{calls("echo a"), calls(submit)}}, status: "Submitted", steps: 2,
			told: "assistant hm | tool c1 [0] a | assistant hm", open: []string{"c1"},
		},
		{
			name:   "several in order",
			script: &script{replies: []model.Reply{calls("echo a > f", "cat f", "false"), calls(submit)}}, status: "Submitted", steps: 2,
			told: "assistant hm | tool c1 [0]  | tool c2 [0] a | tool c3 [1]  | assistant hm", open: []string{"c1"},
		},
		{
			name:   "submission in the middle ends",
			script: &script{replies: []model.Reply{calls("echo a", submit, "touch never")}}, status: "Submitted", steps: 1,
			told: "assistant hm | tool c1 [0] a | tool c3 Not run: the call before it handed in the work.", open: []string{"c2"},
		},
		{
			name: "several are refused", change: func(c *agent.Config) { c.ToolCalls = agent.CallsOne },
			script: &script{replies: []model.Reply{calls("echo a > f", "cat f"), calls(submit)}}, status: "Submitted", steps: 2,
			told: "assistant hm | tool c1 your reply has 2 tool calls, and exactly one is needed | " +
				"tool c2 Nothing was run: your reply has 2 tool calls, and exactly one is needed. | assistant hm",
			open: []string{"c1"},
		},
		{
			name: "a wrong one keeps the others from being run", script: &script{replies: []model.Reply{calls("echo a", "!{}"), calls(submit)}},
			status: "Submitted", steps: 2,
			told: "assistant hm | tool c1 Nothing was run: another call of the same reply is wrong. | " +
				"tool c2 the argument command is missing | assistant hm",
			open: []string{"c1"},
		},
		{
			name: "no call", script: &script{replies: append(says(bash("echo a")).replies, calls(submit))}, status: "Submitted", steps: 2,
			told: "assistant thought | user your reply has no tool call | assistant hm", open: []string{"c1"},
		},
		{
			name: "format errors in a row", script: &script{replies: []model.Reply{calls("!1"), says("x").replies[0], calls("true", "!{")}},
			status: "RepeatedFormatError", steps: 3,
			told: "assistant hm | tool c1 the arguments are no JSON object | assistant x | user your reply has no tool call | assistant hm | " +
				"tool c1 Not run to its end: the attempt is over. | tool c2 Not run to its end: the attempt is over.",
		},
		{
			name: "a limit between calls", change: func(c *agent.Config) { c.WallTimeLimit = 1 },
			script: &script{replies: []model.Reply{calls("echo a", "sleep 600", "echo b")}}, status: "TimeExceeded", steps: 1,
			told: "assistant hm | tool c1 [0] a | tool c2 Not run to its end: the attempt is over. | tool c3 Not run to its end: the attempt is over.",
		},
		{
			name: "steps are replies", change: func(c *agent.Config) { c.StepLimit = 1 },
			script: &script{replies: []model.Reply{calls("echo a", "echo b")}}, status: "LimitsExceeded", steps: 1,
			told: "assistant hm | tool c1 [0] a | tool c2 [0] b",
		},
		{
			name: "the user refuses one", reject: 2,
			script: &script{replies: []model.Reply{calls("echo a", "echo b", "echo c"), calls(submit)}}, status: "Submitted", steps: 2,
			told: "assistant hm | tool c1 [0] a | tool c2 The user did not let this command run. The user says: no | " +
				"tool c3 Not run, since the call before it did not go through. | assistant hm",
			open: []string{"c1"},
		},
		{
			name: "a patch that does not apply", change: func(c *agent.Config) { c.Submission = agent.SubmissionPatch },
			script: &script{replies: []model.Reply{calls(patch, "echo b"), calls(submit)}}, status: "Submitted", steps: 2,
			told: "assistant hm | tool c1 The work is not handed in yet: what followed the submit line is no patch that git apply takes on a clean checkout. It says: | " +
				"tool c2 Not run, since the call before it did not go through. | assistant hm",
			open: []string{"c1"},
		},
		{
			name: "the provider fails", script: &script{replies: []model.Reply{calls("echo a")}, errs: map[int]error{1: &model.Error{Status: model.RateLimited}}},
			status: "RateLimited", steps: 2, told: "assistant hm | tool c1 [0] a",
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
			rec, asked := &memory{}, 0
			out := a.Run(t.Context(), agent.Session{
				Model: tt.script, Environment: repository(t), Recorder: rec, Task: agent.Task{Text: "task"},
				Supervisor: decides(func(agent.Proposal) agent.Decision {
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
			if diff := cmp.Diff(tt.told, told(history[2:])); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.open, unanswered(t, history)); diff != "" {
				t.Errorf("calls without an answer (-want +got):\n%s", diff)
			}
			for i, seen := range tt.script.seen {
				var sent []trajectories.Message
				for _, m := range seen {
					sent = append(sent, trajectories.Message{Message: m})
				}
				if open := unanswered(t, sent); len(open) > 0 {
					t.Errorf("request %d lacks answers to %v", i, open)
				}
			}
		})
	}
}

// told is a history in short: who, to which call, and the first line.
func told(history []trajectories.Message) string {
	var list []string
	for _, m := range history {
		line, _, _ := strings.Cut(m.Content, "\n")
		who := string(m.Role)
		if m.CallID != "" {
			who += " " + m.CallID
		}
		list = append(list, who+" "+line)
	}
	return strings.Join(list, " | ")
}

func TestInterruptionBetweenCalls(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	rec := &memory{fail: func(typ trajectories.Type) error {
		if typ == trajectories.TypeExecution {
			cancel(agent.ErrInterrupted)
		}
		return nil
	}}
	s := &script{replies: []model.Reply{calls("echo two >> a.txt", "touch never")}}
	out := run(ctx, t, toolsConfig(), s, rec)
	if out.ExitStatus != "Interrupted" || !strings.Contains(string(out.PartialPatch), "+two") || strings.Contains(string(out.PartialPatch), "never") {
		t.Errorf("%s, partial patch %q", out.ExitStatus, out.PartialPatch)
	}
	if open := unanswered(t, rec.history(t)); len(open) > 0 {
		t.Errorf("no answer to %v", open)
	}
	if n := strings.Count(rec.types(), "execution"); n != 1 {
		t.Errorf("%d executions: %s", n, rec.types())
	}
}

// A disk that is full when the answers are to be written is told as that.
func TestLeavingWhenNothingCanBeRecorded(t *testing.T) {
	full := errors.New("no room")
	n := 0
	rec := &memory{fail: func(typ trajectories.Type) error {
		if typ == trajectories.TypeMessage {
			if n++; n > 3 {
				return full
			}
		}
		return nil
	}}
	out := run(t.Context(), t, toolsConfig(), &script{replies: []model.Reply{calls("echo a", "echo b")}}, rec)
	if out.Class != trajectories.Internal || !strings.Contains(out.Error, "no room") {
		t.Errorf("%+v", out)
	}
}

// The .traj.json of an attempt with tool calls is that of mini-swe-agent, and
// an attempt that says it again gives the same one.
func TestTrajectoryOfToolCalls(t *testing.T) {
	first := &script{replies: []model.Reply{
		calls("echo one; exit 3"), calls("!{"), says("no call").replies[0],
		calls("echo two >> a.txt", "cat a.txt"), calls("echo a", submit+" && git diff", "echo never"),
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
	script, err := scripted.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	again, err := script.For("any")
	if err != nil {
		t.Fatal(err)
	}
	got, _ = trajectory(t, again)
	others := regexp.MustCompile(`"(instance_)?cost":[0-9.]+|"model":"\w+",`)
	if diff := cmp.Diff(others.ReplaceAllString(string(want), ""), others.ReplaceAllString(string(got), "")); diff != "" {
		t.Errorf("said again (-want +got):\n%s", diff)
	}
}

// trajectory is the .traj.json of an attempt, without its times.
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
	cfg := agent.Session{Model: m, Environment: repository(t), Recorder: j, Task: agent.Task{Text: "task"}}
	if out := a.Run(t.Context(), cfg); out.Class != trajectories.Submitted {
		t.Fatalf("%+v", out)
	}
	if err := errors.Join(j.Close(), trajectories.Derive(filepath.Join(dir, "j"), path)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data = regexp.MustCompile(`"timestamp":[0-9.]+`).ReplaceAll(data, []byte(`"timestamp":0`))
	return regexp.MustCompile(`at /[^"]*`).ReplaceAll(data, []byte("at /")), path
}
