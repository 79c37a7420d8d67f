// Package ask asks people questions, a line each: no screen, no colours, nothing
// that a dumb terminal or a screen reader stumbles over. Enter takes the answer
// that stands in brackets, or in capitals. YesNo reads the answers to questions of
// yes or no for whatever asks them.
//
//	a := ask.New(os.Stdin, os.Stderr)
//	name, err := a.Line(ctx, "Name of the model", "gpt-5-mini")
package ask

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/muesli/cancelreader"
	"golang.org/x/term"
)

// ErrEnd is that the input ended in place of an answer.
var ErrEnd = errors.New("the input ended without an answer")

// maxLine bounds an answer, in bytes.
const maxLine = 1 << 20

// Asker asks on a terminal.
type Asker struct {
	in   io.Reader
	out  io.Writer
	rest []byte // read, and not yet of an answer
}

// New asks on these streams.
func New(in io.Reader, out io.Writer) *Asker { return &Asker{in: in, out: out} }

// Say prints a line.
func (a *Asker) Say(format string, args ...any) error {
	_, err := fmt.Fprintf(a.out, format+"\n", args...)
	return err
}

// Line asks for a line. An empty answer is the usual one; spaces around an
// answer are none of it.
func (a *Asker) Line(ctx context.Context, question, usual string) (string, error) {
	prompt := question + ": "
	if usual != "" {
		prompt = question + " [" + usual + "]: "
	}
	if _, err := fmt.Fprint(a.out, prompt); err != nil {
		return "", err
	}
	line, err := a.Read(ctx)
	if err != nil {
		_, _ = fmt.Fprintln(a.out) // the error is what counts
		return "", err
	}
	if line = strings.TrimSpace(line); line == "" {
		return usual, nil
	}
	return line, nil
}

// Yes asks a question that Enter answers with yes.
func (a *Asker) Yes(ctx context.Context, question string) (bool, error) {
	for {
		line, err := a.Line(ctx, Marked(question, true), "")
		if err != nil {
			return false, err
		}
		if yes, ok := YesNo(line, true); ok {
			return yes, nil
		}
		if err := a.Say(Neither); err != nil {
			return false, err
		}
	}
}

// Choice asks for one of a numbered list, and returns its index. The usual one
// is an index too.
func (a *Asker) Choice(ctx context.Context, question string, list []string, usual int) (int, error) {
	for i, text := range list {
		if err := a.Say("  %d  %s", i+1, text); err != nil {
			return 0, err
		}
	}
	for {
		line, err := a.Line(ctx, question, fmt.Sprint(usual+1))
		if err != nil {
			return 0, err
		}
		var n int
		if _, err := fmt.Sscanf(line+"\n", "%d\n", &n); err == nil && n >= 1 && n <= len(list) {
			return n - 1, nil
		}
		if err := a.Say("Please answer with a number from 1 to %d.", len(list)); err != nil {
			return 0, err
		}
	}
}

// Secret asks for what nobody is to see: on a terminal it is not shown.
func (a *Asker) Secret(ctx context.Context, question string) (string, error) {
	if _, err := fmt.Fprint(a.out, question+": "); err != nil {
		return "", err
	}
	line, err := a.ReadHidden(ctx)
	_, werr := fmt.Fprintln(a.out)
	return strings.TrimSpace(line), errors.Join(err, werr)
}

// ReadHidden reads a line key by key, in the mode in which the terminal shows none
// and makes no signals: Ctrl-C is a key here, which is context.Canceled.
func (a *Asker) ReadHidden(ctx context.Context) (_ string, err error) {
	file, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return a.Read(ctx)
	}
	fd := int(file.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", fmt.Errorf("hide the answer: %w", err)
	}
	defer func() { err = errors.Join(err, term.Restore(fd, before)) }()
	const (
		ctrlC, ctrlD, ctrlH, ctrlU, del = 3, 4, 8, 21, 127
	)
	var line []byte
	for {
		key, err := a.key(ctx)
		switch {
		case err != nil:
			return "", err
		case key == '\r' || key == '\n':
			return string(line), nil
		case key == ctrlC:
			return "", context.Canceled
		case key == ctrlD && len(line) == 0:
			return "", ErrEnd
		case key == ctrlU:
			line = nil
		case key == ctrlH || key == del:
			line = line[:max(0, len(line)-1)]
		case len(line) == maxLine:
			return "", errors.New("that is too long for an answer")
		default:
			line = append(line, key)
		}
	}
}

// Read takes the input up to the end of a line. What is being typed when ctx ends is
// not lost: the terminal keeps it.
func (a *Asker) Read(ctx context.Context) (string, error) {
	for {
		if line, rest, ok := bytes.Cut(a.rest, []byte("\n")); ok {
			a.rest = rest
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		if len(a.rest) > maxLine {
			return "", errors.New("that is too long for an answer")
		}
		if err := a.more(ctx); err != nil {
			return "", err
		}
	}
}

func (a *Asker) key(ctx context.Context) (byte, error) {
	for len(a.rest) == 0 {
		if err := a.more(ctx); err != nil {
			return 0, err
		}
	}
	key := a.rest[0]
	a.rest = a.rest[1:]
	return key, nil
}

// more waits for input, or for the end of ctx.
func (a *Asker) more(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	in, err := cancelreader.NewReader(a.in)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	defer in.Close() //nolint:errcheck // of what only waits; the input stays open
	defer context.AfterFunc(ctx, func() { in.Cancel() })()
	buf := make([]byte, 4096)
	n, err := in.Read(buf)
	a.rest = append(a.rest, buf[:n]...)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case n > 0:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EIO): // a terminal that is no more
		return ErrEnd
	case err != nil:
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}
