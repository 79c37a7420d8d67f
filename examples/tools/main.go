// Tools gives mini's agent a tool of one's own: a command of the sandbox asks for
// it by "mini-tool stock NAME", and this program answers. The sandbox is made up
// and knows nothing else; in env/local, env/bubblewrap and env/docker the program
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

// stock is the tool: what there is of which thing.
type stock map[string]int

// Spec implements tools.Tool.
func (stock) Spec() tools.Spec {
	return tools.Spec{Name: "stock", Usage: "stock NAME", About: "says how many there are of a thing"}
}

// Call implements tools.Tool. The model sees Output; Details are for people and
// programs that read the journal.
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

// run has the agent work with the tool, and prints what was asked.
func run(ctx context.Context, w io.Writer) error {
	a, err := agent.New(agent.Config{
		SystemTemplate:      "You are a clerk.{{range .tools}} Ask mini-tool {{.usage}}: {{.about}}.{{end}}",
		InstanceTemplate:    "{{.task}}",
		ObservationTemplate: "[{{.returncode}}] {{.output}}",
		FormatErrorTemplate: "{{.error}}",
		StepLimit:           10,
		PlainReply:          agent.PlainEnd, // a reply without a command is the end
	})
	if err != nil {
		return err
	}
	box, err := tools.New(tools.Config{Tools: []tools.Tool{stock{"nail": 90}}})
	if err != nil {
		return err
	}
	memory := agent.NewMemory()
	out := a.Run(ctx, agent.Session{
		Task:        agent.Task{Text: "How many nails are there?"},
		Model:       &clerk{replies: []string{"```bash\nmini-tool stock nails\n```", "```bash\nmini-tool stock nail\n```", "There are 90."}},
		Environment: counter{},
		Recorder:    memory,
		Tools:       box,
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

// clerk is a model that knows what to say.
type clerk struct{ replies []string }

func (c *clerk) Query(context.Context, []model.Message) (model.Reply, error) {
	text := c.replies[0]
	c.replies = c.replies[1:]
	return model.Reply{Message: model.Message{Role: model.Assistant, Content: text}, Finish: model.FinishStop, Tries: 1}, nil
}

// counter is a sandbox whose commands can do nothing but ask.
type counter struct{}

func (counter) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	res := env.Result{ExitCode: 127, OOMKilled: -1}
	if words := strings.Fields(c.Script); words[0] == env.ToolProgram && c.Tools != nil {
		answer := c.Tools.Answer(ctx, env.ToolRequest{Args: words[1:], Dir: "/"})
		res.ExitCode, res.Output = answer.ExitCode, append(answer.Output, answer.Errors...)
	}
	res.Head, res.Bytes, res.Chars = len(res.Output), int64(len(res.Output)), int64(len([]rune(string(res.Output))))
	return res, nil
}

func (counter) Info() env.Info              { return env.Info{System: "counter", Dir: "/", Tools: true} }
func (counter) Close(context.Context) error { return nil }
