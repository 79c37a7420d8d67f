package screen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/chat"
	models "github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// slashes are about those of the real core.
var slashes = []chat.Slash{
	{Name: "/h", Long: "/help", About: "this help"},
	{Name: "/y", Long: "/yolo", About: "run commands unasked"},
	{Name: "/c", Long: "/confirm", About: "ask before each command"},
	{Name: "/u", Long: "/human", About: "write the commands yourself"},
	{Name: "/d", Long: "/diff", About: "what has changed in the working tree"},
	{Name: "/t", Long: "/thinking", About: "show or hide thinking text"},
	{Name: "/s", Long: "/status", About: "where things stand"},
	{Name: "/q", Long: "/quit", About: "end the session"},
}

// core is a small one of its own, which records what it is told.
type core struct {
	mu      sync.Mutex
	inputs  []string
	stops   int
	hangups chan struct{} // of one
	acts    chan string   // inputs and "^C", for those who wait
}

func newCore() *core { return &core{hangups: make(chan struct{}, 1), acts: make(chan string, 100)} }

func (c *core) Input(text string) {
	c.mu.Lock()
	c.inputs = append(c.inputs, text)
	c.mu.Unlock()
	c.acts <- text
}

func (c *core) Interrupt() {
	c.mu.Lock()
	c.stops++
	c.mu.Unlock()
	c.acts <- "^C"
}

func (c *core) Hangup()                { c.hangups <- struct{}{} }
func (c *core) Commands() []chat.Slash { return slashes }

// mistaken has a mistake that the screen runs into.
type mistaken struct{ *core }

func (mistaken) Commands() []chat.Slash { panic("no commands") }

// child is a program on a terminal, which plays a part.
func child(part string) error {
	c := newCore()
	s := Start(Config{Terminal: os.Stderr, Controls: c})
	var err error
	switch part {
	case "demo":
		err = demo(s)
	case "colours":
		s.Show(events.Stamped{Event: events.ActionStarted{Command: "ls"}})
		s.Show(events.Stamped{Event: events.OutputChunk{Data: []byte("\x1b[1;31mred\x1b[0m\n")}})
		s.Tell(chat.Note{Text: "+green", Diff: true})
	case "last":
		s.Tell(chat.Note{Text: "the first word"})
		s.State(chat.State{Busy: "running"})
		s.Tell(chat.Note{Text: "the last but one\nthe last"})
	case "pager":
		s.Tell(chat.Note{Text: strings.Repeat("+ a line\n", 2*maxDiff), Diff: true})
		_, err = s.Ask(context.Background(), chat.Question{Kind: chat.AskWord, Text: "What now?"})
		if err == nil {
			a, cancel := context.WithTimeout(context.Background(), time.Second) // while the pager is open
			defer cancel()
			_, _ = s.Ask(a, chat.Question{Kind: chat.AskWord, Text: "Once more?"})
		}
	case "ask":
		err = asking(s)
	case "busy":
		err = working(s, c)
	case "panic":
		s.Tell(chat.Note{Text: "fine so far"})
		s.Listen(mistaken{c})
		<-s.Done()
	default:
		err = fmt.Errorf("no part %q", part)
	}
	closed := s.Close()
	if path := os.Getenv("MINI_SCREEN_CLOSED"); path != "" {
		_ = os.WriteFile(path, []byte(fmt.Sprint(closed)), 0o600)
	}
	fmt.Println("given back")
	return errors.Join(err, closed)
}

// asking puts questions until the person leaves.
func asking(s *Screen) error {
	for {
		a, err := s.Ask(context.Background(), chat.Question{Kind: chat.AskWord, Text: "What now?"})
		switch {
		case errors.Is(err, chat.ErrLeft):
			return nil
		case err != nil:
			a = err.Error()
		}
		s.Tell(chat.Note{Text: fmt.Sprintf("answer %q", a)})
	}
}

// working shows output for as long as nobody stops it, and what the person does.
func working(s *Screen, c *core) error {
	s.State(chat.State{Busy: "running"})
	s.Show(events.Stamped{Event: events.ActionStarted{Command: "yes"}})
	line := []byte(strings.Repeat("y ", 35) + "\n")
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case act := <-c.acts:
			if act == "/q" {
				return nil
			}
			s.Tell(chat.Note{Text: "acts: " + act})
		case <-c.hangups:
			return os.WriteFile(os.Getenv("MINI_SCREEN_RESULT"), []byte("hung up"), 0o600)
		case <-tick.C:
			s.Show(events.Stamped{Event: events.OutputChunk{Data: line}})
		}
	}
}

// stage shows events with a clock of its own.
type stage struct {
	s     *Screen
	state chat.State
	step  int
	speed time.Duration
}

func (g *stage) show(e events.Event) { g.s.Show(events.Stamped{Time: time.Now(), Event: e}) }

func (g *stage) busy(what string) {
	g.state.Busy = what
	g.s.State(g.state)
}

