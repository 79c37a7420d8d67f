package lines

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/chat"
	"github.com/minibench/mini/cmd/mini/internal/prompt"
)

// Edited edits the line of a question itself: with a history, and completion of
// slash commands. Between questions the terminal does.
type Edited struct {
	typed     *Typed
	config    prompt.Config
	histories map[History]*prompt.History
}

var _ Keyboard = (*Edited)(nil)

// NewEdited makes a keyboard of a terminal. Questions whose history is not among
// these have none.
func NewEdited(in *os.File, out io.Writer, histories map[History]*prompt.History) *Edited {
	var known prompt.Commands
	for _, s := range chat.Slashes() {
		known = append(known, strings.TrimPrefix(cmp.Or(s.Long, s.Name), "/"))
	}
	return &Edited{
		typed: NewTyped(in, out), histories: histories,
		config: prompt.Config{In: in, Out: out, Complete: known.Complete, Suspend: suspend},
	}
}

// Read implements Keyboard. What was typed beyond the answer is dropped: it was
// not for the next question, which nobody had seen.
func (e *Edited) Read(ctx context.Context, p Prompt) (string, error) {
	if p.Idle {
		return e.typed.Read(ctx, p)
	}
	c := e.config
	c.History = e.histories[p.History]
	r := prompt.New(c)
	for {
		var text string
		var err error
		switch {
		case p.Secret:
			text, err = r.Secret(ctx, p.Text)
		case p.Multi:
			text, err = r.Text(ctx, p.Text)
		default:
			text, err = r.Line(ctx, p.Text)
		}
		switch {
		case errors.Is(err, prompt.ErrLong):
			_, _ = io.WriteString(c.Out, "\n"+err.Error()+"\n") // only for people
			continue
		case errors.Is(err, io.EOF):
			return "", chat.ErrLeft
		case errors.Is(err, prompt.ErrInterrupted):
			return "", chat.ErrInterrupt
		}
		return text, err
	}
}
