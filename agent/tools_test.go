package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
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
			require.NoError(t, json.Unmarshal(r.Data, &msg))
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
			assert.Equal(t, 0, len(open), "message %d (%s) comes before the answers to %v", i, m.Role, open)
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
			require.NoError(t, err)
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
			assert.Equal(t, tt.history, summarize(history[min(2, len(history)):]), "history")
			assert.Equal(t, tt.open, checkAnswers(t, history), "calls without an answer")
			for i, seen := range tt.script.prompts {
				var sent []trajectories.Message
				for _, m := range seen {
					sent = append(sent, trajectories.Message{Message: m})
				}
				assert.Equal(t, "", strings.Join(checkAnswers(t, sent), " "), "request %d lacks answers", i)
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

// The .traj.json of an attempt with tool calls is that of mini-swe-agent, and
// an attempt that replays it gives the same one.
func TestToolCallTrajectory(t *testing.T) {
	first := &scriptedModel{replies: []model.Reply{
		toolReply("echo one; exit 3"), toolReply("!{"), replies("no call").replies[0],
		toolReply("echo two >> a.txt", "cat a.txt"), toolReply("echo a", submit+" && git diff", "echo never"),
	}}
	got, file := trajectory(t, first)
	golden.Check(t, filepath.Join("testdata", "tools.traj.json.golden"), got)
	script, err := scripts.Load(file)
	require.NoError(t, err)
	again, err := script.For("any")
	require.NoError(t, err)
	replayed, _ := trajectory(t, again)
	others := regexp.MustCompile(`"(instance_)?cost":[0-9.]+|"model":"\w+",|"response":\{"usage":\{[^}]*\}\},`)
	assert.Equal(t, others.ReplaceAllString(string(got), ""), others.ReplaceAllString(string(replayed), ""), "said again")
}

// trajectory returns the .traj.json of an attempt, without times.
func trajectory(t *testing.T, m model.Model) ([]byte, string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.traj.json")
	j, err := trajectories.Create(filepath.Join(dir, "j"), trajectories.Header{InstanceID: "a"})
	require.NoError(t, err)
	a, err := agent.New(toolsConfig())
	require.NoError(t, err)
	cfg := agent.Session{Model: m, Environment: gitSandbox(t), Recorder: j, Task: agent.Task{Text: "task"}}
	require.Equal(t, trajectories.Submitted, a.Run(t.Context(), cfg).Class)
	require.NoError(t, errors.Join(j.Close(), trajectories.WriteTrajFile(filepath.Join(dir, "j"), path)))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data = regexp.MustCompile(`"timestamp":[0-9.]+`).ReplaceAll(data, []byte(`"timestamp":0`))
	return regexp.MustCompile(`at /[^"]*`).ReplaceAll(data, []byte("at /")), path
}

// times matches the values that differ between runs.
var times = regexp.MustCompile(`"(time|start|end)":"[^"]*"|"(duration|waited)":[0-9.e-]+|"times":\{[^}]*\}`)

// The journal of an attempt without optional features has not changed since
// before there were any, except for its times.
func TestJournalWithoutOptionalFeatures(t *testing.T) {
	for _, protocolName := range protocol.Names {
		t.Run(protocolName, func(t *testing.T) {
			cfg := config()
			cfg.Protocol, cfg.StepLimit = protocolName, 20
			p, err := cfg.ParseProtocol()
			require.NoError(t, err)
			a, err := agent.New(cfg)
			require.NoError(t, err)
			w, rec := &workingModel{protocol: p, steps: 6, plainStep: 3, userMessages: map[int]string{4: "be quick"}, inbox: agent.NewInbox()}, newRecorder()
			a.Run(t.Context(), agent.Session{Model: w, Environment: fakeSandbox{}, Recorder: rec, Inbox: w.inbox, Task: agent.Task{Text: "mend method_7"}})
			var got bytes.Buffer
			for _, r := range rec.records {
				got.WriteString(string(r.Type) + " ")
				got.Write(times.ReplaceAll(r.Data, []byte("-")))
				got.WriteByte('\n')
			}
			golden.Check(t, filepath.Join("testdata", "off-"+protocolName+".golden"), got.Bytes())
		})
	}
}

// requestingSandbox is a sandbox whose commands send a number of mini-tool
// requests of the given size each. It counts their exit codes.
type requestingSandbox struct {
	calls, size int
	codes       map[int]int
}

func (*requestingSandbox) Info() env.Info              { return env.Info{Dir: "/", Tools: true} }
func (*requestingSandbox) Close(context.Context) error { return nil }
func (g *requestingSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	switch {
	case c.Tools == nil: // a command of the agent itself
		return env.Result{ExitCode: 1}, nil
	case c.Script == submit:
		return env.Result{Output: []byte("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n")}, nil
	}
	for range g.calls {
		a := c.Tools.Handle(ctx, env.ToolRequest{Args: []string{"x", "-"}, Stdin: make([]byte, g.size)})
		g.codes[a.ExitCode]++
	}
	return env.Result{}, nil
}

// emptyToolServer is a ToolServer that answers every request with nothing.
type emptyToolServer struct{}

func (emptyToolServer) Capabilities() agent.Capabilities { return agent.Capabilities{} }

func (emptyToolServer) Handle(context.Context, agent.ToolRequest) agent.ToolResponse {
	return agent.ToolResponse{}
}

// The requests of one command are limited; the next command has its own limit.
func TestToolRequestLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		calls, size int
		answered    int // per command
	}{
		"often": {1100, 1, 1000},
		"much":  {200, 100 << 10, 163},
		"less":  {20, 100, 20},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := agent.New(config())
			require.NoError(t, err)
			sandbox := &requestingSandbox{calls: tt.calls, size: tt.size, codes: map[int]int{}}
			m := &testRecorder{}
			out := a.Run(t.Context(), agent.Session{
				Model: replies(bash("ask"), bash("ask"), bash(submit)), Environment: sandbox, Recorder: m, Tools: emptyToolServer{},
			})
			recorded := 0
			for _, r := range m.records {
				if r.Type == trajectories.TypeTool {
					recorded++
				}
			}
			if sandbox.codes[0] != 2*tt.answered || recorded != 2*tt.answered || sandbox.codes[1] != 2*(tt.calls-tt.answered) || !strings.HasPrefix(out.ExitStatus, "Submitted") {
				t.Errorf("exit codes %v, %d recorded, %s %s %s", sandbox.codes, recorded, out.ExitStatus, out.Error, out.Stack)
			}
		})
	}
}
