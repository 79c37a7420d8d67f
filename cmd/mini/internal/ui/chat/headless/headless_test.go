package headless_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat/headless"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// start returns a frontend that writes to the returned builder.
func start(format headless.Format) (*headless.Frontend, *strings.Builder) {
	var out strings.Builder
	f := headless.New(headless.Config{
		Print: func(text string) error { out.WriteString(text); return nil }, Err: io.Discard, Format: format, Session: "s-1",
	})
	return f, &out
}

func reply(text string, calls []model.ToolCall, commands ...string) events.Recorded {
	m := trajectories.Message{Cause: trajectories.CauseReply, Actions: commands}
	m.Role, m.Content, m.ToolCalls = model.Assistant, text, calls
	return events.Recorded{Data: m}
}

func message(cause trajectories.Cause, text string) events.Recorded {
	m := trajectories.Message{Cause: cause}
	m.Role, m.Content = model.User, text
	return events.Recorded{Data: m}
}

var submitted = trajectories.Outcome{Class: trajectories.Submitted, ExitStatus: "Submitted", Source: trajectories.SourceSubmitted}

// The result is the text of the last reply that has one, without thinking and commands.
func TestResult(t *testing.T) {
	for name, test := range map[string]struct {
		replies []events.Recorded
		want    string
	}{
		"plain":                   {[]events.Recorded{reply("The answer.\n", nil)}, "The answer.\n"},
		"with thinking":           {[]events.Recorded{reply("<think>hm</think>The answer.", nil)}, "The answer.\n"},
		"with a command":          {[]events.Recorded{reply("Done.\n\n```bash\necho x\n```\n", nil, "echo x")}, "Done.\n"},
		"the command in the text": {[]events.Recorded{reply("I run `ls`.\n```bash\nls\n```", nil, "ls")}, "I run `ls`.\n"},
		"in a tag":                {[]events.Recorded{reply("Done.\n<bash>echo x</bash>\nReally.", nil, "echo x")}, "Done.\nReally.\n"},
		"a tool call":             {[]events.Recorded{reply("ls, and done.", []model.ToolCall{{ID: "c1"}}, "ls")}, "ls, and done.\n"},
		"the last has no text":    {[]events.Recorded{reply("All is done.", []model.ToolCall{{ID: "c1"}}, "ls"), reply("", []model.ToolCall{{ID: "c2"}}, "echo x")}, "All is done.\n"},
		"nothing":                 {nil, ""},
	} {
		f, out := start(headless.Text)
		for _, r := range test.replies {
			f.Observe(r)
		}
		if err := f.Finish(submitted, trajectories.Spending{}, "x.traj.json"); err != nil || out.String() != test.want {
			t.Errorf("%s: %q, %v, want %q", name, out, err, test.want)
		}
	}
}

// The object has what the call has spent, and says why there is no result.
func TestResultObject(t *testing.T) {
	before := trajectories.Spending{Usage: model.Usage{Prompt: 100, Completion: 10, Unpriced: 1}, Cost: 1}
	limit := trajectories.Outcome{
		Class: trajectories.Limit, ExitStatus: "LimitsExceeded", Cost: 1.5,
		Usage: model.Usage{Prompt: 400, Completion: 30, CacheRead: 200, CacheWrite: 50, Unpriced: 1},
	}
	failed := trajectories.Outcome{Class: trajectories.Provider, ExitStatus: "BadRequest", Error: "BadRequest: 400 no"}
	for name, test := range map[string]struct {
		event events.Event
		out   trajectories.Outcome
		want  string
	}{
		"a limit of steps": {events.LimitReached{Limit: events.LimitSteps}, limit, `"subtype":"error_max_turns","is_error":true`},
		"a limit of cost":  {events.LimitReached{Limit: events.LimitCost}, limit, `"subtype":"error_max_budget_usd","is_error":true`},
		"spending":         {nil, limit, `"session_id":"s-1","total_cost_usd":0.5,"usage":{"input_tokens":50,"cache_creation_input_tokens":50,"cache_read_input_tokens":200,"output_tokens":20},"permission_denials":[]`},
		"a failure":        {nil, failed, `"errors":["400 no"],"exit_status":"BadRequest"`},
	} {
		f, out := start(headless.JSON)
		if test.event != nil {
			f.Observe(test.event)
		}
		if err := f.Finish(test.out, before, "x.traj.json"); err != nil || !strings.Contains(out.String(), test.want) || strings.Contains(out.String(), `"result":"`) || !json.Valid([]byte(out.String())) {
			t.Errorf("%s: %v, no %s in\n%s", name, err, test.want, out)
		}
	}
}

// Results of commands have the IDs of their calls, and other messages are texts of the user.
func TestStream(t *testing.T) {
	f, out := start(headless.StreamJSON)
	f.Observe(message(trajectories.CausePrompt, "the prompt"))
	f.Observe(reply("", []model.ToolCall{{ID: "c1"}, {ID: "c2"}}, "ls", "rm x"))
	f.Observe(events.Recorded{Data: trajectories.CommandDecision{Command: "rm x", Decision: trajectories.Decision{Action: trajectories.Deny, Reason: "no"}}})
	f.Observe(message(trajectories.CauseObservation, "one\x1b[31m"))
	f.Observe(message(trajectories.CauseRejection, "not run"))
	f.Observe(message(trajectories.CauseFormatError, "wrong"))
	if err := f.Finish(submitted, trajectories.Spending{}, "x.traj.json"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{
		`"content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}},{"type":"tool_use","id":"c2",`,
		`{"type":"tool_result","tool_use_id":"c1","content":"one\u001b[31m","is_error":false}`,
		`{"type":"tool_result","tool_use_id":"c2","content":"not run","is_error":true}`,
		`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"wrong"}]}`,
		`"permission_denials":[{"tool_name":"Bash","tool_use_id":"c2","tool_input":{"command":"rm x"}}]`,
	} {
		if len(lines) != 5 || !strings.Contains(lines[i], want) {
			t.Fatalf("line %d lacks %s:\n%s", i+1, want, out)
		}
	}
}

// After an error of stdout nothing more is written, and the session is told once.
func TestBrokenOutput(t *testing.T) {
	writes, told := 0, 0
	broken := errors.New("broken pipe")
	f := headless.New(headless.Config{
		Print: func(string) error { writes++; return broken }, Err: io.Discard, Format: headless.StreamJSON, OnBrokenOutput: func() { told++ },
	})
	f.Observe(events.RunStarted{})
	f.Observe(reply("text", nil))
	if err := f.Finish(submitted, trajectories.Spending{}, ""); !errors.Is(err, broken) || writes != 1 || told != 1 {
		t.Errorf("%v, %d writes, told %d times", err, writes, told)
	}
}
