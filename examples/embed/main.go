// Embed runs mini's agent inside another program, with a scripted model and a fake
// sandbox, both a few lines long. It prints the agent's events and sends messages to
// the agent while it works. It writes no files.
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
	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

func main() {
	binaries.Init(os.Stderr) // lets env/docker and env/bubblewrap start sandboxes from this program; see its documentation
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the agent on one task and prints its events.
func run(ctx context.Context, w io.Writer) error {
	a, err := agent.New(agent.Config{
		SystemTemplate:      "You are a clerk. Ask for one command at a time, in a block marked bash.",
		InstanceTemplate:    "{{.task}}",
		ObservationTemplate: "[{{.returncode}}] {{.output}}",
		FormatErrorTemplate: "{{.error}}",
		StepLimit:           10,
		PlainReply:          agent.PlainReplyEnd, // a reply without a command is the end
	})
	if err != nil {
		return err
	}
	bus, inbox, memory := events.NewBus(), agent.NewInbox(), agent.NewMemoryRecorder()
	printed := make(chan error, 1)
	sub := bus.Subscribe(0)
	go func() {
		var firstErr error // an error of printEvent does not stop the agent
		for e := range sub.All(ctx) {
			if firstErr == nil {
				firstErr = printEvent(w, e.Event)
			}
		}
		printed <- firstErr
	}()

	inbox.FollowUp("And how many lines are that?") // the agent gets this when it would otherwise stop
	out := a.Run(ctx, agent.Session{
		Task:        agent.Task{Text: "What is in the note?"},
		Model:       &scriptedModel{inbox: inbox},
		Environment: &fakeSandbox{files: map[string]string{"note": "buy milk\n"}},
		Recorder:    memory,
		Inbox:       inbox,
		Events:      bus,
	})
	bus.Close()
	if err := <-printed; err != nil {
		return err
	}

	t, err := trajectories.Fold(memory.Records())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s: %d messages, %d steps\n", out.ExitStatus, len(t.Entries), out.Steps)
	return err
}

// printEvent prints the text of an event.
func printEvent(w io.Writer, e events.Event) error {
	text := ""
	switch e := events.Content(e).(type) {
	case events.PhaseStarted:
		if e.Phase == events.PhaseRunning {
			text = fmt.Sprintf("$ %s\n", e.Command)
		}
	case events.TextDelta:
		text = e.Text
	case events.OutputChunk:
		text = fmt.Sprintf("  %s", e.Data)
	case trajectories.Message:
		if text = "\n"; e.Cause != trajectories.CauseReply {
			text = fmt.Sprintf("[%s] %s\n", e.Cause, e.Content)
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

// scriptedModel is a model with fixed replies. For models that call a provider see
// model/openai and model/anthropic.
type scriptedModel struct {
	inbox *agent.Inbox
	calls int // number of replies so far
}

func (m *scriptedModel) Query(ctx context.Context, _ []model.Message) (model.Reply, error) {
	replies := []string{
		"I look around.\n```bash\nls\n```", "I read it.\n```bash\ncat note\n```", "It says: buy milk. Shall I?", "One line.",
	}
	switch m.calls { // in a real program the user does this, from another goroutine
	case 0:
		m.inbox.Steer("Be quick.") // sent after the command; Steer drops pending follow-ups
		m.inbox.FollowUp("No. How many lines are that?")
		m.inbox.FollowUp("Count again.")
	case len(replies):
		m.inbox.Abort()
		<-ctx.Done()
		return model.Reply{}, context.Cause(ctx)
	}
	text := replies[m.calls]
	m.calls++
	if listener := model.DeltaListener(ctx); listener != nil { // the caller wants the reply as a stream
		for word := range strings.SplitAfterSeq(text, " ") {
			listener(model.Delta{Text: word})
		}
	}
	return model.Reply{Message: model.Message{Role: model.Assistant, Content: text}, FinishReason: model.FinishStop, Tries: 1}, nil
}

// fakeSandbox is a sandbox with two commands. Real ones are env/local, env/bubblewrap
// and env/docker.
type fakeSandbox struct{ files map[string]string }

func (s *fakeSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if ctx.Err() != nil {
		return env.Result{ExitCode: -1, OOMKilled: -1}, context.Cause(ctx)
	}
	start, out, code := time.Now(), "", 0
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
	if c.OnOutput != nil && out != "" {
		c.OnOutput([]byte(out))
	}
	return env.Result{
		Output: []byte(out), Head: len(out), Bytes: int64(len(out)), Chars: int64(len([]rune(out))),
		ExitCode: code, Duration: time.Since(start), OOMKilled: -1,
	}, nil
}

func (s *fakeSandbox) Info() env.Info              { return env.Info{System: "fake", Dir: "/"} }
func (s *fakeSandbox) Close(context.Context) error { return nil }
