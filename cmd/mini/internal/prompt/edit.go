package prompt

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/minibench/mini/cmd/mini/internal/safe"
)

// editor makes an input of keys. One row of the terminal shows the line that is
// edited, or the part of it around the cursor; earlier lines of the same input
// stay above.
type editor struct {
	*Reader
	want   want
	prompt string   // of the row
	above  []string // lines that are done
	line   []rune
	cursor int
	past   int    // in the history, from its end; 0 is the input itself
	own    string // the input, while the history is gone through
}

// errDone ends an input.
var errDone = errors.New("done")

func (r *Reader) edit(in io.Reader, prompt string, w want) (text string, err error) {
	fd := int(r.cfg.In.Fd())
	was, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	begin, finish := "\x1b[?2004h", "\x1b[?2004l"
	if r.cfg.Dumb {
		begin, finish = "", ""
	}
	defer func() {
		err = errors.Join(err, r.print(finish+"\r\n"), term.Restore(fd, was))
	}()
	before, row := cutLast(prompt)
	e := &editor{Reader: r, want: w, prompt: row}
	if err := r.print(begin + before); err != nil {
		return "", err
	}
	for {
		if err := e.show(); err != nil {
			return "", err
		}
		if err := e.obey(in, fd, was); errors.Is(err, errDone) {
			break
		} else if err != nil {
			return "", err
		}
	}
	return strings.Join(append(e.above, string(e.line)), "\n"), e.showAll()
}

// cutLast parts the last line of a prompt from the ones before it.
func cutLast(prompt string) (before, row string) {
	at := strings.LastIndexByte(prompt, '\n') + 1
	return strings.ReplaceAll(prompt[:at], "\n", "\r\n"), prompt[at:]
}

// obey waits for keys and does what they say.
func (e *editor) obey(in io.Reader, fd int, was *term.State) error {
	if err := e.fillFor(in); err != nil {
		return err
	}
	for {
		k, size := next(e.rest)
		if size == 0 {
			return nil
		}
		e.rest = e.rest[size:]
		if k.name == suspend && e.cfg.Suspend != nil {
			if err := e.suspend(fd, was); err != nil {
				return err
			}
			continue
		}
		if err := e.press(k); err != nil {
			return err
		}
		if e.size() > MaxInput {
			e.rest = nil
			return ErrLong
		}
	}
}

// fillFor reads until there is a key.
func (e *editor) fillFor(in io.Reader) error {
	for {
		if _, size := next(e.rest); size > 0 {
			return nil
		}
		if err := e.fill(in); err != nil {
			return err
		}
	}
}

func (e *editor) size() int {
	n := len(e.line) // at least as many bytes
	for _, l := range e.above {
		n += len(l) + 1
	}
	return n
}

func (e *editor) suspend(fd int, was *term.State) error {
	if err := errors.Join(e.print("\x1b[?2004l\r\n"), term.Restore(fd, was)); err != nil {
		return err
	}
	e.cfg.Suspend()
	if _, err := term.MakeRaw(fd); err != nil {
		return err
	}
	if err := e.print("\x1b[?2004h"); err != nil {
		return err
	}
	return e.show()
}

func (e *editor) press(k key) error {
	switch k.name {
	case none:
		e.insert([]rune{k.char})
	case paste:
		return e.paste(Fold(string(k.paste)))
	case enter:
		return e.enter()
	case altEnter:
		if e.want.text {
			return errDone
		}
		if !e.want.secret {
			e.insert([]rune{'\n'})
		}
	case tab:
		return e.complete()
	case interrupt:
		return errors.Join(ErrInterrupted, e.print("^C"))
	case end:
		switch {
		case e.want.text:
			return errDone
		case len(e.line)+len(e.above) == 0:
			return io.EOF
		}
		e.cut(e.cursor, e.cursor+1)
	case redraw:
		if !e.cfg.Dumb {
			return e.print("\x1b[H\x1b[2J")
		}
	case backspace:
		if e.cursor == 0 && len(e.above) > 0 { // back to the line above
			last := []rune(e.above[len(e.above)-1])
			e.above = e.above[:len(e.above)-1]
			e.line, e.cursor = append(last, e.line...), len(last)
			return e.print("\r\n")
		}
		e.cut(e.cursor-1, e.cursor)
	case up:
		e.remember(e.past + 1)
	case down:
		e.remember(e.past - 1)
	default:
		e.move(k.name)
	}
	return nil
}

// move does what changes nothing but the line, and where the cursor is in it.
func (e *editor) move(n name) {
	switch n {
	case left:
		e.cursor = max(0, e.cursor-1)
	case right:
		e.cursor = min(len(e.line), e.cursor+1)
	case wordLeft:
		e.cursor = e.word(-1)
	case wordRight:
		e.cursor = e.word(1)
	case home:
		e.cursor = 0
	case last:
		e.cursor = len(e.line)
	case remove:
		e.cut(e.cursor, e.cursor+1)
	case removeWord:
		e.cut(e.word(-1), e.cursor)
	case removeBefore:
		e.cut(0, e.cursor)
	case removeAfter:
		e.cut(e.cursor, len(e.line))
	}
}

