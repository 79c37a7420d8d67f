package lines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/ask"
	"github.com/minibench/mini/cmd/mini/internal/chat"
)

// Keyboard is a terminal that edits its lines itself, as every terminal can. Calls
// come one at a time.
type Keyboard struct {
	in  *ask.Asker
	out io.Writer
}

// NewKeyboard reads lines from a terminal, and writes prompts to another stream of it.
func NewKeyboard(in *os.File, out io.Writer) *Keyboard {
	return &Keyboard{in: ask.New(in, out), out: out}
}

// maxTyped bounds one answer, in bytes.
const maxTyped = 1 << 20

// answer shows the prompt and returns what was typed, without its last line end. It
// returns chat.ErrLeft at the end of input, chat.ErrInterrupt for Ctrl-C where that
// is a key, and the cause of ctx when that ends.
func (k *Keyboard) answer(ctx context.Context, q chat.Question) (string, error) {
	prompt := func() { _, _ = io.WriteString(k.out, "> ") } // only for people
	defer whenContinued(prompt)()                           // before the prompt stands there: Ctrl-Z may come at once
	prompt()
	switch {
	case q.Secret:
		text, err := k.in.ReadHidden(ctx)
		if errors.Is(err, context.Canceled) && ctx.Err() == nil {
			err = chat.ErrInterrupt
		}
		return text, left(err)
	case !q.Multi:
		return k.line(ctx)
	}
	var all []string
	for size := 0; ; {
		text, err := k.line(ctx)
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

func (k *Keyboard) line(ctx context.Context) (string, error) {
	text, err := k.in.Read(ctx)
	return text, left(err)
}

// left says what the end of the input means.
func left(err error) error {
	if errors.Is(err, ask.ErrEnd) {
		return chat.ErrLeft
	}
	return err
}
