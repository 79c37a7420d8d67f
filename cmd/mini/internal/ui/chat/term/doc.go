// Package term is the terminal frontend of a session: streamed replies and outputs, an input
// line that is always available, and a status line.
//
// Finished text is written once, to the terminal's scrollback, where users scroll and copy as
// usual. Only a few live lines at the bottom are redrawn, so that the transcript stays when
// the session ends.
//
//	s := term.Start(term.Config{Terminal: os.Stderr})
//	s.Listen(handler)
//	answer, err := s.Ask(ctx, chat.Question{Kind: chat.AskTask, Text: "What is to be done?"})
//	err = s.Close()
//
// Events and questions pass through a bounded queue, so that callers do not wait for the
// terminal. A separate goroutine writes to the terminal, so that keys work while the terminal
// blocks writes. The terminal is restored on every exit (see cmd/mini/internal/ui/terminal). The
// frontend does not interpret commands or answers.
package term
