// Package ask prompts the user line by line, without colours or cursor movement, for simple
// terminals and screen readers. Enter selects the default, which is shown in brackets or in
// capitals.
//
//	p := ask.New(os.Stdin, os.Stderr)
//	name, err := p.Ask(ctx, "Name of the model", "gpt-5-mini")
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

// ErrEOF means that the input ended before an answer.
var ErrEOF = errors.New("input ended without an answer")

// maxLine is about the largest size of an answer, in bytes.
const maxLine = 1 << 20

// Prompter asks questions on a terminal.
type Prompter struct {
	in       io.Reader
	out      io.Writer
	buffered []byte // input after the last answer
}

// New returns a Prompter that reads from in and writes to out.
func New(in io.Reader, out io.Writer) *Prompter { return &Prompter{in: in, out: out} }

// Printf formats and prints a line.
func (p *Prompter) Printf(format string, args ...any) error {
	_, err := fmt.Fprintf(p.out, format+"\n", args...)
	return err
}

// Ask asks for a line and trims spaces. An empty answer returns the default.
func (p *Prompter) Ask(ctx context.Context, question, defaultAnswer string) (string, error) {
	prompt := question + ": "
	if defaultAnswer != "" {
		prompt = question + " [" + defaultAnswer + "]: "
	}
	if _, err := fmt.Fprint(p.out, prompt); err != nil {
		return "", err
	}
	line, err := p.ReadLine(ctx)
	if err != nil {
		_, _ = fmt.Fprintln(p.out) // the read error takes precedence
		return "", err
	}
	if line = strings.TrimSpace(line); line == "" {
		return defaultAnswer, nil
	}
	return line, nil
}

// Confirm asks a yes-or-no question; the default is yes.
func (p *Prompter) Confirm(ctx context.Context, question string) (bool, error) {
	for {
		line, err := p.Ask(ctx, YesNoPrompt(question, true), "")
		if err != nil {
			return false, err
		}
		if yes, ok := ParseYesNo(line, true); ok {
			return yes, nil
		}
		if err := p.Printf(YesNoHint); err != nil {
			return false, err
		}
	}
}

// Choose asks for an item of a numbered list and returns its index, from 0. It asks again until
// the answer is a number of the list.
func (p *Prompter) Choose(ctx context.Context, question string, items []string, defaultIndex int) (int, error) {
	for i, text := range items {
		if err := p.Printf("  %d  %s", i+1, text); err != nil {
			return 0, err
		}
	}
	for {
		line, err := p.Ask(ctx, question, fmt.Sprint(defaultIndex+1))
		if err != nil {
			return 0, err
		}
		var n int
		if _, err := fmt.Sscanf(line+"\n", "%d\n", &n); err == nil && n >= 1 && n <= len(items) {
			return n - 1, nil
		}
		if err := p.Printf("Please answer with a number from 1 to %d.", len(items)); err != nil {
			return 0, err
		}
	}
}

// AskSecret asks for a secret; a terminal does not echo it.
func (p *Prompter) AskSecret(ctx context.Context, question string) (string, error) {
	line, err := p.ReadHidden(ctx, question+": ")
	_, writeErr := fmt.Fprintln(p.out)
	return strings.TrimSpace(line), errors.Join(err, writeErr)
}

// ReadHidden reads a line without echo. It puts the terminal into raw mode, where Ctrl-C is a
// key and not a signal: ReadHidden returns context.Canceled for it. It prints the prompt after
// that, so that no key is shown. If the input is not a terminal, ReadHidden is like ReadLine.
func (p *Prompter) ReadHidden(ctx context.Context, prompt string) (_ string, err error) {
	file, ok := p.in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		if _, err := fmt.Fprint(p.out, prompt); err != nil {
			return "", err
		}
		return p.ReadLine(ctx)
	}
	fd := int(file.Fd())
	oldState, err := term.MakeRaw(fd)
	if err != nil {
		return "", fmt.Errorf("hide the answer: %w", err)
	}
	defer func() { err = errors.Join(err, term.Restore(fd, oldState)) }()
	if _, err := fmt.Fprint(p.out, prompt); err != nil {
		return "", err
	}
	const (
		ctrlC, ctrlD, ctrlH, ctrlU, del = 3, 4, 8, 21, 127
	)
	var line []byte
	for {
		key, err := p.readKey(ctx)
		switch {
		case err != nil:
			return "", err
		case key == '\r' || key == '\n':
			return string(line), nil
		case key == ctrlC:
			return "", context.Canceled
		case key == ctrlD && len(line) == 0:
			return "", ErrEOF
		case key == ctrlU:
			line = nil
		case key == ctrlH || key == del:
			line = line[:max(0, len(line)-1)]
		case len(line) == maxLine:
			return "", errors.New("answer is too long")
		default:
			line = append(line, key)
		}
	}
}

// ReadLine reads a line. If ctx ends first, a line that the user has begun stays in the
// terminal.
func (p *Prompter) ReadLine(ctx context.Context) (string, error) {
	for {
		if line, rest, ok := bytes.Cut(p.buffered, []byte("\n")); ok {
			p.buffered = rest
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		if len(p.buffered) > maxLine {
			return "", errors.New("answer is too long")
		}
		if err := p.fill(ctx); err != nil {
			return "", err
		}
	}
}

func (p *Prompter) readKey(ctx context.Context) (byte, error) {
	for len(p.buffered) == 0 {
		if err := p.fill(ctx); err != nil {
			return 0, err
		}
	}
	key := p.buffered[0]
	p.buffered = p.buffered[1:]
	return key, nil
}

// fill waits for input and appends it to buffered. It returns the cause of ctx if ctx ends
// first.
func (p *Prompter) fill(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	reader, err := cancelreader.NewReader(p.in)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	defer reader.Close() //nolint:errcheck // closes only the reader; the input stays open
	defer context.AfterFunc(ctx, func() { reader.Cancel() })()
	buf := make([]byte, 4096)
	n, err := reader.Read(buf)
	p.buffered = append(p.buffered, buf[:n]...)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case n > 0:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EIO): // EIO: the terminal is lost
		return ErrEOF
	case err != nil:
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}
