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

// recordingHandler records the calls of its methods.
type recordingHandler struct {
	mu         sync.Mutex
	inputs     []string
	interrupts int
	hangups    chan struct{} // has capacity 1
	calls      chan string   // inputs and, for Interrupt, "^C"
}

func newRecordingHandler() *recordingHandler {
	return &recordingHandler{hangups: make(chan struct{}, 1), calls: make(chan string, 100)}
}

func (h *recordingHandler) Input(text string) {
	h.mu.Lock()
	h.inputs = append(h.inputs, text)
	h.mu.Unlock()
	h.calls <- text
}

func (h *recordingHandler) Interrupt() {
	h.mu.Lock()
	h.interrupts++
	h.mu.Unlock()
	h.calls <- "^C"
}

func (h *recordingHandler) Hangup() { h.hangups <- struct{}{} }

// panickingHandler panics on input.
type panickingHandler struct{ *recordingHandler }

func (panickingHandler) Input(string) { panic("no commands") }

// runChild runs one of the test programs on the terminal of this process.
func runChild(program string) error {
	handler := newRecordingHandler()
	frontend := Start(Config{Terminal: os.Stderr})
	frontend.HandleInput(handler)
	var err error
	switch program {
	case "colours":
		frontend.ShowEvent(events.Envelope{Event: starts("ls")})
		frontend.ShowEvent(events.Envelope{Event: events.OutputChunk{Data: []byte("\x1b[1;31mred\x1b[0m\n")}})
		frontend.ShowNotice(chat.Notice{Text: "@@ -0,0 +1 @@\n+green", IsDiff: true})
	case "last":
		frontend.ShowNotice(chat.Notice{Text: "the first word"})
		frontend.SetState(chat.State{Activity: "running"})
		frontend.ShowNotice(chat.Notice{Text: "the last but one\nthe last"})
	case "pager":
		frontend.ShowNotice(chat.Notice{Text: strings.Repeat("+ a line\n", 1000), IsDiff: true})
		_, err = frontend.Ask(context.Background(), chat.Question{Kind: chat.AskOther, Text: "What now?"})
		if err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // while the pager is open
			defer cancel()
			_, _ = frontend.Ask(ctx, chat.Question{Kind: chat.AskOther, Text: "Once more?"})
		}
	case "ask":
		err = askUntilQuit(frontend)
	case "busy":
		err = showOutput(frontend, handler)
	case "panic":
		frontend.HandleInput(panickingHandler{handler})
		frontend.ShowNotice(chat.Notice{Text: "fine so far"})
		<-frontend.Done()
	default:
		err = fmt.Errorf("no test program %q", program)
	}
	closeErr := frontend.Close()
	if path := os.Getenv("MINI_SCREEN_CLOSED"); path != "" {
		_ = os.WriteFile(path, []byte(fmt.Sprint(closeErr)), 0o600)
	}
	fmt.Println("given back")
	return errors.Join(err, closeErr)
}

// askUntilQuit asks questions until the user quits.
func askUntilQuit(f *Frontend) error {
	for {
		text, err := f.Ask(context.Background(), chat.Question{Kind: chat.AskOther, Text: "What now?"})
		switch {
		case errors.Is(err, chat.ErrQuit):
			return nil
		case err != nil:
			text = err.Error()
		}
		f.ShowNotice(chat.Notice{Text: fmt.Sprintf("answer %q", text)})
	}
}

// showOutput shows output and the user's input, until /q or a hangup.
func showOutput(f *Frontend, h *recordingHandler) error {
	f.SetState(chat.State{Activity: "running"})
	f.ShowEvent(events.Envelope{Event: starts("yes")})
	line := []byte(strings.Repeat("y ", 35) + "\n")
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case call := <-h.calls:
			if call == "/q" {
				return nil
			}
			f.ShowNotice(chat.Notice{Text: "acts: " + call})
		case <-h.hangups:
			return os.WriteFile(os.Getenv("MINI_SCREEN_RESULT"), []byte("hung up"), 0o600)
		case <-tick.C:
			f.ShowEvent(events.Envelope{Event: events.OutputChunk{Data: line}})
		}
	}
}
