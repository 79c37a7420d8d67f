package lines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/muesli/cancelreader"
	"golang.org/x/term"

	"github.com/minibench/mini/cmd/mini/internal/chat"
)

// Typed is a terminal that edits its lines itself, as every terminal can.
type Typed struct {
	in  *os.File
	out io.Writer
	// rest was read, and is of lines to come.
	rest []byte
}

var _ Keyboard = (*Typed)(nil)

// NewTyped reads lines from a terminal, and writes prompts to another stream of it.
func NewTyped(in *os.File, out io.Writer) *Typed { return &Typed{in: in, out: out} }

// maxTyped bounds one answer, in bytes.
const maxTyped = 1 << 20

// Read implements Keyboard. A line that is being typed when ctx ends is not lost:
// the terminal keeps it.
func (t *Typed) Read(ctx context.Context, p Prompt) (string, error) {
	again := func() { _, _ = io.WriteString(t.out, p.Text) } // only for people
	if !p.Idle {
		defer whenContinued(again)() // before the prompt stands there: Ctrl-Z may come at once
		again()
	}
	if p.Secret {
		text, err := term.ReadPassword(int(t.in.Fd()))
		if err != nil {
			return "", chat.ErrLeft
		}
		return string(text), nil
	}
	r, err := cancelreader.NewReader(t.in)
	if err != nil {
		return "", fmt.Errorf("read from terminal: %w", err)
	}
	defer r.Close() //nolint:errcheck // of what only waits; the terminal stays open
	defer context.AfterFunc(ctx, func() { r.Cancel() })()
	if !p.Multi {
		return t.line(ctx, r)
	}
	var all []string
	for size := 0; ; {
		text, err := t.line(ctx, r)
		switch size += len(text) + 1; {
		case errors.Is(err, chat.ErrLeft) && len(all) > 0:
			return strings.Join(all, "\n"), nil
		case err != nil:
			return "", err
		case size > maxTyped:
			return "", fmt.Errorf("read from terminal: more than %d bytes", maxTyped)
		}
		all = append(all, text)
	}
}

// line reads one.
func (t *Typed) line(ctx context.Context, r io.Reader) (string, error) {
	buf := make([]byte, 4096)
	for {
		if line, rest, ok := bytes.Cut(t.rest, []byte("\n")); ok {
			t.rest = bytes.Clone(rest)
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		if len(t.rest) > maxTyped {
			t.rest = nil
			return "", fmt.Errorf("read from terminal: a line of more than %d bytes", maxTyped)
		}
		n, err := r.Read(buf)
		t.rest = append(t.rest, buf[:n]...)
		switch {
		case n > 0:
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil || n == 0: // the end, or a terminal that is no more
			return "", chat.ErrLeft
		}
	}
}
