// Package cmdutil contains what the commands share: streams, signals, exit codes,
// argument validation, output, shell completion and the event log.
package cmdutil

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Streams are the input and output of a command. Out receives results, Err progress and
// messages.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Interactive is true if In and Err are terminals: mini can ask questions.
	Interactive bool
	// OutIsTerminal is true if Out is a terminal: untrusted output must be sanitized.
	OutIsTerminal bool

	Interrupts *Interrupts // diverts Ctrl-C to an interactive session
}

// SystemStreams returns the streams of the process.
func SystemStreams() Streams {
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Interactive:   term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())),
		OutIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
	}
}
