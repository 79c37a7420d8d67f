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
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/muesli/cancelreader"
	"golang.org/x/term"

	"github.com/minibench/mini/internal/text"
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

// maxShown is the number of items of a list that Choose prints at once.
const maxShown = 20

// Matches reports whether a text contains all words of a query, in any case.
func Matches(text, query string) bool {
	text = strings.ToLower(text)
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(query)), func(word string) bool { return !strings.Contains(text, word) })
}

// Choose asks for an item of a numbered list and returns its index, from 0. The answer is a number of the
// list, or text that only one item contains; other text lists the items that contain it. searched are
// the texts of the items to search, if they are longer than those shown.
func (p *Prompter) Choose(ctx context.Context, question string, items []string, defaultIndex int, searched ...string) (int, error) {
	if len(searched) == 0 {
		searched = items
	}
	if err := p.printItems(items, indexes(items)); err != nil {
		return 0, err
	}
	for {
		index, _, err := p.answer(ctx, question, fmt.Sprint(defaultIndex+1), items, searched)
		if err != nil || index >= 0 {
			return index, err
		}
		if err := p.Printf("Please answer with a number from 1 to %d, or a part of one line.", len(items)); err != nil {
			return 0, err
		}
	}
}

// ListNames prints a list of names for AskName.
func (p *Prompter) ListNames(names []string) error {
	return p.printItems(printable(names), indexes(names))
}

// AskName is like Choose for names that ListNames has printed, if any. The list may be incomplete: text that no
// name contains is the answer. defaultName may be empty.
func (p *Prompter) AskName(ctx context.Context, question string, names []string, defaultName string) (string, error) {
	index, answer, err := p.answer(ctx, question, text.Printable(defaultName), printable(names), names)
	switch {
	case err != nil:
		return "", err
	case index >= 0:
		return names[index], nil
	case answer == text.Printable(defaultName):
		return defaultName, nil
	}
	return answer, nil
}

func printable(names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = text.Printable(name)
	}
	return list
}

func indexes(items []string) []int {
	all := make([]int, len(items))
	for i := range all {
		all[i] = i
	}
	return all
}

// answer asks for an item of the list. While the answer is text that several items contain, it prints them
// and asks again. index is -1 if no item contains the answer.
func (p *Prompter) answer(ctx context.Context, question, defaultAnswer string, items, searched []string) (index int, answer string, err error) {
	for {
		if answer, err = p.Ask(ctx, question, defaultAnswer); err != nil {
			return -1, "", err
		}
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(items) {
			return n - 1, answer, nil
		}
		if i := slices.Index(searched, answer); i >= 0 {
			return i, answer, nil
		}
		var found []int
		for i, s := range searched {
			if answer != "" && answer != defaultAnswer && Matches(s, answer) {
				found = append(found, i)
			}
		}
		switch len(found) {
		case 0:
			return -1, answer, nil
		case 1:
			return found[0], answer, nil
		}
		if err := p.printItems(items, found); err != nil {
			return -1, "", err
		}
	}
}

// printItems prints the items with some indexes, at most maxShown, with their numbers.
func (p *Prompter) printItems(items []string, indexes []int) error {
	for _, i := range indexes[:min(len(indexes), maxShown)] {
		if err := p.Printf("  %*d  %s", len(fmt.Sprint(min(len(items), maxShown))), i+1, items[i]); err != nil {
			return err
		}
	}
	if n := len(indexes) - maxShown; n > 0 {
		return p.Printf("  and %d more; a part of a name shows those that have it", n)
	}
	return nil
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
