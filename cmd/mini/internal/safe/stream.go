package safe

import (
	"strings"
	"unicode/utf8"
)

// Colours is the output of a command as a terminal would leave it on the
// screen: with colours, bold, faint, italic, underlined and reverse signs, and
// without any other sequence. What was overwritten after a carriage return is
// gone, tabs are spaces, and every line is by itself: what colours it ends in
// it. A line that goes to another row of the screen ends there. Lines of more
// than 65,534 columns are several.
func Colours(s string) string {
	if plain(s) && len(s) < maxRow-2 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	stream := NewStream(func(line string) {
		b.WriteString(line)
		b.WriteByte('\n')
	})
	_, _ = stream.Write([]byte(s)) // never fails
	stream.finish()
	b.WriteString(stream.Rest())
	return b.String()
}

// Stream is Colours for output that comes in pieces, which may be cut anywhere.
// It holds one line, and nothing of the sequences that it leaves out, however
// long they are. It is for one goroutine at a time.
type Stream struct {
	line  func(string)
	row   row
	cut   []byte // the beginning of a character
	state state
	args  []byte // of a control sequence
}

// state is what part of a sequence comes next.
type state int

const (
	inText state = iota
	inEscape
	inCharset // an escape sequence of more than two characters
	inControl // after CSI
	inString  // of an OSC, DCS and others, up to its end
)

// maxArgs is how long the parameters may be of a sequence that is heard.
const maxArgs = 64

// NewStream makes a Stream that calls line with every line that has ended,
// without its line end.
func NewStream(line func(line string)) *Stream { return &Stream{line: line} }

// Write takes a piece of output. It never fails.
func (s *Stream) Write(p []byte) (int, error) {
	for _, c := range p {
		if len(s.cut) == 0 && c < utf8.RuneSelf {
			s.take(rune(c))
			continue
		}
		s.cut = append(s.cut, c)
		for len(s.cut) > 0 && utf8.FullRune(s.cut) {
			s.shift()
		}
	}
	return len(p), nil
}

// shift takes the first character of what is cut.
func (s *Stream) shift() {
	r, size := utf8.DecodeRune(s.cut)
	if r == utf8.RuneError && size == 1 && s.cut[0] < 0xa0 {
		r = rune(s.cut[0]) // a control character of eight bits, to some terminals
	}
	s.cut = s.cut[:copy(s.cut, s.cut[size:])]
	s.take(r)
}

// Rest is the last line, as far as it has come.
func (s *Stream) Rest() string { return s.row.String() }

// Close ends the last line, if there is one.
func (s *Stream) Close() error {
	s.finish()
	if len(s.row.cells) > 0 {
		s.end()
	}
	return nil
}

// finish takes what is left of a character that will not be whole any more.
func (s *Stream) finish() {
	for len(s.cut) > 0 {
		s.shift()
	}
}

func (s *Stream) end() {
	s.line(s.row.String())
	s.row.end()
}

const (
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
	st  = 0x9c // ends strings, in eight bits
)

func (s *Stream) take(r rune) {
	if r == esc {
		s.state = inEscape
		return
	}
	switch s.state {
	case inText:
		s.text(r)
	case inEscape:
		s.escape(r)
	case inCharset:
		if r < ' ' || r > 0x2f {
			s.state = inText
			if r < 0x30 || r > 0x7e {
				s.text(r)
			}
		}
	case inControl:
		s.control(r)
	case inString:
		switch r {
		case bel, can, sub, st:
			s.state = inText
		case '\n':
			// Terminals would go on to hide what comes, perhaps for ever.
			s.state = inText
			s.text(r)
		}
	}
}

func (s *Stream) escape(r rune) {
	s.state = inText
	switch {
	case r == '[':
		s.state, s.args = inControl, s.args[:0]
	case strings.ContainsRune("]PX^_k", r):
		s.state = inString
	case r >= ' ' && r <= 0x2f:
		s.state = inCharset
	case r < ' ' || r > 0x7e:
		s.text(r)
	}
}

func (s *Stream) control(r rune) {
	switch {
	case r >= ' ' && r < 0x40:
		if len(s.args) <= maxArgs {
			s.args = append(s.args, byte(r))
		}
	case r >= 0x40 && r <= 0x7e:
		s.state = inText
		s.obey(byte(r), string(s.args))
	default:
		s.state = inText
		s.text(r)
	}
}

// obey does what a control sequence asks for within the line.
func (s *Stream) obey(final byte, args string) {
	if len(args) > maxArgs || strings.Trim(args, "0123456789;:") != "" {
		return
	}
	if final == 'm' {
		render(&s.row.pen, args)
		return
	}
	first, _, _ := strings.Cut(args, ";")
	n, ok := number(first)
	if !ok {
		return
	}
	switch final {
	case 'K':
		s.row.erase(n)
	case 'J':
		if n == 0 {
			s.row.erase(0)
		}
	case 'G', '`':
		s.row.move(n - 1)
	case 'C', 'a':
		s.row.move(s.row.cursor + max(n, 1))
	case 'D':
		s.row.move(s.row.cursor - max(n, 1))
	case 'A', 'B', 'E', 'F', 'H', 'd', 'e', 'f':
		if len(s.row.cells) > 0 {
			s.end()
		}
	}
}

// text takes a character that is no part of a sequence. Control characters
// that show nothing are left out; those of eight bits are shown to be there.
func (s *Stream) text(r rune) {
	switch {
	case r == '\n', r == '\v', r == '\f':
		s.end()
	case r == '\r':
		s.row.move(0)
	case r == '\b':
		s.row.move(s.row.cursor - 1)
	case r == '\t':
		if s.row.full() {
			s.end()
		}
		s.row.tab()
	case r < ' ' || r == del:
	default:
		if s.row.full() {
			s.end()
		}
		s.row.put(r)
	}
}
