package plain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
)

// Keyboard reads lines from a terminal in canonical mode, in which the kernel handles editing
// keys. It is not safe for concurrent use.
type Keyboard struct {
	in  *ask.Prompter
	out io.Writer
}

// NewKeyboard returns a Keyboard that reads from in and writes prompts to out.
func NewKeyboard(in *os.File, out io.Writer) *Keyboard {
	return &Keyboard{in: ask.New(in, out), out: out}
}

// maxAnswer bounds an answer of several lines, in bytes.
const maxAnswer = 1 << 20

// readAnswer shows the prompt and returns the answer without its newline. It returns
// chat.ErrQuit at the end of input, unless that ends an answer of several lines,
// chat.ErrInterrupted for Ctrl-C in raw mode, and the cause of ctx when ctx ends.
func (k *Keyboard) readAnswer(ctx context.Context, q chat.Question) (string, error) {
	prompt := func() { _, _ = io.WriteString(k.out, "> ") } // write errors are ignored
	defer onContinue(prompt)()                              // before the prompt: the user may press Ctrl-Z at once
	prompt()
	switch {
	case q.Secret:
		text, err := k.in.ReadHidden(ctx, "")
		if errors.Is(err, context.Canceled) && ctx.Err() == nil {
			err = chat.ErrInterrupted
		}
		return text, inputError(err)
	case !q.Multiline:
		return k.readLine(ctx)
	}
	var lines []string
	for size := 0; ; {
		text, err := k.readLine(ctx)
		switch size += len(text) + 1; {
		case errors.Is(err, chat.ErrQuit) && len(lines) > 0:
			return strings.Join(lines, "\n"), nil
		case err != nil:
			return "", err
		case size > maxAnswer:
			return "", fmt.Errorf("read from terminal: more than %d bytes", maxAnswer)
		}
		lines = append(lines, text)
	}
}

func (k *Keyboard) readLine(ctx context.Context) (string, error) {
	text, err := k.in.ReadLine(ctx)
	return text, inputError(err)
}

// inputError maps the end of input to chat.ErrQuit.
func inputError(err error) error {
	if errors.Is(err, ask.ErrEOF) {
		return chat.ErrQuit
	}
	return err
}
