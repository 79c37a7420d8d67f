package replay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner/replay"
	"github.com/minibench/mini/trajectories"
)

func called(name string, output string, code int, args ...string) trajectories.ToolCall {
	return trajectories.ToolCall{Name: name, Args: args, Output: trajectories.Bytes(output), Errors: trajectories.Bytes("!"), ExitCode: code}
}

// TestRecordedTools answers calls from the recording.
func TestRecordedTools(t *testing.T) {
	ran := &trajectories.Execution{ToolCalls: []trajectories.ToolCall{
		called("note", "1", 0, "add", "x"), called("notes", "first", 0), called("note", "2", 0, "add", "y"), called("notes", "second", 3),
		called("", "usage", 0), called("odd", "odd", 0, "a\uFFFDb"),
	}}
	ran.ToolCalls[2].Input = trajectories.Bytes("in")
	for name, c := range map[string]struct {
		asked []string // "name args < input"
		want  string
	}{
		"as it was":            {[]string{"note add x", "notes", "note add y < in", "notes"}, "1/0 first/0 2/0 second/3"},
		"in another order":     {[]string{"notes", "notes", "note add x"}, "first/0 second/3 1/0"},
		"once only":            {[]string{"note add x", "note add x"}, "1/0 /1"},
		"other arguments":      {[]string{"note add z", "note"}, "/1 /1"},
		"another input":        {[]string{"note add y", "note add y < other", "note add x < in"}, "/1 /1 /1"},
		"another name":         {[]string{"search x"}, "/1"},
		"nothing":              {[]string{""}, "usage/0"},
		"no UTF-8, as in JSON": {[]string{"odd a\xffb"}, "odd/0"},
	} {
		t.Run(name, func(t *testing.T) {
			asks := (&replay.Tools{Local: []string{"read"}}).For(ran)
			var got []string
			for _, line := range c.asked {
				q := env.ToolRequest{}
				line, input, _ := strings.Cut(line, " < ")
				q.Args, q.Stdin = strings.Fields(line), []byte(input)
				a := asks.Handle(t.Context(), q)
				got = append(got, fmt.Sprintf("%s/%d", a.Stdout, a.ExitCode))
				if a.ExitCode == 1 != strings.Contains(string(a.Stderr), "this call was not recorded") {
					t.Errorf("errors %q", a.Stderr)
				}
			}
			if text := strings.Join(got, " "); text != c.want || asks.InSandbox[0] != "read" {
				t.Errorf("%q, want %q", text, c.want)
			}
		})
	}
	if len(ran.ToolCalls) != 6 || ran.ToolCalls[0].Name != "note" {
		t.Error("the record has changed")
	}
}

func TestDisabledTools(t *testing.T) {
	var off *replay.Tools
	if off.For(&trajectories.Execution{}) != nil {
		t.Error("a command is given tools that it never had")
	}
	asks := off.For(&trajectories.Execution{ToolCalls: []trajectories.ToolCall{called("notes", "x", 0)}})
	if a := asks.Handle(t.Context(), env.ToolRequest{Args: []string{"notes"}}); string(a.Stdout) != "x" {
		t.Errorf("%+v", a)
	}
}

// TestRerun repeats the effects of calls in the sandbox.
func TestRerun(t *testing.T) {
	var seen []string
	tools := &replay.Tools{Rerun: func(_ context.Context, c trajectories.ToolCall, q env.ToolRequest) error {
		seen = append(seen, c.Name+" in "+q.Dir)
		if c.Name == "chain" {
			return errors.New("it went otherwise")
		}
		return nil
	}}
	asks := tools.For(&trajectories.Execution{ToolCalls: []trajectories.ToolCall{called("delegate", "done", 0), called("chain", "done", 0)}})
	for name, want := range map[string]string{"delegate": "done", "chain": ""} {
		a := asks.Handle(t.Context(), env.ToolRequest{Args: []string{name}, Dir: "/w"})
		if string(a.Stdout) != want || want == "" && !strings.Contains(string(a.Stderr), "it went otherwise") {
			t.Errorf("%s: %q %q", name, a.Stdout, a.Stderr)
		}
	}
	asks.Handle(t.Context(), env.ToolRequest{Args: []string{"delegate"}})
	if len(seen) != 2 {
		t.Errorf("%q", seen)
	}
}

// toolSandbox is a sandbox whose commands call one tool and print the answer.
type toolSandbox struct {
	env.Environment
	mu    sync.Mutex
	asked int
}

func (a *toolSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if c.Tools == nil || !strings.HasPrefix(c.Script, "mini-tool ") {
		return a.Environment.Execute(ctx, c)
	}
	a.mu.Lock()
	a.asked++
	a.mu.Unlock()
	answer := c.Tools.Handle(ctx, env.ToolRequest{Args: strings.Fields(c.Script)[1:]})
	out := append(answer.Stdout, answer.Stderr...)
	return env.Result{Output: out, Bytes: int64(len(out)), ExitCode: answer.ExitCode, OOMKilled: -1}, nil
}

// TestReplayCallsNoTools reruns an attempt with a tool call: it is answered from the
// recording, and a new call shows up as a difference.
func TestReplayCallsNoTools(t *testing.T) {
	tr := record(t, inMemory, "cat a.txt", "echo two >> a.txt")
	ask := trajectories.Entry{
		Message: trajectories.Message{Cause: trajectories.CauseReply, Actions: []string{"mini-tool note add x"}},
		Executions: []trajectories.Execution{{
			Record: 100, ObservationEntry: -1, ToolCalls: []trajectories.ToolCall{called("note", "kept as 7\n", 0, "add", "x")},
			Command: "mini-tool note add x", Output: trajectories.Bytes("kept as 7\n!"), Bytes: 11,
		}},
	}
	tr.Entries = append(tr.Entries, ask)
	prepared := 0
	run := func(ran string) replay.Result {
		tr.Entries[len(tr.Entries)-1].Executions[0].Command = ran
		memory, repo := inMemory(t)
		sandbox := &toolSandbox{Environment: memory}
		res, err := replay.Run(t.Context(), replay.Config{
			Environment: sandbox, Repository: repo, Command: command, Attempt: tr, Scrub: true,
			Tools: &replay.Tools{Prepare: func(context.Context, env.Environment) error { prepared++; return nil }},
		})
		if err != nil || sandbox.asked != 1 {
			t.Fatalf("%v, %d requests", err, sandbox.asked)
		}
		return res
	}
	if res := run("mini-tool note add x"); !res.Reproduced() || prepared != 1 {
		t.Errorf("%+v, prepared %d times", res, prepared)
	}
	if res := run("mini-tool note add y"); res.FirstDiverged() == nil || res.FirstDiverged().Step != 3 {
		t.Errorf("%+v", res)
	}
}
