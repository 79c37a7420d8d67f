package task

import (
	"context"
	"fmt"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	rich "github.com/minibench/mini/cmd/mini/internal/ui/chat/term"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
)

// screenFrontend is the full-screen frontend with the history of tasks.
type screenFrontend struct {
	*rich.Frontend
	messages *cmdutil.Messages // shown by the frontend while it is open
}

// newScreenFrontend opens the full-screen frontend; ok is false if the terminal does not
// support it. environ is the environment of pagers, paths lists the files for completion.
func newScreenFrontend(s cmdutil.Streams, environ []string, draft string, paths func(context.Context) []string) (f screenFrontend, ok bool) {
	m, ok := s.Err.(*cmdutil.Messages)
	if !ok || m.File() == nil || !s.Interactive || !terminal.IsForeground(m.File()) {
		return f, false
	}
	h := taskHistory(s.Err)
	f = screenFrontend{messages: m, Frontend: rich.Start(rich.Config{
		Terminal: m.File(), Environ: environ, Draft: draft, History: h.Entries(), SaveInput: func(text string) { _ = h.Add(text) }, Paths: paths, // best effort
	})}
	m.Divert(func(line string) { f.ShowNotice(chat.Notice{Text: line}) }, false)
	return f, true
}

// Close restores the terminal.
func (f screenFrontend) Close() {
	err := f.Frontend.Close()
	f.messages.Divert(nil, false)
	if err != nil {
		_, _ = fmt.Fprintln(f.messages, "mini:", cmdutil.Sanitize(err.Error()))
	}
}
