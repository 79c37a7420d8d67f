package agent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// echoing is a sandbox whose commands ask for a tool, each by its whole text, and
// put out what it answers.
type echoing struct{}

func (echoing) Info() env.Info              { return env.Info{Dir: "/", Tools: true} }
func (echoing) Close(context.Context) error { return nil }
func (echoing) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if c.Tools == nil {
		return env.Result{Output: []byte(c.Script + "\n")}, nil
	}
	a := c.Tools.Answer(ctx, env.ToolRequest{Args: []string{c.Script}})
	return env.Result{Output: append(a.Output, '\n')}, nil
}

// looking is a Toolbox that looks at the steps; it answers with the name.
type looking struct{ steps [][]agent.Step }

func (*looking) Abilities() agent.Abilities { return agent.Abilities{} }
func (l *looking) Answer(_ context.Context, a agent.Asked) agent.ToolAnswer {
	l.steps = append(l.steps, a.Attempt.Steps())
	if a.Args[0] == submit {
		a.Args[0] = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
	}
	return agent.ToolAnswer{ToolAnswer: env.ToolAnswer{Output: []byte(a.Args[0])}}
}

// in short: number, commands, answers.
func inShort(steps []agent.Step) []string {
	var list []string
	for _, s := range steps {
		var told []string
		for _, m := range s.Answers {
			told = append(told, string(m.Role)+" "+m.Content)
		}
		list = append(list, fmt.Sprintf("%d %q %q", s.Number, s.Commands, told))
	}
	return list
}

func TestSteps(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg    agent.Config
		script *script
		want   []string
	}{
		"text": {
			config(), says(bash("echo a"), "no command", bash(submit)),
			[]string{
				`1 ["echo a"] ["user [0] echo a\n"]`, `2 [] ["user your reply has no command"]`,
				`3 ["` + submit + `"] []`,
			},
		},
		"tools": {
			toolsConfig(), &script{replies: []model.Reply{calls("echo a", "echo b"), calls("echo c", submit)}},
			[]string{
				`1 ["echo a" "echo b"] ["tool [0] echo a\n" "tool [0] echo b\n"]`,
				`2 ["echo c" "` + submit + `"] ["tool [0] echo c\n"]`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := agent.New(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			box := &looking{}
			a.Run(t.Context(), agent.Session{Model: tt.script, Environment: echoing{}, Recorder: &memory{}, Task: agent.Task{Text: "task"}, Tools: box})
			last := box.steps[len(box.steps)-1]
			if name == "text" { // the wording is protocol's
				last[1].Answers[0].Content = "your reply has no command"
			}
			if diff := cmp.Diff(tt.want, inShort(last)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Calls that are gone on from are those on the branch, up to the point where the
// attempt goes on.
func TestRecallOfToolCalls(t *testing.T) {
	rec := begun()
	put := func(typ trajectories.Type, parent int, data any) int {
		r, err := rec.Append(typ, data)
		if err != nil {
			t.Fatal(err)
		}
		if parent > 0 {
			rec.records[r.ID-1].Parent = parent
		}
		return r.ID
	}
	said := func(role model.Role, cause trajectories.Cause, text string) int {
		return put(trajectories.TypeMessage, 0, trajectories.Message{Message: model.Message{Role: role, Content: text}, Cause: cause})
	}
	step := func(name string, told bool) int {
		put(trajectories.TypeCall, 0, trajectories.Call{})
		last := said(model.Assistant, trajectories.CauseReply, bash(name))
		put(trajectories.TypeTool, 0, trajectories.ToolCall{Name: name})
		if told {
			put(trajectories.TypeExecution, 0, trajectories.Execution{Command: name})
			last = said(model.User, trajectories.CauseObservation, name)
		}
		return last
	}
	said(model.System, trajectories.CausePrompt, "s")
	said(model.User, trajectories.CausePrompt, "t")
	kept := step("one", true)
	step("left behind", true)
	put(trajectories.TypeResume, kept, trajectories.Resume{Record: kept})
	step("two", true)
	step("not over", false)
	past, err := agent.Recall(rec.all())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range past.Asked {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"one", "two"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