// word is where the next word begins to the left, or ends to the right.
func (e *editor) word(step int) int {
	at := e.cursor
	look := func() rune {
		if i := at + min(step, 0); i >= 0 && i < len(e.line) {
			return e.line[i]
		}
		return 0
	}
	for c := look(); c != 0 && unicode.IsSpace(c); c = look() {
		at += step
	}
	for c := look(); c != 0 && !unicode.IsSpace(c); c = look() {
		at += step
	}
	return at
}

func (e *editor) insert(chars []rune) {
	e.line = slices.Insert(e.line, e.cursor, chars...)
	e.cursor += len(chars)
}

func (e *editor) cut(from, to int) {
	from, to = max(0, from), min(to, len(e.line))
	if from < to {
		e.line = slices.Delete(e.line, from, to)
		e.cursor = from
	}
}

// enter ends the input, or its line.
func (e *editor) enter() error {
	switch text, more := Continued(string(e.line)); {
	case e.want.secret:
		return errDone
	case e.want.text:
		return e.newLine(string(e.line))
	case more:
		return e.newLine(text)
	}
	return errDone
}

func (e *editor) newLine(text string) error {
	if err := e.showAll(); err != nil {
		return err
	}
	e.above = append(e.above, text)
	e.line, e.cursor, e.prompt = nil, 0, goesOn
	return e.print("\r\n")
}

// paste takes a text as one, also where it has lines.
func (e *editor) paste(text string) error {
	if e.want.secret {
		text = strings.TrimRight(text, "\n")
	}
	e.insert([]rune(text))
	return nil
}

// complete makes the line before the cursor as long as it can be in one way
// only, or shows the ways.
func (e *editor) complete() error {
	before := string(e.line[:e.cursor])
	var may []string
	if e.cfg.Complete != nil && !e.want.secret && len(e.above) == 0 {
		may = e.cfg.Complete(before)
	}
	if len(may) == 0 {
		if e.want.text || !strings.HasPrefix(before, "/") {
			e.insert([]rune{'\t'})
		}
		return nil
	}
	common := []rune(may[0])
	for _, m := range may[1:] {
		for !strings.HasPrefix(m, string(common)) {
			common = common[:len(common)-1]
		}
	}
	if len(may) == 1 {
		common = append(common, ' ')
	}
	if len(string(common)) <= len(before) {
		return e.print("\r\n" + safe.Line(strings.Join(may, "  ")) + "\r\n")
	}
	e.line = append(common, e.line[e.cursor:]...)
	e.cursor = len(common)
	return nil
}

// remember shows an input of the past. It is found again by its number from the
// end, and the one that was begun by going down to it.
func (e *editor) remember(to int) {
	all := e.cfg.History.Entries()
	if e.want.secret || len(e.above) > 0 || to < 0 || to > len(all) || to == e.past {
		return
	}
	if e.past == 0 {
		e.own = string(e.line)
	}
	e.past = to
	e.line = []rune(e.own)
	if to > 0 {
		e.line = []rune(all[len(all)-to])
	}
	e.cursor = len(e.line)
}

// show draws the row anew.
func (e *editor) show() error {
	if e.want.secret {
		return e.print("\r" + e.prompt)
	}
	used := ansi.StringWidthWc(e.prompt)
	room := max(e.width()-used-1, 10)
	// The cursor is always in sight.
	from, at := e.cursor, 0
	for from > 0 && at+columns(e.line[from-1]) <= room {
		from--
		at += columns(e.line[from])
	}
	to, wide := e.cursor, at
	for to < len(e.line) && wide+columns(e.line[to]) <= room {
		wide += columns(e.line[to])
		to++
	}
	place := "\r"
	if used+at > 0 {
		place = fmt.Sprintf("\r\x1b[%dC", used+at)
	}
	return e.print("\r" + e.prompt + visible(e.line[from:to]) + "\x1b[K" + place)
}

// showAll shows the whole line once it is done, where the row has but a part.
func (e *editor) showAll() error {
	if e.want.secret {
		return nil
	}
	e.cursor = len(e.line)
	text := string(e.line)
	if !strings.Contains(text, "\n") && ansi.StringWidthWc(text) < e.width()-ansi.StringWidthWc(e.prompt)-1 {
		return e.show()
	}
	const most = 2000
	shown := text
	if len(e.line) > most {
		shown = string(e.line[:most]) + fmt.Sprintf("\n... and %d characters more", len(e.line)-most)
	}
	return e.print("\r\x1b[K" + e.prompt + strings.ReplaceAll(safe.Text(shown), "\n", "\r\n"))
}

func (e *editor) width() int {
	const usual = 80
	w, _, err := term.GetSize(int(e.cfg.In.Fd()))
	if err != nil || w < 1 {
		return usual
	}
	return w
}

// visible is a line as it is shown: one sign for each character, or a mark.
func visible(line []rune) string {
	var b strings.Builder
	for _, r := range line {
		switch {
		case r == '\n':
			r = '⏎'
		case r == '\t':
			r = ' '
		case !shown(r):
			r = unicode.ReplacementChar
		}
		b.WriteRune(r)
	}
	return b.String()
}

func columns(r rune) int {
	if r == '\n' || r == '\t' || !shown(r) {
		return 1
	}
	return ansi.StringWidthWc(string(r))
}

// shown says whether a character is what it looks like by itself. Selectors and
// signs that join others are not, since nobody knows their width.
func shown(r rune) bool {
	return r < 0x7f && r >= ' ' || safe.Line("x"+string(r)) == "x"+string(r)
}
