// Tools adds a custom tool to mini's agent: a command in the sandbox calls the tool as
// "mini-tool stock NAME", and this program handles the call. The sandbox is a fake
// whose commands can only call tools. In env/local, env/bubblewrap and env/docker,
// mini-tool is on the PATH of each command.
//
//	go run ./examples/tools
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// stock is the tool. It maps the name of a product to the number in stock.
type stock map[string]int

// Spec implements tools.Tool.
func (stock) Spec() tools.Spec {
	return tools.Spec{Name: "stock", Usage: "stock NAME", Description: "says how many there are of a thing"}
}

// Call implements tools.Tool. The model sees Output; the agent writes Details to the
// journal.
func (s stock) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	if len(c.Args) != 1 {
		return tools.Result{}, tools.Usagef("one name is needed")
	}
	n, ok := s[c.Args[0]]
	if !ok {
		return tools.Result{}, fmt.Errorf("there is no %.80q here", c.Args[0])
	}
	return tools.Result{Output: fmt.Sprintln(n), Details: map[string]int{c.Args[0]: n}}, nil
}

// run runs the agent with the tool and prints the messages and tool calls.
func run(ctx context.Context, w io.Writer) error {
	a, err := agent.New(agent.Config{
		SystemTemplate:      "You are a clerk.{{range .tools}} Ask mini-tool {{.usage}}: {{.about}}.{{end}}",
		InstanceTemplate:    "{{.task}}",
		ObservationTemplate: "[{{.returncode}}] {{.output}}",
		FormatErrorTemplate: "{{.error}}",
		StepLimit:           10,
		PlainReply:          agent.PlainReplyEnd, // a reply without a command is the end
	})
	if err != nil {
		return err
	}
	toolbox, err := tools.New(tools.Config{Tools: []tools.Tool{stock{"nail": 90}}})
	if err != nil {
		return err
	}
	memory := agent.NewMemoryRecorder()
	out := a.Run(ctx, agent.Session{
		Task:        agent.Task{Text: "How many nails are there?"},
		Model:       &scriptedModel{replies: []string{"```bash\nmini-tool stock nails\n```", "```bash\nmini-tool stock nail\n```", "There are 90."}},
		Environment: fakeSandbox{},
		Recorder:    memory,
		Tools:       toolbox,
	})
	for r, err := range memory.Records() {
		if err != nil {
			return err
		}
		if r.Type == trajectories.TypeTool || r.Type == trajectories.TypeMessage {
			if _, err := fmt.Fprintf(w, "%s: %s\n", r.Type, r.Data); err != nil {
				return err
			}
		}
	}
	_, err = fmt.Fprintf(w, "%s after %d steps\n", out.ExitStatus, out.Steps)
	return err
}

// scriptedModel is a model with fixed replies.
type scriptedModel struct{ replies []string }

func (m *scriptedModel) Query(context.Context, []model.Message) (model.Reply, error) {
	text := m.replies[0]
	m.replies = m.replies[1:]
	return model.Reply{Message: model.Message{Role: model.Assistant, Content: text}, FinishReason: model.FinishStop, Tries: 1}, nil
}

// fakeSandbox is a sandbox whose commands can only call tools.
type fakeSandbox struct{}

func (fakeSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	res := env.Result{ExitCode: 127, OOMKilled: -1}
	if words := strings.Fields(c.Script); words[0] == env.ToolProgram && c.Tools != nil {
		answer := c.Tools.Handle(ctx, env.ToolRequest{Args: words[1:], Dir: "/"})
		res.ExitCode, res.Output = answer.ExitCode, append(answer.Stdout, answer.Stderr...)
	}
	res.Head, res.Bytes, res.Chars = len(res.Output), int64(len(res.Output)), int64(len([]rune(string(res.Output))))
	return res, nil
}

func (fakeSandbox) Info() env.Info              { return env.Info{System: "fake", Dir: "/", Tools: true} }
func (fakeSandbox) Close(context.Context) error { return nil }
