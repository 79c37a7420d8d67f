// Package term is the terminal frontend of a session: streamed replies and outputs, an input
// line that is always available, and a status line.
//
// Finished text is written once, to the terminal's scrollback, where users scroll and copy as
// usual. It stays there when the session ends. Only a few live lines at the bottom are redrawn.
//
//	f := term.Start(term.Config{Terminal: os.Stderr})
//	f.HandleInput(handler)
//	answer, err := f.Ask(ctx, chat.Question{Kind: chat.AskTask, Text: "What is to be done?"})
//	err = f.Close()
//
// Events and questions pass through a queue, so that callers need not wait for each write. Only
// ShowEvent waits, for a limited time, while the queue is full. A separate goroutine writes to
// the terminal, so that keys work while the terminal blocks writes. Package terminal restores
// the terminal on every exit. The frontend does not interpret commands or answers.
package term
