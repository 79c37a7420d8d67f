package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// greedy is a sandbox whose commands ask again and again, with an input of so many
// bytes each; it keeps the exit codes.
type greedy struct {
	calls, size int
	codes       map[int]int
}

func (*greedy) Info() env.Info              { return env.Info{Dir: "/", Tools: true} }
func (*greedy) Close(context.Context) error { return nil }
func (g *greedy) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	switch {
	case c.Tools == nil: // a command of the agent itself
		return env.Result{ExitCode: 1}, nil
	case c.Script == submit:
		return env.Result{Output: []byte("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n")}, nil
	}
	for range g.calls {
		a := c.Tools.Answer(ctx, env.ToolRequest{Args: []string{"x", "-"}, Input: make([]byte, g.size)})
		g.codes[a.ExitCode]++
	}
	return env.Result{}, nil
}

// willing is a Toolbox that does all it is asked.
type willing struct{}

func (willing) Abilities() agent.Abilities                           { return agent.Abilities{} }
func (willing) Answer(context.Context, agent.Asked) agent.ToolAnswer { return agent.ToolAnswer{} }

// TestACommandAsksSoMuch bounds a command that would fill the journal; the next one
// begins anew.
func TestACommandAsksSoMuch(t *testing.T) {
	for name, tt := range map[string]struct {
		calls, size int
		answered    int // of one command
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
			box := &greedy{calls: tt.calls, size: tt.size, codes: map[int]int{}}
			m := &memory{}
			out := a.Run(t.Context(), agent.Session{
				Model: says(bash("ask"), bash("ask"), bash(submit)), Environment: box, Recorder: m, Tools: willing{},
			})
			recorded := 0
			for _, r := range m.records {
				if r.Type == trajectories.TypeTool {
					recorded++
				}
			}
			if box.codes[0] != 2*tt.answered || recorded != 2*tt.answered || box.codes[1] != 2*(tt.calls-tt.answered) || !strings.HasPrefix(out.ExitStatus, "Submitted") {
				t.Errorf("exit codes %v, %d on record, %s %s %s", box.codes, recorded, out.ExitStatus, out.Error, out.Stack)
			}
		})
	}
}
