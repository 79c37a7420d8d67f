package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

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
			if err != nil {
				t.Fatal(err)
			}
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
