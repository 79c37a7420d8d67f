// Package screen is the front of a session on a terminal: replies and outputs
// as they come, an input that is always there, and a line that says where things
// stand.
//
// What is finished is written once, into the terminal's own scrollback, where
// people scroll and copy as they are used to; only what is live is drawn again,
// in a few lines at the bottom. So the transcript stays when the session ends.
//
//	s := screen.Start(screen.Config{Terminal: os.Stderr})
//	s.Listen(core)
//	answer, err := s.Ask(ctx, chat.Question{Kind: chat.AskTask, Text: "What is to be done?"})
//	err = s.Close()
//
// Events and questions come through a bounded feed, so nobody waits for the
// terminal; a painter of its own writes, a few times a second, so that keys are
// heard also while the terminal takes nothing. The screen is given back on every
// way out, also when this process is killed (cmd/mini/internal/screen).
// What a command or an answer leads to is not decided here.
package screen
