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
)

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

func (c *core) Hangup() { c.hangups <- struct{}{} }

// mistaken has a mistake that the screen runs into.
type mistaken struct{ *core }

func (mistaken) Input(string) { panic("no commands") }

// child is a program on a terminal, which plays a part.
func child(part string) error {
	c := newCore()
	s := Start(Config{Terminal: os.Stderr})
	s.Listen(c)
	var err error
	switch part {
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
