package term

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
)

// recordingHandler records its calls.
type recordingHandler struct {
	mu      sync.Mutex
	inputs  []string
	stops   int
	hangups chan struct{} // has capacity 1
	acts    chan string   // inputs and "^C"
}

func newRecordingHandler() *recordingHandler {
	return &recordingHandler{hangups: make(chan struct{}, 1), acts: make(chan string, 100)}
}

func (c *recordingHandler) Input(text string) {
	c.mu.Lock()
	c.inputs = append(c.inputs, text)
	c.mu.Unlock()
	c.acts <- text
}

func (c *recordingHandler) Interrupt() {
	c.mu.Lock()
	c.stops++
	c.mu.Unlock()
	c.acts <- "^C"
}

func (c *recordingHandler) Hangup() { c.hangups <- struct{}{} }

// panickingHandler panics.
type panickingHandler struct{ *recordingHandler }

func (panickingHandler) Input(string) { panic("no commands") }

// child runs one of the test programs on a terminal.
func runChild(part string) error {
	c := newRecordingHandler()
	s := Start(Config{Terminal: os.Stderr})
	s.Listen(c)
	var err error
	switch part {
	case "colours":
		s.ShowEvent(events.Envelope{Event: events.ActionStarted{Command: "ls"}})
		s.ShowEvent(events.Envelope{Event: events.OutputChunk{Data: []byte("\x1b[1;31mred\x1b[0m\n")}})
		s.ShowNotice(chat.Notice{Text: "+green", IsDiff: true})
	case "last":
		s.ShowNotice(chat.Notice{Text: "the first word"})
		s.SetState(chat.State{Activity: "running"})
		s.ShowNotice(chat.Notice{Text: "the last but one\nthe last"})
	case "pager":
		s.ShowNotice(chat.Notice{Text: strings.Repeat("+ a line\n", 2*maxDiff), IsDiff: true})
		_, err = s.Ask(context.Background(), chat.Question{Kind: chat.AskOther, Text: "What now?"})
		if err == nil {
			a, cancel := context.WithTimeout(context.Background(), time.Second) // while the pager is open
			defer cancel()
			_, _ = s.Ask(a, chat.Question{Kind: chat.AskOther, Text: "Once more?"})
		}
	case "ask":
		err = askUntilQuit(s)
	case "busy":
		err = showOutput(s, c)
	case "panic":
		s.ShowNotice(chat.Notice{Text: "fine so far"})
		s.Listen(panickingHandler{c})
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

// askUntilQuit asks questions until the user quits.
func askUntilQuit(s *Frontend) error {
	for {
		a, err := s.Ask(context.Background(), chat.Question{Kind: chat.AskOther, Text: "What now?"})
		switch {
		case errors.Is(err, chat.ErrQuit):
			return nil
		case err != nil:
			a = err.Error()
		}
		s.ShowNotice(chat.Notice{Text: fmt.Sprintf("answer %q", a)})
	}
}

// showOutput shows output until it is stopped, and the user's input.
func showOutput(s *Frontend, c *recordingHandler) error {
	s.SetState(chat.State{Activity: "running"})
	s.ShowEvent(events.Envelope{Event: events.ActionStarted{Command: "yes"}})
	line := []byte(strings.Repeat("y ", 35) + "\n")
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case act := <-c.acts:
			if act == "/q" {
				return nil
			}
			s.ShowNotice(chat.Notice{Text: "acts: " + act})
		case <-c.hangups:
			return os.WriteFile(os.Getenv("MINI_SCREEN_RESULT"), []byte("hung up"), 0o600)
		case <-tick.C:
			s.ShowEvent(events.Envelope{Event: events.OutputChunk{Data: line}})
		}
	}
}
