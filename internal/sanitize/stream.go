package sanitize

import (
	"strings"
	"unicode/utf8"
)

// Output returns command output as a terminal would leave it on the screen. It keeps colours,
// bold, faint, italic, underline and reverse, applies erasures and cursor movements within a
// line, and drops all other sequences. Overwritten text is dropped, tabs are expanded, and each
// line sets and resets its own colours. Cursor movements to other rows end the line. Lines of
// more than about 65,534 columns are split.
func Output(s string) string {
	if isPlainASCII(s) && len(s) < maxLineWidth-2 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	stream := NewStream(func(line string) {
		b.WriteString(line)
		b.WriteByte('\n')
	})
	for line := range strings.Lines(s) {
		text, isComplete := strings.CutSuffix(line, "\n")
		if isComplete && len(text) < maxLineWidth-2 && stream.isAtStart() && isPlainASCII(text) {
			b.WriteString(line) // most lines are plain
			continue
		}
		_, _ = stream.Write([]byte(line)) // never fails
	}
	stream.flushPartial()
	b.WriteString(stream.UnfinishedLine())
	return b.String()
}

// Stream is like Output for an output that arrives in chunks, split at any byte. It buffers
// one line; it does not buffer the sequences that it drops. It is not safe for concurrent use.
type Stream struct {
	emit    func(string)
	line    lineBuffer
	partial []byte // an incomplete UTF-8 character
	state   state
	params  []byte // parameters of a control sequence
}

// state is the state of the escape sequence parser.
type state int

const (
	inText state = iota
	inEscape
	inIntermediate // in an escape sequence of more than two characters
	inCSI          // in a control sequence, after CSI
	inString       // in an OSC, DCS or similar string
)

// maxParams is the maximum length of the parameters, in bytes; sequences with more are ignored.
const maxParams = 64

// NewStream returns a Stream that calls emit with each finished line, without its newline.
func NewStream(emit func(line string)) *Stream { return &Stream{emit: emit} }

// Write processes a chunk of output. It never fails.
func (s *Stream) Write(p []byte) (int, error) {
	for _, c := range p {
		if len(s.partial) == 0 && c < utf8.RuneSelf {
			s.handleRune(rune(c))
			continue
		}
		s.partial = append(s.partial, c)
		for len(s.partial) > 0 && utf8.FullRune(s.partial) {
			s.decodeRune()
		}
	}
	return len(p), nil
}

// decodeRune processes the first character of the buffered bytes.
func (s *Stream) decodeRune() {
	r, size := utf8.DecodeRune(s.partial)
	if r == utf8.RuneError && size == 1 && s.partial[0] < 0xa0 {
		r = rune(s.partial[0]) // some terminals take the byte for an 8-bit control character
	}
	s.partial = s.partial[:copy(s.partial, s.partial[size:])]
	s.handleRune(r)
}

// isAtStart reports whether the next character starts a line without a style.
func (s *Stream) isAtStart() bool {
	return s.state == inText && len(s.partial) == 0 && len(s.line.cells) == 0 && s.line.cursor == 0 && s.line.style.IsZero()
}

// UnfinishedLine returns the part of the last line that has been received.
func (s *Stream) UnfinishedLine() string { return s.line.String() }

// Close emits the unfinished last line, if any.
func (s *Stream) Close() error {
	s.flushPartial()
	if len(s.line.cells) > 0 {
		s.endLine()
	}
	return nil
}

// flushPartial processes the bytes of an incomplete character.
func (s *Stream) flushPartial() {
	for len(s.partial) > 0 {
		s.decodeRune()
	}
}

func (s *Stream) endLine() {
	s.emit(s.line.String())
	s.line.reset()
}

const (
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
	st  = 0x9c // string terminator (8-bit)
)

func (s *Stream) handleRune(r rune) {
	if r == esc {
		s.state = inEscape
		return
	}
	switch s.state {
	case inText:
		s.handleText(r)
	case inEscape:
		s.handleEscape(r)
	case inIntermediate:
		if r < ' ' || r > 0x2f {
			s.state = inText
			if r < 0x30 || r > 0x7e {
				s.handleText(r)
			}
		}
	case inCSI:
		s.handleCSI(r)
	case inString:
		switch r {
		case bel, can, sub, st:
			s.state = inText
		case '\n':
			// Terminals would hide all further text until the string ends.
			s.state = inText
			s.handleText(r)
		}
	}
}

func (s *Stream) handleEscape(r rune) {
	s.state = inText
	switch {
	case r == '[':
		s.state, s.params = inCSI, s.params[:0]
	case strings.ContainsRune("]PX^_k", r):
		s.state = inString
	case r >= ' ' && r <= 0x2f:
		s.state = inIntermediate
	case r < ' ' || r > 0x7e:
		s.handleText(r)
	}
}

func (s *Stream) handleCSI(r rune) {
	switch {
	case r >= ' ' && r < 0x40:
		if len(s.params) <= maxParams {
			s.params = append(s.params, byte(r))
		}
	case r >= 0x40 && r <= 0x7e:
		s.state = inText
		s.applyCSI(byte(r), string(s.params))
	default:
		s.state = inText
		s.handleText(r)
	}
}

// applyCSI applies a control sequence, as far as it affects the line.
func (s *Stream) applyCSI(final byte, args string) {
	if len(args) > maxParams || strings.Trim(args, "0123456789;:") != "" {
		return
	}
	if final == 'm' {
		applySGR(&s.line.style, args)
		return
	}
	first, _, _ := strings.Cut(args, ";")
	n, ok := parseNumber(first)
	if !ok {
		return
	}
	switch final {
	case 'K':
		s.line.erase(n)
	case 'J':
		if n == 0 {
			s.line.erase(0)
		}
	case 'G', '`':
		s.line.move(n - 1)
	case 'C', 'a':
		s.line.move(s.line.cursor + max(n, 1))
	case 'D':
		s.line.move(s.line.cursor - max(n, 1))
	case 'A', 'B', 'E', 'F', 'H', 'd', 'e', 'f':
		if len(s.line.cells) > 0 {
			s.endLine()
		}
	}
}

// handleText processes a character outside of sequences. It applies line ends, carriage
// returns, backspaces and tabs, drops the other 7-bit control characters, and makes 8-bit ones
// visible.
func (s *Stream) handleText(r rune) {
	switch {
	case r == '\n', r == '\v', r == '\f':
		s.endLine()
	case r == '\r':
		s.line.move(0)
	case r == '\b':
		s.line.move(s.line.cursor - 1)
	case r == '\t':
		if s.line.isFull() {
			s.endLine()
		}
		s.line.tab()
	case r < ' ' || r == del:
	default:
		if s.line.isFull() {
			s.endLine()
		}
		s.line.put(r)
	}
}
