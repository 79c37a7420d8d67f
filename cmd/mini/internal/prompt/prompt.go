// Package prompt reads what a person types on a plain terminal: a line, a text
// of several lines, a secret. It moves the cursor within one row at most, and
// not at all where the terminal is dumb; there, the kernel edits the line.
// Beside it are the parts that any front needs: commands that begin with a
// slash, and the history of inputs.
//
//	r := prompt.New(prompt.Config{In: os.Stdin, Out: os.Stdout, Dumb: os.Getenv("TERM") == "dumb"})
//	line, err := r.Line(ctx, "task> ")
package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/muesli/cancelreader"
	"golang.org/x/term"
)

var (
	// ErrInterrupted says that Ctrl-C was typed.
	ErrInterrupted = errors.New("interrupted")
	// ErrLong says that an input has more than MaxInput bytes.
	ErrLong = errors.New("the input is too long; put it into a file")
)

// MaxInput is the longest input, in bytes.
const MaxInput = 1 << 20

// Config says where a person is, and what helps them.
type Config struct {
	In  *os.File
	Out io.Writer
	// Dumb terminals get no sequences.
	Dumb bool
	// History is gone through with the arrow keys, and gets the lines and texts
	// that are read; nil has none.
	History *History
	// Complete says what a line up to the cursor may become; nil completes
	// nothing.
	Complete func(line string) []string
	// Suspend stops this process at Ctrl-Z, and returns when it goes on; nil
	// lets Ctrl-Z do nothing.
	Suspend func()
	// Warn is told of a history that cannot be written; nil is not.
	Warn func(error)
}

// Reader reads from a person. One goroutine may use it at a time. What was
// typed before it was asked for is kept for the next question.
type Reader struct {
	cfg  Config
	rest []byte // read, and not yet used
}

// New makes a Reader.
func New(cfg Config) *Reader {
	if cfg.History == nil {
		cfg.History = &History{}
	}
	return &Reader{cfg: cfg}
}

// want is what is asked for.
type want struct {
	text   bool // of several lines
	secret bool
}

// Line reads a line. One that ends with a backslash goes on with the next one,
// and what is pasted is one, whatever line ends it has. The error is io.EOF
// where Ctrl-D was typed, or the input has ended, with nothing before it,
// ErrInterrupted at Ctrl-C, and the context's cause when that has ended.
func (r *Reader) Line(ctx context.Context, prompt string) (string, error) {
	return r.read(ctx, prompt, want{})
}

// Text reads lines up to Esc and Enter, or Ctrl-D.
func (r *Reader) Text(ctx context.Context, prompt string) (string, error) {
	return r.read(ctx, prompt, want{text: true})
}

// Secret reads a line that is not shown, and not remembered.
func (r *Reader) Secret(ctx context.Context, prompt string) (string, error) {
	return r.read(ctx, prompt, want{secret: true})
}

func (r *Reader) read(ctx context.Context, prompt string, w want) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	in, err := r.open(ctx)
	if err != nil {
		return "", fmt.Errorf("read from terminal: %w", err)
	}
	var text string
	if r.raw(w) {
		text, err = r.edit(in, prompt, w)
	} else {
		text, err = r.plain(in, prompt, w)
	}
	err = errors.Join(cause(ctx, err), in.close())
	if err != nil {
		return "", simple(err)
	}
	text = Fold(text)
	if !w.secret {
		if err := r.cfg.History.Add(ctx, text); err != nil && r.cfg.Warn != nil {
			r.cfg.Warn(err)
		}
	}
	return text, nil
}

// raw says whether the keys are ours to make a line of.
func (r *Reader) raw(w want) bool {
	return term.IsTerminal(int(r.cfg.In.Fd())) && (!r.cfg.Dumb || w.secret)
}

func cause(ctx context.Context, err error) error {
	if errors.Is(err, cancelreader.ErrCanceled) {
		return context.Cause(ctx)
	}
	return err
}

// simple is an error that is compared with ==, where it is one.
func simple(err error) error {
	for _, known := range []error{io.EOF, ErrInterrupted, ErrLong} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// input is a terminal, or whatever stands in for it, whose reading ends with a
// context.
type input struct {
	io.Reader
	cancelled cancelreader.CancelReader
	stop      func() bool
	done      chan struct{}
}

func (r *Reader) open(ctx context.Context) (*input, error) {
	info, err := r.cfg.In.Stat()
	if err != nil {
		return nil, err
	}
	// Files, and /dev/null, are never waited for.
	device := info.Mode()&fs.ModeCharDevice != 0
	if info.Mode().IsRegular() || device && !term.IsTerminal(int(r.cfg.In.Fd())) {
		return &input{Reader: r.cfg.In}, nil
	}
	c, err := cancelreader.NewReader(r.cfg.In)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		c.Cancel()
	})
	return &input{c, c, stop, done}, nil
}

func (i *input) close() error {
	if i.cancelled == nil {
		return nil
	}
	if !i.stop() {
		<-i.done
	}
	return i.cancelled.Close()
}

// fill reads more.
func (r *Reader) fill(in io.Reader) error {
	buf := make([]byte, 16<<10)
	n, err := in.Read(buf)
	r.rest = append(r.rest, buf[:n]...)
	if n > 0 {
		return nil
	}
	switch {
	case err == nil:
		return io.ErrNoProgress
	case errors.Is(err, syscall.EIO): // the terminal is gone
		return io.EOF
	}
	return err
}

func (r *Reader) print(s string) error {
	_, err := io.WriteString(r.cfg.Out, s)
	return err
}

// plain reads lines that somebody else has made: the kernel, or a program.
func (r *Reader) plain(in io.Reader, prompt string, w want) (string, error) {
	if err := r.print(prompt); err != nil {
		return "", err
	}
	var text strings.Builder
	for {
		line, err := r.plainLine(in)
		ended := errors.Is(err, io.EOF)
		if err != nil && (!ended || line == "" && text.Len() == 0) {
			return "", err
		}
		if text.Len()+len(line) > MaxInput {
			return "", ErrLong
		}
		if w.text {
			before, isEnd := strings.CutSuffix(line, "\x1b")
			if isEnd || ended {
				return strings.TrimSuffix(text.String()+before, "\n"), nil
			}
			text.WriteString(line + "\n")
			continue
		}
		part, more := line, false
		if !w.secret {
			part, more = Continued(line)
		}
		if !more || ended {
			return text.String() + part, nil
		}
		text.WriteString(part + "\n")
		if err := r.print(goesOn); err != nil {
			return "", err
		}
	}
}

// goesOn is shown before the second line of an input, and all others.
const goesOn = "> "

// plainLine is the next line, without its end; with io.EOF, what came after the
// last one.
func (r *Reader) plainLine(in io.Reader) (string, error) {
	looked := 0
	for {
		if at := strings.IndexByte(string(r.rest[looked:]), '\n'); at >= 0 {
			line := string(r.rest[:looked+at])
			r.rest = r.rest[looked+at+1:]
			return strings.TrimSuffix(line, "\r"), nil
		}
		looked = len(r.rest)
		if looked > MaxInput {
			r.rest = nil
			return "", ErrLong
		}
		if err := r.fill(in); err != nil {
			line := ""
			if errors.Is(err, io.EOF) {
				line, r.rest = string(r.rest), nil
			}
			return line, err
		}
	}
}