func (g *stage) turn(thinking, text string, commands ...string) {
	g.step++
	g.state.Step = g.step
	g.busy("thinking")
	g.show(events.TurnStarted{Step: g.step})
	for _, piece := range strings.SplitAfter(thinking, " ") {
		g.show(events.TextDelta{Step: g.step, Text: piece, Thinking: true})
		time.Sleep(g.speed)
	}
	for _, piece := range strings.SplitAfter(text, " ") {
		g.show(events.TextDelta{Step: g.step, Text: piece})
		time.Sleep(g.speed)
	}
	g.state.Cost += 0.0173
	g.state.Usage.Prompt += 4321
	g.state.Usage.Completion += 321
	g.show(events.Replied{Step: g.step, Text: text, Reasoning: thinking, Commands: commands})
	g.busy("")
}

func (g *stage) run(command, output string, code int) {
	g.busy("running")
	g.show(events.ActionStarted{Step: g.step, Command: command})
	begun := time.Now()
	for _, line := range strings.SplitAfter(output, "\n") {
		g.show(events.OutputChunk{Step: g.step, Data: []byte(line)})
		time.Sleep(3 * g.speed)
	}
	g.show(events.ActionEnded{Step: g.step, Command: command, ExitCode: code, Duration: trajectories.Seconds(time.Since(begun))})
	g.busy("")
}

func demo(s *Screen) error {
	ctx := context.Background()
	g := &stage{s: s, speed: 15 * time.Millisecond, state: chat.State{
		Model: "anthropic/claude-sonnet-4-5", StepLimit: 250, CostLimit: 3, Started: time.Now(), Thinking: true,
	}}
	s.State(g.state)
	task, err := s.Ask(ctx, chat.Question{Kind: chat.AskTask, Text: "What is to be done?"})
	if err != nil {
		return err
	}
	g.show(events.RunStarted{Task: task, Model: g.state.Model, Environment: "local", Dir: "/home/ada/project"})
	ls := "ls -la src && cat src/parser.py | head -50"
	g.turn("The user wants the parser fixed. I should look at the code first, to see what it does with empty input, and where the tests for it are.",
		"THOUGHT: I will look at the **parser** and its tests first.\n\nWhat I expect to find:\n\n- a tokenizer that `split`s at spaces\n- no handling of quotes\n\n```bash\n"+ls+"\n```", ls)
	a, err := s.Ask(ctx, chat.Question{Kind: chat.AskConfirm, Text: "Run this command?", Command: ls})
	if err != nil {
		return err
	}
	if a == "" {
		g.run(ls, "total 24\n\x1b[01;34m.\x1b[0m\n\x1b[01;34m..\x1b[0m\n-rw-r--r-- 1 ada ada 1204 Nov 20 10:00 \x1b[01;32mparser.py\x1b[0m\n"+
			"import sys\n\ndef parse(text):\n    return [t for t in text.split(' ') if t]\n", 0)
	} else {
		g.show(events.Decided{Step: 1, Command: ls, Action: "deny", By: "user", Reason: a})
	}
	test := "python -m pytest -x tests/ 2>&1 | tail -200"
	g.turn("Now the tests.", "Now I run the tests.\n\n# Plan\n1. run\n2. fix\n\n```python\ndef parse(text):\n    return shlex.split(text)  # quotes\n```\n\n```bash\n"+test+"\n```", test)
	_, err = s.Ask(ctx, chat.Question{Kind: chat.AskConfirm, Text: "Run this command?", Command: test, Reason: "rule network asks: it may use the network"})
	if err != nil {
		return err
	}
	var out strings.Builder
	for i := range 150 {
		fmt.Fprintf(&out, "tests/test_parser.py::test_case_%03d \x1b[32mPASSED\x1b[0m [%3d%%]\n", i, i*100/150)
	}
	out.WriteString("\x1b[31mFAILED\x1b[0m tests/test_parser.py::test_quotes - AssertionError: assert ['a', '\"b', 'c\"'] == ['a', 'b c']\n")
	g.run(test, out.String(), 1)
	s.Tell(chat.Note{Diff: true, Text: "diff --git a/src/parser.py b/src/parser.py\nindex 1..2 100644\n--- a/src/parser.py\n+++ b/src/parser.py\n@@ -1,4 +1,5 @@\n import sys\n+import shlex\n \n def parse(text):\n-    return [t for t in text.split(' ') if t]\n+    return shlex.split(text)\n"})
	s.Tell(chat.Note{Text: "no policy is set: every command is asked for"})
	s.Tell(chat.Note{Text: "the model did not answer: 529 overloaded", Bad: true})
	_, err = s.Ask(ctx, chat.Question{Kind: chat.AskKeep, Text: "Keep the changes?", Answers: []string{"keep", "undo"}})
	g.show(events.Ended{Outcome: trajectories.Outcome{Class: trajectories.Submitted, ExitStatus: "Submitted", Steps: 2, Cost: models.Cost(g.state.Cost), Start: g.state.Started, End: time.Now()}})
	return err
}
