package jinja

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/minibench/mini/internal/lazyregexp"
)

type kind int

const (
	tokenEnd    kind = iota // of the tag
	tokenName               // also keywords
	tokenString             // text is its value
	tokenInt
	tokenFloat
	tokenOp
)

type token struct {
	kind kind
	text string
	line int
}

func (t token) String() string {
	if t.kind == tokenEnd {
		return "the end of the tag"
	}
	return fmt.Sprintf("%.40q", t.text)
}

// part is a text, or the tokens of a tag.
type part struct {
	text   string
	tag    string // "{{" or "{%"; empty for a text
	tokens []token
	line   int
}

var (
	newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")
	open     = map[byte]string{'{': "}}", '%': "%}", '#': "#}"}
)

// lexer splits a template into texts and tags, with white space control applied.
type lexer struct {
	src   string
	pos   int
	line  int
	parts []part
	strip bool // the last tag ended with a minus
}

func lex(src string) ([]part, error) {
	src = strings.TrimSuffix(newlines.Replace(src), "\n") // like keep_trailing_newline=False
	l := &lexer{src: src, line: 1}
	for l.pos < len(l.src) {
		i := l.nextTag()
		text := l.src[l.pos:i]
		if i == len(l.src) {
			l.addText(text, false)
			break
		}
		sign := byte(0)
		if i+2 < len(l.src) && (l.src[i+2] == '-' || l.src[i+2] == '+') {
			sign = l.src[i+2]
		}
		l.addText(text, sign == '-')
		l.pos = i + 2
		if sign != 0 {
			l.pos++
		}
		if err := l.tag(l.src[i : i+2]); err != nil {
			return nil, err
		}
	}
	return l.parts, nil
}

// nextTag returns the offset of the next tag, or of the end.
func (l *lexer) nextTag() int {
	for i := l.pos; i+1 < len(l.src); i++ {
		if l.src[i] == '{' && open[l.src[i+1]] != "" {
			return i
		}
	}
	return len(l.src)
}

// addText adds the text before a tag; strip removes the white space at its end.
func (l *lexer) addText(text string, strip bool) {
	line := l.line
	l.line += strings.Count(text, "\n")
	if l.strip {
		text = strings.TrimLeftFunc(text, isSpace)
	}
	if strip {
		text = strings.TrimRightFunc(text, isSpace)
	}
	l.strip = false
	if text != "" {
		l.parts = append(l.parts, part{text: text, line: line})
	}
}

// isSpace reports what Python's strip removes.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// tag reads a tag after its opening braces.
func (l *lexer) tag(opening string) error {
	line := l.line
	if opening == "{#" {
		end := strings.Index(l.src[l.pos:], "#}")
		if end < 0 {
			return &Error{line, "the comment {# has no end #}"}
		}
		text := l.src[l.pos : l.pos+end]
		l.line += strings.Count(text, "\n")
		l.strip = strings.HasSuffix(text, "-")
		l.pos += end + 2
		return nil
	}
	tokens, err := l.tokens(open[opening[1]])
	if err != nil {
		return err
	}
	if opening == "{%" && len(tokens) == 2 && tokens[0].text == "raw" {
		return l.raw()
	}
	l.parts = append(l.parts, part{tag: opening, tokens: tokens, line: line})
	return nil
}

// rawEnd matches the end of a raw block.
var rawEnd = lazyregexp.New(`\{%([-+]?)\s*endraw\s*([-+]?)%\}`)

// raw reads the text up to endraw.
func (l *lexer) raw() error {
	m := rawEnd.FindStringSubmatchIndex(l.src[l.pos:])
	if m == nil {
		return &Error{l.line, "raw has no endraw"}
	}
	rest := l.src[l.pos:]
	l.addText(rest[:m[0]], rest[m[2]:m[3]] == "-")
	l.line += strings.Count(rest[m[0]:m[1]], "\n")
	l.strip = rest[m[4]:m[5]] == "-"
	l.pos += m[1]
	return nil
}

// operators, the longest first.
var operators = []string{"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{", "}", ".", ",", ":", "|"}

// tokens reads the tokens of a tag up to closing, which it consumes. The last token is
// tokenEnd.
func (l *lexer) tokens(closing string) ([]token, error) {
	var list []token
	braces := 0
	first := l.line
	for {
		l.skipSpace()
		rest := l.src[l.pos:]
		if rest == "" {
			return nil, &Error{first, "the tag has no end " + closing}
		}
		if braces == 0 {
			for _, sign := range []string{"", "-", "+"} {
				if strings.HasPrefix(rest, sign+closing) {
					l.pos += len(sign + closing)
					l.strip = sign == "-"
					return append(list, token{tokenEnd, "", l.line}), nil
				}
			}
		}
		t, size, err := l.token(rest)
		if err != nil {
			return nil, err
		}
		switch t.text {
		case "{":
			braces++
		case "}":
			braces--
		}
		list = append(list, t)
		l.line += strings.Count(rest[:size], "\n")
		l.pos += size
	}
}

func (l *lexer) skipSpace() {
	rest := strings.TrimLeftFunc(l.src[l.pos:], isSpace)
	skipped := len(l.src) - l.pos - len(rest)
	l.line += strings.Count(l.src[l.pos:l.pos+skipped], "\n")
	l.pos += skipped
}

// token returns the first token of rest and its size.
func (l *lexer) token(rest string) (token, int, error) {
	c, _ := utf8.DecodeRuneInString(rest)
	switch {
	case c == '_' || unicode.IsLetter(c):
		n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if n < 0 {
			n = len(rest)
		}
		return token{tokenName, rest[:n], l.line}, n, nil
	case c >= '0' && c <= '9':
		t, n := number(rest)
		t.line = l.line
		return t, n, nil
	case c == '"' || c == '\'':
		for i := 1; i < len(rest); i++ {
			switch rest[i] {
			case '\\':
				i++
			case byte(c):
				return token{tokenString, unescape(rest[1:i]), l.line}, i + 1, nil
			}
		}
		return token{}, 0, &Error{l.line, "a string has no end"}
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			return token{tokenOp, op, l.line}, len(op), nil
		}
	}
	return token{}, 0, &Error{l.line, fmt.Sprintf("unexpected %q", c)}
}

// number returns the number at the start of s and its size.
func number(s string) (token, int) {
	digits := func(i int) int {
		for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '_') {
			i++
		}
		return i
	}
	isDigit := func(i int) bool { return i < len(s) && s[i] >= '0' && s[i] <= '9' }
	n, k := digits(0), tokenInt
	if n < len(s) && s[n] == '.' && isDigit(n+1) {
		n, k = digits(n+1), tokenFloat
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		e := n + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if isDigit(e) {
			n, k = digits(e), tokenFloat
		}
	}
	return token{kind: k, text: strings.ReplaceAll(s[:n], "_", "")}, n
}

// unescape returns the value of a Python string literal.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	simple := map[byte]string{'\n': "", '\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}
	hex := map[byte]int{'x': 2, 'u': 4, 'U': 8}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if text, ok := simple[s[i]]; ok {
			b.WriteString(text)
			continue
		}
		var r rune
		n := hex[s[i]]
		if n > 0 && i+n < len(s) {
			if _, err := fmt.Sscanf(s[i+1:i+1+n], "%x", &r); err == nil {
				b.WriteRune(r)
				i += n
				continue
			}
		}
		b.WriteByte('\\')
		b.WriteByte(s[i])
	}
	return b.String()
}
