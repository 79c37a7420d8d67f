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
	// Terminal is true if In and Err are terminals: mini can ask questions.
	Terminal bool
	// OutTerminal is true if Out is a terminal: untrusted output must be sanitized.
	OutTerminal bool

	Interrupts *Interrupts
}

// SystemStreams returns the streams of the process.
func SystemStreams() Streams {
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Terminal:    term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())),
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
	}
}
