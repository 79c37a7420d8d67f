// Embed runs mini's agent inside another program: with a sandbox and a model of
// its own, both a few lines long, with somebody who watches, and with words to
// the agent while it works. Nothing is written to any file.
//
//	go run ./examples/embed
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
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

// run has the agent work on one task, and prints what happens.
func run(ctx context.Context, w io.Writer) error {
	a, err := agent.New(agent.Config{
		SystemTemplate:      "You are a clerk. Ask for one command at a time, in a block marked bash.",
		InstanceTemplate:    "{{.task}}",
		ObservationTemplate: "[{{.returncode}}] {{.output}}",
		FormatErrorTemplate: "{{.error}}",
		StepLimit:           10,
		PlainReply:          agent.PlainEnd, // a reply without a command is the end
	})
	if err != nil {
		return err
	}
	bus, talk, memory := events.NewBus(), agent.NewTalk(), agent.NewMemory()
	watched := make(chan error, 1)
	sub := bus.Subscribe(0)
	go func() {
		var failed error // to print; the agent goes on without
		for e := range sub.All(ctx) {
			if failed == nil {
				failed = show(w, e.Event)
			}
		}
		watched <- failed
	}()

	talk.FollowUp("And how many lines are that?") // told when the agent would end
	out := a.Run(ctx, agent.Session{
		Task:        agent.Task{Text: "What is in the note?"},
		Model:       &clerk{talk: talk},
		Environment: &shelf{files: map[string]string{"note": "buy milk\n"}},
		Recorder:    memory,
		Talk:        talk,
		Events:      bus,
	})
	bus.Close()
	if err := <-watched; err != nil {
		return err
	}

	t, err := trajectories.Gather(memory.Records())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s: %d messages, %d steps\n", out.ExitStatus, len(t.Entries), out.Steps)
	return err
}

// show prints what is of interest of an event.
func show(w io.Writer, e events.Event) error {
	text := ""
	switch e := e.(type) {
	case events.TextDelta:
		text = e.Text
	case events.Replied:
		text = "\n"
	case events.ActionStarted:
		text = fmt.Sprintf("$ %s\n", e.Command)
	case events.OutputChunk:
		text = fmt.Sprintf("  %s", e.Data)
	case events.Told:
		text = fmt.Sprintf("[%s] %s\n", e.Cause, e.Text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// clerk is a model that knows what to say. A real one asks a provider: see
// model/openai and model/anthropic.
type clerk struct {
	talk *agent.Talk
	said int
}

func (c *clerk) Query(ctx context.Context, _ []model.Message) (model.Reply, error) {
	replies := []string{
		"I look around.\n```bash\nls\n```", "I read it.\n```bash\ncat note\n```", "It says: buy milk. Shall I?", "One line.",
	}
	switch c.said { // in earnest a person does this, from another goroutine
	case 0:
		c.talk.Steer("Be quick.") // told after the command; drops what was to be followed up
		c.talk.FollowUp("No. How many lines are that?")
		c.talk.FollowUp("Count again.")
	case len(replies):
		c.talk.Abort()
		<-ctx.Done()
		return model.Reply{}, context.Cause(ctx)
	}
	text := replies[c.said]
	c.said++
	if tell := model.Deltas(ctx); tell != nil { // somebody watches: piece by piece
		for piece := range strings.SplitAfterSeq(text, " ") {
			tell(model.Delta{Text: piece})
		}
	}
	return model.Reply{Message: model.Message{Role: model.Assistant, Content: text}, Finish: model.FinishStop, Tries: 1}, nil
}

// shelf is a sandbox that knows two commands. Real ones are env/local,
// env/bubblewrap and env/docker.
type shelf struct{ files map[string]string }

func (s *shelf) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if ctx.Err() != nil {
		return env.Result{ExitCode: -1, OOMKilled: -1}, context.Cause(ctx)
	}
	begun, out, code := time.Now(), "", 0
	switch words := strings.Fields(c.Script); {
	case len(words) == 1 && words[0] == "ls":
		for name := range s.files {
			out += name + "\n"
		}
	case len(words) == 2 && words[0] == "cat" && s.files[words[1]] != "":
		out = s.files[words[1]]
	default:
		out, code = "I do not know how.\n", 127
	}
	if c.Watch != nil && out != "" {
		c.Watch([]byte(out))
	}
	return env.Result{
		Output: []byte(out), Head: len(out), Bytes: int64(len(out)), Chars: int64(len([]rune(out))),
		ExitCode: code, Duration: time.Since(begun), OOMKilled: -1,
	}, nil
}

func (s *shelf) Info() env.Info              { return env.Info{System: "shelf", Dir: "/"} }
func (s *shelf) Close(context.Context) error { return nil }
