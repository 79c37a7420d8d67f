package cli

import (
	"fmt"

	"github.com/minibench/mini/cmd/mini/internal/chat"
	"github.com/minibench/mini/cmd/mini/internal/chat/history"
	rich "github.com/minibench/mini/cmd/mini/internal/chat/screen"
	"github.com/minibench/mini/cmd/mini/internal/screen"
)

// screenFront is the rich front, with the history of tasks.
type screenFront struct {
	*rich.Screen
	messages *messages // are shown above while the terminal is taken
}

// newScreenFront takes the terminal; ok is false where there is none that can
// be drawn on. Pagers have environ.
func newScreenFront(s Streams, environ []string) (f screenFront, ok bool) {
	m, ok := s.Err.(*messages)
	if !ok || m.file() == nil || !s.Terminal || !screen.Foreground(m.file()) {
		return f, false
	}
	h := taskHistory(s.Err)
	f = screenFront{messages: m, Screen: rich.Start(rich.Config{
		Terminal: m.file(), Environ: environ, History: h.Entries(), Remember: remembering(h),
	})}
	m.divert(func(line string) { f.Tell(chat.Note{Text: line}) }, false)
	return f, true
}

// remembering puts what was sent into a history. Where that fails the session
// still has it.
func remembering(h *history.History) func(text string) {
	return func(text string) { _ = h.Add(text) }
}

// Close gives the terminal back.
func (f screenFront) Close() {
	err := f.Screen.Close()
	f.messages.divert(nil, false)
	if err != nil {
		_, _ = fmt.Fprintln(f.messages, "mini:", lines(err.Error())) // nothing else can be done about it
	}
}
